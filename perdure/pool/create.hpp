// SPDX-License-Identifier: BSD-3-Clause
//
// Creating pools: sizes, the first bytes, and the file's appearance under its name.
//
// CREATE-1: the header is the last thing that makes bytes a pool, and the name the last thing that
// makes the file one: at whatever instant a creator dies, PATH is absent or whole.
// Creators of one path exclude each other by a lock on PATH.creating; only its holder touches
// PATH.creating.pool. Thread safety: functions over their arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "perdure/base/status.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/pool/address.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/lock.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::pool {

/// The sizes of a new pool.
struct Plan {
  std::uint64_t log_bytes = 0, ring_bytes = 0, data_bytes = 0, max_data_bytes = 0;
  std::uint32_t rings = 0;
  DataRange checksums;  ///< of pages; no bytes: the pool has none
  [[nodiscard]] Directory directory() const noexcept {
    return {max_data_bytes, max_data_bytes, checksums};
  }
};
Result<Plan> plan_pool(const OpenFile& how, const Identity& who);
/// The same for a medium whose ranges exist already: max_bytes can only lower the limit.
Result<Plan> plan_on(const medium::Medium& medium, const OpenFile& how, const Identity& who);
/// The same for a /dev/dax device of `bytes` bytes. The log, the rings and the data region are
/// whole 2 MiB long, and the data region has all that max_size allows of the device.
Result<Plan> plan_on_device(std::uint64_t bytes, const OpenFile& how, const Identity& who);

/// The op that allocates the root object; offset 0 when it has no bytes.
[[nodiscard]] HeapOp root_op(const Header& header) noexcept;

/// Turns a medium into an empty, clean pool, durably; `blank` says that its data region is known to
/// be zero. The header comes last.
Status format_pool(medium::Medium& medium, const Plan& plan, const OpenFile& how,
                   const Identity& who, bool blank, AddressRange& space);

/// Is an open file a regular one without bytes? A new pool may replace it.
[[nodiscard]] bool empty_file(int fd) noexcept;
/// Makes the pool file how.path, locked for writing; `exists` if another creator has made it
/// meanwhile. `empty` is the lock of an empty_file() of that name, if there is one: the pool
/// replaces it and takes its mode and, where that is permitted, its owner; `exists` if it is no
/// longer empty, or the name stands for another file by then.
struct NewFile {
  FileLock lock;
  AddressRange space;
};
Result<NewFile> create_file(const OpenFile& how, const Identity& who,
                            const FileLock* empty = nullptr);
/// The same, where `format` makes the new medium, which is zero, a pool of these sizes, durably,
/// and its header last. What it throws leaves no file.
Result<NewFile> create_file(
    const OpenFile& how, const Plan& plan, const FileLock* empty,
    const std::function<Status(medium::Medium& medium, AddressRange& space)>& format);
/// A new pool's uuid: derived from the seed, or random if it is 0.
Status fresh_uuid(std::uint8_t (&uuid)[16], std::uint64_t seed);

/// The data region of a pool under creation, through its medium, which is flushed at each store.
/// The caller fences at the end. Used by one thread.
class NewDataRegion final : public HeapTarget {
 public:
  NewDataRegion(medium::Medium& medium, std::uint64_t log_bytes) noexcept
      : medium_(medium), log_bytes_(log_bytes) {}
  [[nodiscard]] std::uint64_t load(std::uint64_t offset) const override {
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(medium_.at(log_bytes_ + offset)),
                           __ATOMIC_RELAXED);
  }
  void store(std::uint64_t offset, std::uint64_t value) override {
    store(offset, &value, sizeof value);
  }
  void store(std::uint64_t offset, const void* from, std::uint64_t n) {
    medium_.store(log_bytes_ + offset, from, n);
    medium_.flush(log_bytes_ + offset, n);
  }
  /// Stores the pages of a chunk that are not zero: those that are, are so already. The chunk may
  /// reach behind the data region's end.
  void store_chunk(std::uint64_t chunk, const std::byte* bytes);
  void set_bits(std::uint64_t offset, std::uint64_t mask) override {
    store(offset, load(offset) | mask);
  }
  void clear_bits(std::uint64_t offset, std::uint64_t mask) override {
    store(offset, load(offset) & ~mask);
  }
  [[nodiscard]] bool replay() const noexcept override { return true; }
  // Until the caller writes the header this is no pool, and no crash can reveal the order in which
  // the data region was made.
  void fence(std::uint64_t, std::uint64_t) override {}

 private:
  medium::Medium& medium_;
  std::uint64_t log_bytes_;
};
/// The names in the folder of `path` are durable when this returns ok.
Status sync_folder(const std::string& path);

/// Is this a /dev/dax device on which no pool was ever finished? Its header pages are zero, or
/// those of an interrupted creation.
[[nodiscard]] bool blank_device(int fd);
/// Formats the blank /dev/dax device that `lock` holds. CREATE-2: until the header's first copy is
/// whole and durable, the second is a page that begins with unfinished_magic and is otherwise zero:
/// wherever a creation is interrupted, the next one recognizes that no finished pool lies there.
Status create_on_device(const FileLock& lock, const OpenFile& how, const Identity& who,
                        AddressRange& space);

}  // namespace perdure::pool
