// SPDX-License-Identifier: BSD-3-Clause
//
// Image: the bytes of an object that is built in DRAM before a transaction stores them in the pool.
//
// A pool's objects may be larger than a thread's stack, so a large image is on the heap. A small
// one is a local variable, which costs a transaction no allocation. The caller constructs the
// object in at(): an assignment such as *p = T{} would make a temporary on the stack.
// Thread safety: a value that belongs to its thread.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

namespace perdure::detail {

/// Images of more bytes than this are on the heap.
inline constexpr std::size_t max_local_image = 4096;

/// How a T's image is aligned.
template <class T>
inline constexpr std::size_t image_align = alignof(T) < 8 ? 8 : alignof(T);
/// The bytes of a T's image: whole words.
template <class T>
inline constexpr std::size_t image_bytes = (sizeof(T) + 7) / 8 * 8;

/// The image of a T. Its bytes are zero, so padding is never indeterminate. T is trivially
/// destructible: nothing is destroyed.
template <class T>
class LocalImage {
 public:
  /// Returns where the T is constructed.
  [[nodiscard]] std::byte* at() noexcept { return bytes_; }

 private:
  alignas(image_align<T>) std::byte bytes_[image_bytes<T>] = {};
};

/// The same on the heap.
template <class T>
class HeapImage {
 public:
  /// Throws std::bad_alloc.
  HeapImage() : bytes_(static_cast<std::byte*>(::operator new(image_bytes<T>, align))) {
    std::memset(bytes_.get(), 0, image_bytes<T>);
  }
  /// Returns where the T is constructed.
  [[nodiscard]] std::byte* at() noexcept { return bytes_.get(); }

 private:
  static constexpr std::align_val_t align{image_align<T>};
  struct Free {
    void operator()(std::byte* bytes) const noexcept {
      ::operator delete(bytes, image_bytes<T>, align);
    }
  };
  std::unique_ptr<std::byte, Free> bytes_;
};

/// The image of a T, where one of its size belongs.
template <class T>
using Image = std::conditional_t<(image_bytes<T> > max_local_image), HeapImage<T>, LocalImage<T>>;

}  // namespace perdure::detail
