// SPDX-License-Identifier: BSD-3-Clause
//
// RecoveredPool: a pool whose recovery has just run in an arena, read without a view, a heap or a
// thread: the data region itself lies at its base address, and a ReadTx over plain memory reads it.
// Thread safety: one thread.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perdure/api/open.hpp"
#include "perdure/api/tx.hpp"
#include "perdure/api/walk.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/open_pool.hpp"
#include "perdure/pool/scrub.hpp"
#include "testing/explorer.hpp"
#include "testing/survive.hpp"

namespace perdure::crash {

/// What ReadTx requires of an engine's transaction, for plain reads of memory.
struct PlainTransaction {
  [[nodiscard]] static bool direct() noexcept { return true; }
  [[nodiscard]] static std::uint64_t read(const std::uint64_t* a) noexcept { return *a; }
};
using PlainTx = ReadTx<PlainTransaction>;

/// Recovers pools by `recover` (an EngineInfo's), audits heap and containers (LAW-5, LAW-6), then
/// calls `look(tx, root, crash) -> Verdict`, or look(tx, root, crash, file). Before the session,
/// when the pool's log still has its records, it calls look.recovered(file), if there is that.
template <class Root, class Look>
class RecoveredPool final : public Subject {
 public:
  using Recover = Status (*)(pool::OpenPool&, engine::Recovery&);
  RecoveredPool(Recover by, Look look) : recover_(by), look_(std::move(look)) {
    how_.path = "image";
    how_.with_log = true;  // of a pool that is replicated, too, the image is all that there is
    who_.engine = "any";
    who_.engine_any = who_.layout_any = true;
  }

  Verdict judge(std::unique_ptr<medium::Medium> medium, const std::byte* data,
                const Crash& crash) override {
    Verdict verdict;
    const std::string died = survive([&] {
      try {
        verdict = recover(std::move(medium), data, crash);
      } catch (const std::exception& e) {
        verdict.problem = std::string("recovery, or the check after it, throws: ") + e.what();
      }
    });
    if (!died.empty()) verdict.problem = "recovery, or the check after it, ends with " + died;
    return verdict;
  }

 private:
  Verdict recover(std::unique_ptr<medium::Medium> medium, const std::byte* data,
                  const Crash& crash) {
    auto file = pool::OpenPool::open_on(std::move(medium), false, how_, who_);
    if (!file.ok()) {
      if (!crash.created) return {};  // not made yet: no creation of it was acknowledged
      return {"the pool is refused: " + file.status().message(), 0};
    }
    engine::Recovery report;
    Status s = recover_(**file, report);
    if constexpr (requires { look_.recovered(**file); })
      if (s.ok()) look_.recovered(**file);
    if (s.ok()) s = (*file)->start_session(pool::ViewPolicy::none);
    if (!s.ok()) return {"recovery fails: " + s.message(), 0};
    PlainTransaction transaction;
    PlainTx tx(transaction);
    const auto catalog = pool::read_catalog({}, (*file)->header(), data);
    if (!catalog.ok()) return {"the recovered pool is not sound: " + catalog.status().message(), 0};
    const Root& root = *reinterpret_cast<const Root*>(data + catalog->root_offset);
    OwnedBlocks owned = owned_blocks(tx, root, data, (*file)->header().data_bytes);
    owned.offsets.insert(owned.offsets.end(), catalog->blocks.begin(), catalog->blocks.end());
    std::vector<std::string>& problems = owned.problems;
    const CheckReport heap =
        detail::compare_heap(**file, data, std::move(owned.offsets), owned.whole);
    problems.insert(problems.end(), heap.problems.begin(), heap.problems.end());
    add_false_alarms(**file, problems);
    if (!problems.empty())
      return {"the recovered pool is not sound: " + problems.front() + " (" +
                  std::to_string(problems.size()) + " problems)",
              0};
    Crash found = crash;
    found.last_id = report.last_id;
    if constexpr (requires { look_(tx, root, found, **file); })
      return look_(tx, root, found, **file);
    else
      return look_(tx, root, found);
  }

  // Nothing has damaged the image: every page is as its checksum says (CHECKSUM-1 to CHECKSUM-4).
  static void add_false_alarms(const pool::OpenPool& file, std::vector<std::string>& problems) {
    const pool::ScrubReport pages = pool::scrub(file, {}).value();
    for (const pool::DamagedPage& page : pages.damaged) problems.push_back(pool::text_of(page));
  }

  const Recover recover_;
  Look look_;
  pool::OpenFile how_;
  pool::Identity who_;
};

}  // namespace perdure::crash
