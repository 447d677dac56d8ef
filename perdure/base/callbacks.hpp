// SPDX-License-Identifier: BSD-3-Clause
//
// Callbacks: functions that are called one after the other, each of which its owner can remove.
// Thread safety: none.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "perdure/base/status.hpp"

namespace perdure::base {

template <class... Arguments>
class Callbacks {
 public:
  using Function = std::function<Status(Arguments...)>;

  /// `owner` tells which function remove() removes. Throws std::bad_alloc.
  void add(const void* owner, Function f) { all_.emplace_back(owner, std::move(f)); }
  void remove(const void* owner) noexcept {
    std::erase_if(all_, [owner](const auto& one) { return one.first == owner; });
  }
  /// Calls all in the order in which they were added. Returns the first failure.
  Status call(Arguments... arguments) const {
    Status first;
    for (const auto& [owner, f] : all_)
      if (Status s = f(arguments...); first.ok()) first = std::move(s);
    return first;
  }

 private:
  std::vector<std::pair<const void*, Function>> all_;
};

}  // namespace perdure::base
