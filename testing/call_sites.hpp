// SPDX-License-Identifier: BSD-3-Clause
//
// CallSites: from where a recording medium's flush and fence are called, and which of these calls
// are omitted, for the mutation gate (`./dev mutants`). A site is a return address; the gate maps
// addresses to source lines. One build serves for all mutants.
// Thread safety: any thread may call skip(); the rest must be called before there are other
// threads.
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

  /// From now on calls are counted, by what is called ("flush", "fence", "flush_all") and by the
  /// call site.
  void record() { active_ = true; }
  /// Calls of `what` from this address (as sites() gives it) do nothing from now on.
  void omit(const std::string& what, std::uint64_t address);
  /// Called by a medium: must it omit this call?
  [[nodiscard]] bool skip(const char* what, const void* site) {
    if (__builtin_expect(!active_, 1)) return false;
    return skip_slow(what, site);
  }
  /// What was called, from where (as an offset in the program's file), and how often.
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
