// SPDX-License-Identifier: BSD-3-Clause
//
// Arena: the memory in which recovery runs, over and over: home at the pool's own base address, so
// that the pointers in it are right, and rings mapped twice, all once; from one image to the next
// only the lines that differ are copied. A full copy for each image is what makes crash exploration
// slow.
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/medium/pool_file.hpp"
#include "testing/image.hpp"
#include "testing/trace.hpp"

namespace perdure::crash {

using medium::DirtyLines;
using medium::Image;
using medium::Word;

class Arena {
 public:
  struct Geometry {
    std::uint64_t log_bytes = 0, max_home_bytes = 0;
    std::uint64_t base = 0;  ///< where home is mapped
    std::size_t append_unit = medium::line_bytes;
    bool fence_is_sync = false;
  };
  /// `incompatible` where something else is mapped at the base: the pool must be closed.
  static Result<std::unique_ptr<Arena>> make(const Geometry& geometry);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// The memory becomes `image` with `overlay` over it. Only lines that `image` or the last medium
  /// changed are touched: always give the same Image.
  void load(Image& image, const std::vector<Word>& overlay);
  /// A medium on the memory, `home_bytes` of home long. A page of zeros is a hole, as in a sparse
  /// copy: recovery must ask for it before it stores there (ALLOC-1). What it is asked goes to
  /// `trace` too unless that is null. One at a time.
  std::unique_ptr<medium::Medium> open(std::uint64_t home_bytes, medium::Trace* trace);
  [[nodiscard]] const std::byte* home() const noexcept { return home_; }
  [[nodiscard]] std::uint64_t log_bytes() const noexcept { return geometry_.log_bytes; }

 private:
  class View;
  explicit Arena(const Geometry& geometry);
  Status init();
  [[nodiscard]] std::byte* address(std::uint64_t offset) const noexcept {
    return offset < geometry_.log_bytes ? log_ + offset : home_ + (offset - geometry_.log_bytes);
  }
  void note_line(std::uint64_t line) noexcept;

  Geometry geometry_;
  medium::Descriptor memory_;
  std::byte *log_ = nullptr, *home_ = nullptr;
  std::vector<medium::RingMap> rings_;
  DirtyLines dirty_;
  std::vector<bool> in_use_;                // of each line of the image: it is not zero
  std::vector<std::uint8_t> lines_in_use_;  // of each page of it: how many of them
  medium::PageMap pages_;                   // of the medium that is open
};

}  // namespace perdure::crash
