// SPDX-License-Identifier: BSD-3-Clause
//
// Kinds: what opens a name KIND://..., for kinds that libraries beside this one add.
// Thread safety: any thread may make all calls.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace perdure::base {

/// `Open` is a std::function.
template <class Open>
class Kinds {
 public:
  void add(const std::string& kind, Open open) {
    const std::lock_guard lock(mutex);
    all_[kind] = std::move(open);
  }
  /// What opens `name`; nothing for a kind that was not added, and for a name without a kind.
  [[nodiscard]] Open of(const std::string& name) {
    const std::lock_guard lock(mutex);
    const std::size_t end = name.find("://");
    if (end == std::string::npos) return nullptr;
    const auto found = all_.find(name.substr(0, end));
    return found != all_.end() ? found->second : nullptr;
  }

  std::mutex mutex;  ///< for base::hold_over_fork

 private:
  std::map<std::string, Open> all_;
};

}  // namespace perdure::base
