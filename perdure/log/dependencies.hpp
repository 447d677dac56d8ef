// SPDX-License-Identifier: BSD-3-Clause
//
// Dependent records: which of them count after a crash, and in which order.
//
// A transaction of shadow/htm (engine/shadow/htm.hpp) is visible to other threads before its record
// is durable. So a record names, by entries `after`, each record that was not yet acknowledged when
// its own transaction became visible, and that has a lower commit timestamp. What is not named was
// acknowledged by then, or can't have been seen.
//
//   DEPEND-1 Recovery keeps a record only with every record that it names: one that the data region
//            holds already (its id is not above the checkpoint id), or one that is kept. Timestamps
//            of named records are lower, so one pass in their order decides; no cycle is possible.
//   DEPEND-2 Records are applied in the order of their timestamps, which is the order in which
//            their transactions took effect (TIMESTAMP-1, TIMESTAMP-2). Their ids do not suffice:
//            65,536 timestamps have one id.
//   DEPEND-3 A ring's writer starts a record only when the one before it was acknowledged. So a
//            record that is not kept is the last one of its ring; where another follows, what the
//            former names was durable once, and is damaged now (LAW-10).
// Thread safety: a plain function of the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/log/record.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::log {

/// Takes from `records` what DEPEND-1 does not keep, and brings the rest into the order of the
/// timestamps. Ring i has the records [begins[i], begins[i + 1]), in ring order; the data region
/// holds every transaction with an id up to `checkpoint_id`. A record of another kind names none.
/// Errors: `corrupt`, with nothing changed on the medium, if a record names what no transaction can
/// have seen, or by DEPEND-3. Throws std::bad_alloc.
Status keep_closed(std::vector<RecordView>& records, const std::vector<std::ptrdiff_t>& begins,
                   std::uint64_t checkpoint_id, const medium::Medium& medium);

}  // namespace perdure::log
