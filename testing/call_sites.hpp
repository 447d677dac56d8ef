// SPDX-License-Identifier: BSD-3-Clause
//
// CallSites: from where a recording medium's flush and fence are called, and which of these calls
// are left out: the mutation gate (`./dev mutants`). A site is a return address; the gate turns
// addresses into source lines. One build serves for all mutants.
// Thread safety: skip() by any thread; the rest before there are others.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace perdure::medium {

class CallSites {
 public:
  static CallSites& of_process();

  /// From now on calls are counted, by what is called ("flush", "fence", "flush_all") and from
  /// where.
  void record() { active_ = true; }
  /// Calls from this address (as sites() gives it) do nothing.
  void omit(const std::string& what, std::uint64_t address);
  /// Called by a medium: is this call to be left out?
  [[nodiscard]] bool skip(const char* what, const void* site) {
    if (__builtin_expect(!active_, 1)) return false;
    return skip_slow(what, site);
  }
  /// What was called, from where (as an offset in the program's file), how often.
  [[nodiscard]] std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> sites() const;

 private:
  CallSites();
  bool skip_slow(const char* what, const void* site);

  bool active_ = false;
  std::uint64_t loaded_at_ = 0;
  mutable std::mutex mutex_;
  std::set<std::pair<std::string, std::uint64_t>> omitted_;
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> counts_;
};

}  // namespace perdure::medium
