// SPDX-License-Identifier: BSD-3-Clause
//
// History: what an archive and its backups allow to restore: runs of segments without a gap, and
// the bases in them.
// Thread safety: values; functions over their arguments.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "perdure/backup/base.hpp"
#include "perdure/backup/segment.hpp"
#include "perdure/backup/store.hpp"

namespace perdure::backup {

/// The frames that follow a base: both readings of a restore see the same.
class Frames {
 public:
  virtual ~Frames() = default;
  Frames(const Frames&) = delete;
  Frames& operator=(const Frames&) = delete;
  /// Calls f(frame) for each frame with an id above the base's, and for each header frame, until f
  /// returns false, or at the end. Frames are valid until `release` is called, now and then.
  /// Returns `corrupt` with what is missing, `incompatible`, `io`, and what f returns.
  virtual Status each(const std::function<Result<bool>(const Frame&)>& f,
                      const std::function<Status()>& release) = 0;
  /// Whether there is more behind a gap.
  [[nodiscard]] virtual bool gap() const noexcept = 0;

 protected:
  Frames() = default;
};

/// Those in an archive's segments, as they were listed once.
class FramesAfter final : public Frames {
 public:
  static Result<std::unique_ptr<Frames>> open(Store& store, const Base& base);
  Status each(const std::function<Result<bool>(const Frame&)>& f,
              const std::function<Status()>& release) override;
  [[nodiscard]] bool gap() const noexcept override { return gap_; }

 private:
  FramesAfter(Store& store, const Base& base) : store_(&store), base_id_(base.id) {
    std::memcpy(uuid_, base.header.uuid, sizeof uuid_);
  }
  Store* store_;
  std::uint64_t base_id_;
  std::uint8_t uuid_[16];           // the pool's
  std::vector<SegmentName> names_;  // from the first that is not wholly below the base
  bool gap_ = false;
};

/// The header in a frame of that kind. `corrupt` where it can't be right.
Result<pool::Header> header_of(const Frame& frame, const std::string& name);

/// Returns the part of a group frame's entries that belongs to the transactions above `above`, up
/// to `upto`: its first word and its number of words. `corrupt` where an entry overruns.
struct Entries {
  const std::uint64_t* words = nullptr;
  std::uint64_t n = 0;
  std::uint64_t last = 0;  ///< the last transaction's id; 0 if there is none
};
Result<Entries> entries_of(const Frame& frame, std::uint64_t above, std::uint64_t upto,
                           const std::string& name);

}  // namespace perdure::backup
