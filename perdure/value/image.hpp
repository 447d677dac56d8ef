// SPDX-License-Identifier: BSD-3-Clause
//
// Images: making, reading, changing and dropping the bytes of a value, as its Type says.
//
// An image in DRAM is a copy; the blocks that it points to are in the pool. Functions that take
// `image` work on such a copy, and the caller stores it; assign() works on an image in the pool.
// `object` is an object of the C++ type that the Type was made from.
// Thread safety: that of the transaction. Errors: those of Tx, and std::bad_alloc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>

#include "perdure/value/access.hpp"
#include "perdure/value/type.hpp"

namespace perdure::value {

/// DRAM for an image: on the stack where it is small. Its bytes are zero.
class Buffer {
 public:
  explicit Buffer(std::size_t n) {
    if (n <= local_.size()) {
      std::memset(local_.data(), 0, n);
    } else {
      heap_ = std::make_unique<std::byte[]>(n);
      bytes_ = heap_.get();
    }
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  [[nodiscard]] std::byte* data() noexcept { return bytes_; }

 private:
  alignas(8) std::array<std::byte, 512> local_;
  std::unique_ptr<std::byte[]> heap_;
  std::byte* bytes_ = local_.data();
};

/// Makes an object's image, in zeroed bytes, and the blocks that it owns. Throws error(invalid) for
/// a variant that lost its value to an exception.
void encode(Writer& tx, const Type& type, const void* object, std::byte* image);

/// Gives an object the value of an image.
void decode(Reader& tx, const Type& type, const std::byte* image, void* object);

/// Makes an image that of an object: what it owns is changed where it lies, if it has the room, and
/// only bytes that differ are logged.
void change(Writer& tx, const Type& type, std::byte* image, const void* object);

/// change() of an image in the pool.
void assign(Writer& tx, const Type& type, std::byte* where, const void* object);

/// Frees what an image owns. The image must not be used afterwards.
void drop(Writer& tx, const Type& type, const std::byte* image);

/// Frees up to `blocks` blocks that an image in the pool owns, sets the pointers to them to null,
/// and lowers `blocks` by their number. Returns whether no block is left.
bool free_some(Writer& tx, const Type& type, std::byte* where, std::uint64_t& blocks);

/// Gives an image, a copy of another one, blocks of its own.
void own_blocks(Writer& tx, const Type& type, std::byte* image);

/// Calls f(block) for each block that an image owns.
void each_block(Reader& tx, const Type& type, const std::byte* image,
                const std::function<void(const void*)>& f);

/// Writes those words of `after` that differ from `before`, which is what the pool has at `where`.
void write_changes(Writer& tx, std::byte* where, const std::byte* before, const std::byte* after,
                   std::size_t n);

}  // namespace perdure::value
