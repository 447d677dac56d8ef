// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/replication/standbys.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace perdure::replication {

Status Standbys::look(LogService& log) {
  const auto said = log.confirmed();
  if (!said) return said.status();
  // STANDBYS-1
  std::unordered_map<std::string, std::uint64_t> by_copy;
  for (const Confirmed& one : *said)
    // mutant: standbys-own-copy
    if (one.copy.starts_with(copies_) && one.copy != own_)
      by_copy[one.copy] = std::max(by_copy[one.copy], one.id);
  std::vector<std::uint64_t> ids;
  for (const auto& [copy, id] : by_copy) ids.push_back(id);
  std::sort(ids.begin(), ids.end(), std::greater<>());
  ids.resize(ids_.size());
  for (std::size_t i = 0; i < ids_.size(); ++i)
    // What was reached stays so: a copy that was made anew has less than before.
    if (ids[i] > ids_[i].load(std::memory_order_relaxed))
      ids_[i].store(ids[i], std::memory_order_release);  // pairs with id_of()
  return {};
}

std::vector<std::uint64_t> Standbys::ids() const {
  std::vector<std::uint64_t> all;
  for (unsigned n = 1; n <= most_standbys && id_of(n) != 0; ++n) all.push_back(id_of(n));
  return all;
}

}  // namespace perdure::replication
