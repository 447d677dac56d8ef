// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/copy.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include "perdure/pool/allocation.hpp"
#include "perdure/pool/create.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/heap_apply.hpp"

namespace perdure::pool {
namespace {

constexpr std::uint64_t piece = 64 << 10, told_each = 1 << 20;

// Chunks [from, to) of a block's span, or of a large block.
std::pair<std::uint64_t, std::uint64_t> chunks_of(const HeapOp& op, const Directory& directory) {
  if (op.cls == large_class) return {op.offset / chunk_bytes, op.offset / chunk_bytes + op.chunks};
  const std::uint32_t n = classes[op.cls].chunks;
  const std::uint64_t chunk = span_chunk_of(op.offset, n, directory.first_chunk());
  return {chunk, std::min(chunk + n, directory.section_end(chunk))};
}

class Copying {
 public:
  Copying(medium::Medium& medium, const Header& header, const PoolState& state,
          const std::function<void(std::uint64_t, std::uint64_t)>& progress)
      : medium_(medium),
        directory_(header),
        state_(state),
        progress_(progress),
        data_(medium, header.log_bytes) {
    for (const HeapOp& block : state.blocks) bytes_ += op_bytes(block);
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  Status run() {
    // The data region's first page has the address of a catalog that the pool got later.
    words(0, directory_offset);
    std::uint64_t allocated = 0;  // chunks below it that are used have file blocks
    for (const HeapOp& op : state_.blocks) {
      const auto [from, to] = chunks_of(op, directory_);
      if (from >= allocated) {
        if (Status s = allocate_chunks(medium_, from, to - from); !s.ok()) return s;
        allocated = to;
      }
      apply_op(data_, op, directory_);
      words(op.offset, op_bytes(op));
    }
    state_.must_be_sound();
    return medium_.fence();
  }

 private:
  // A word of zeros is there already.
  void words(std::uint64_t offset, std::uint64_t n) {
    const auto is_zero = [](std::byte b) { return b == std::byte{0}; };
    for (std::uint64_t at = 0; at < n; at += piece) {
      const std::uint64_t now = std::min(piece, n - at);
      state_.read(buffer_, offset + at, now);
      if (!std::all_of(buffer_, buffer_ + now, is_zero)) data_.store(offset + at, buffer_, now);
      done_ += offset == 0 ? 0 : now;
      if (progress_ && (done_ >= told_ + told_each || done_ == bytes_) && done_ != told_)
        progress_(told_ = done_, bytes_);
    }
  }

  medium::Medium& medium_;
  const Directory directory_;
  const PoolState& state_;
  const std::function<void(std::uint64_t, std::uint64_t)>& progress_;
  NewDataRegion data_;
  std::uint64_t bytes_ = 0, done_ = 0, told_ = 0;
  alignas(64) std::byte buffer_[piece];
};

}  // namespace

Status copy_pool(const OpenPool& pool, const std::string& path, const PoolState& state,
                 const std::function<void(std::uint64_t done, std::uint64_t bytes)>& progress) {
  Header h = pool.header_of_clean_close(state.id);
  // A feature that this build does not know may need more than blocks.
  if (Status s = check_features(pool.path(), h, true); !s.ok()) return s;
  if (Status s = fresh_uuid(h.uuid, 0); !s.ok()) return s;
  h.heap_exact = 1;
  h.created_unix = static_cast<std::uint64_t>(std::time(nullptr));
  set_feature(h, Feature::small_logs);
  OpenFile how;
  how.path = path;
  how.direct = false;  // nothing is appended to the log
  how.mode = pool.file_mode();
  Plan plan;
  plan.log_bytes = h.log_bytes;
  plan.ring_bytes = h.ring_bytes;
  plan.rings = h.ring_count;
  plan.data_bytes = h.data_bytes;
  plan.max_data_bytes = Directory(h).max_data_bytes();
  Status made = create_file(how, plan, nullptr, [&](medium::Medium& medium, AddressRange&) {
                  if (Status s = allocate_frame(medium, h); !s.ok()) return s;
                  Copying copying(medium, h, state, progress);
                  // Durable before the header that makes it a pool's.
                  if (Status s = copying.run(); !s.ok()) return s;
                  h.heap_used = copying.bytes();
                  if (Status s = write_header(medium, h, false); !s.ok()) return s;
                  return medium.flush_all();
                }).status();
  if (made.code() == Code::exists)
    return failure(Code::exists, path, "a file of that name", "none: a copy replaces no file",
                   "name another file, or remove this one first");
  return made;
}

}  // namespace perdure::pool
