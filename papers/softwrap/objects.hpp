// SPDX-License-Identifier: BSD-3-Clause
//
// Objects: where the data region has objects that wraps have streamed to it, for recovery
// (SOFTWRAP-4, softwrap.hpp). The log has no copy of them: what older wraps have stored to their
// places, when other blocks lay there, must not be replayed over them.
// Thread safety: a plain value.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "papers/names.hpp"

namespace perdure::papers::softwrap {

class Objects {
 public:
  /// An object of wrap `id` in `words` words from `offset` on. REQUIRES: ids do not fall from call
  /// to call. Throws std::bad_alloc.
  void note(std::uint64_t offset, std::uint64_t words, std::uint64_t id) {
    if (words == 0) return;
    const std::uint64_t end = offset + words * 8;
    auto at = parts_.upper_bound(offset);
    if (at != parts_.begin()) {
      const auto before = std::prev(at);
      const Part was = before->second;
      if (was.end > offset) {
        before->second.end = offset;
        if (was.end > end) parts_[end] = was;
        if (before->second.end == before->first) parts_.erase(before);
      }
    }
    for (at = parts_.lower_bound(offset); at != parts_.end() && at->first < end;) {
      const Part was = at->second;
      at = parts_.erase(at);
      if (was.end > end) parts_[end] = was;
    }
    parts_[offset] = {end, id};
  }
  /// Returns whether the word lies in an object that is newer than wrap `id`.
  [[nodiscard]] bool newer(std::uint64_t offset, std::uint64_t id) const {
    if (parts_.empty()) return false;
    const auto behind = parts_.upper_bound(offset);
    if (behind == parts_.begin()) return false;
    const Part& part = std::prev(behind)->second;
    return offset < part.end && part.id > id;
  }

 private:
  struct Part {
    std::uint64_t end, id;
  };
  std::map<std::uint64_t, Part> parts_;  // by their beginning; none overlaps another one
};

}  // namespace perdure::papers::softwrap
