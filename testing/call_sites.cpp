// SPDX-License-Identifier: BSD-3-Clause
#include "testing/call_sites.hpp"

#include <link.h>

namespace perdure::medium {

CallSites& CallSites::of_process() {
  static CallSites all;
  return all;
}

CallSites::CallSites() {
  // The program itself is reported first.
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* at) {
        *static_cast<std::uint64_t*>(at) = info->dlpi_addr;
        return 1;
      },
      &loaded_at_);
}

void CallSites::omit(const std::string& what, std::uint64_t address) {
  active_ = true;
  omitted_.emplace(what, address);
}

bool CallSites::skip_slow(const char* what, const void* site) {
  const std::pair<std::string, std::uint64_t> key(
      what, reinterpret_cast<std::uintptr_t>(site) - loaded_at_);
  const std::lock_guard lock(mutex_);
  ++counts_[key];
  return omitted_.contains(key);
}

std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> CallSites::sites() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace perdure::medium
