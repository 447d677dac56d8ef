// SPDX-License-Identifier: BSD-3-Clause
//
// Arena: the memory in which recovery runs again and again: the data region at the pool's own base
// address, so that the pointers in it are right, and rings mapped twice. All of it is mapped once;
// from one image to the next only the lines that differ are copied. A full copy for each image is
// what makes crash exploration slow.
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/medium/file_handle.hpp"
#include "perdure/medium/medium.hpp"
#include "testing/image.hpp"
#include "testing/trace.hpp"

namespace perdure::crash {

using medium::DirtyLines;
using medium::Image;
using medium::Word;

class Arena {
 public:
  struct Geometry {
    std::uint64_t log_bytes = 0, max_data_bytes = 0;
    std::uint64_t base = 0;  ///< the address at which the data region is mapped
    std::size_t append_unit = medium::line_bytes;
    bool fence_is_sync = false;
  };
  /// Returns `incompatible` if something else is mapped at the base: the pool must be closed.
  static Result<std::unique_ptr<Arena>> make(const Geometry& geometry);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Makes the memory equal to `image` with `overlay` over it. It writes only lines that `image` or
  /// the last medium changed, so the caller must always pass the same Image.
  void load(Image& image, const std::vector<Word>& overlay);
  /// Makes a medium on the memory, with a data region of `data_bytes`. A page of zeros is a hole,
  /// as in a sparse copy: recovery must ask for it before it stores there (ALLOC-1). The medium
  /// also records its calls in `trace`, unless that is null. One medium at a time.
  std::unique_ptr<medium::Medium> open(std::uint64_t data_bytes, medium::Trace* trace);
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::uint64_t log_bytes() const noexcept { return geometry_.log_bytes; }

 private:
  class View;
  explicit Arena(const Geometry& geometry);
  Status init();
  [[nodiscard]] std::byte* address(std::uint64_t offset) const noexcept {
    return offset < geometry_.log_bytes ? log_ + offset : data_ + (offset - geometry_.log_bytes);
  }
  void note_line(std::uint64_t line) noexcept;

  Geometry geometry_;
  medium::Descriptor memory_;
  std::byte *log_ = nullptr, *data_ = nullptr;
  std::vector<medium::RingMap> rings_;
  DirtyLines dirty_;
  std::vector<bool> in_use_;                // per line of the image: is it nonzero?
  std::vector<std::uint8_t> lines_in_use_;  // per page of the image: how many nonzero lines
  medium::PageMap pages_;                   // of the open medium
};

}  // namespace perdure::crash
