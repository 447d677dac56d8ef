// SPDX-License-Identifier: BSD-3-Clause
//
// catch_up_records(): what opening a pool of another version of the program does with a container
// whose values are records that need a step.
//
// Each record says which version wrote it, so after an opening that was cut short, the next one
// continues. Elements stay where they are: only the pointers to their records change.
// Thread safety: only the thread that opens the pool; no other thread has it yet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "perdure/api/batches.hpp"
#include "perdure/api/row_steps.hpp"
#include "perdure/api/value_in.hpp"
#include "perdure/container/stored.hpp"
#include "perdure/value/access.hpp"
#include "perdure/value/record.hpp"

namespace perdure {

namespace detail {

/// Whether a container's values are records, and its each_place() says where they lie.
template <class C>
concept holds_records = requires {
  requires C::has_places;
} && value::placement_of<typename value_in<C>::type>() == value::Placement::record;

}  // namespace detail

/// Rewrites the records that need a step by `steps`, up to `batch` records per update. `run(f)`
/// runs f(tx) as an update, `look(f)` as a view; `done(n)` is called when n records have been
/// looked at. It takes memory for a list of pointers to the elements.
template <detail::holds_records C, class Run, class Look, class Done>
void catch_up_records(C& container, Run&& run, Look&& look, std::uint64_t batch,
                      const detail::RowSteps& steps, Done&& done) {
  if (steps.empty()) return;
  using T = typename detail::value_in<C>::type;
  const value::Type& type = value::type_of<T>();
  std::vector<const ptr<value::record>*> places;  // no other thread has the pool yet
  look([&](auto& tx) {
    places.clear();
    container.each_place(tx, [&](const ptr<value::record>& place) { places.push_back(&place); });
  });
  detail::Batches batches(batch);
  std::size_t to = 0;
  for (std::size_t from = 0; from < places.size();) {
    batches.once(run, [&]<class Tx>(Tx& tx, std::uint64_t n) {
      to = from + std::min<std::size_t>(places.size() - from, n);
      value::WriterOver<Tx> writer(tx);
      for (std::size_t i = from; i < to; ++i) {
        auto& place = const_cast<ptr<value::record>&>(*places[i]);
        value::record* const record = tx.read(place);
        if (!steps.needed(writer, type, record)) continue;
        T now{};
        steps.read(writer, type, record, std::addressof(now));
        tx.write(place, value::record::assign(writer, type, record, std::addressof(now)));
      }
    });
    done(from = to);
  }
}

}  // namespace perdure
