// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/follow/private_state.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "perdure/pool/directory.hpp"
#include "perdure/pool/heap_apply.hpp"
#include "perdure/pool/size_classes.hpp"

namespace perdure::engine::follow {
namespace {

// Where the bytes end that the data region must have for an op: a block's span may begin before the
// end of what is mapped, and end after it.
std::uint64_t end_of(const pool::HeapOp& op, const pool::Directory& directory) {
  if (op.cls == pool::large_class) return op.offset + pool::op_bytes(op);
  if (op.cls >= pool::small_classes || op.offset / pool::chunk_bytes < directory.first_chunk())
    return op.offset;  // no op
  const std::uint32_t chunks = pool::classes[op.cls].chunks;
  return (pool::span_chunk_of(op.offset, chunks, directory.first_chunk()) + chunks) *
         pool::chunk_bytes;
}

// The directory words and the bitmap that an op may change.
template <class F>
void each_range(const pool::HeapOp& op, const pool::Directory& directory, F&& f) {
  if (op.cls >= pool::small_classes) {
    const std::uint64_t chunk = op.offset / pool::chunk_bytes;
    f(directory.word(chunk), op.chunks * 8);
    return;
  }
  const pool::ClassInfo& info = pool::classes[op.cls];
  const std::uint64_t chunk = pool::span_chunk_of(op.offset, info.chunks, directory.first_chunk());
  f(directory.word(chunk), std::uint64_t{info.chunks} * 8);
  f(chunk * pool::chunk_bytes, std::uint64_t{info.first});
}

}  // namespace

// Stores to private pages only.
class PrivateState::Target final : public pool::HeapTarget {
 public:
  Target(PrivateState& state, std::uint64_t last, bool whole)
      : state_(state), last_(last), whole_(whole) {}
  [[nodiscard]] bool right() const noexcept { return right_; }
  void words(std::uint64_t offset, const std::uint64_t* values, std::uint64_t n) {
    if (is_private(offset, n * 8)) std::memcpy(at(offset), values, n * 8);
  }
  [[nodiscard]] std::uint64_t load(std::uint64_t offset) const override {
    std::uint64_t word;
    std::memcpy(&word, at(offset), sizeof word);
    return word;
  }
  void store(std::uint64_t offset, std::uint64_t value) override {
    if (is_private(offset, 8)) std::memcpy(at(offset), &value, sizeof value);
  }
  void set_bits(std::uint64_t offset, std::uint64_t mask) override {
    store(offset, load(offset) | mask);
  }
  void clear_bits(std::uint64_t offset, std::uint64_t mask) override {
    store(offset, load(offset) & ~mask);
  }
  [[nodiscard]] bool replay() const noexcept override { return !whole_; }
  void fence(std::uint64_t, std::uint64_t) override {}

 private:
  [[nodiscard]] std::byte* at(std::uint64_t offset) const noexcept {
    return state_.file_.view() + offset;
  }
  // What an op of replay examines besides is not known before. While the state is not whole, a page
  // may be made private late.
  bool is_private(std::uint64_t offset, std::uint64_t bytes) {
    for (std::uint64_t page = offset / page_bytes; page <= (offset + bytes - 1) / page_bytes;
         ++page) {
      if (state_.last_[page] != 0) continue;
      if (whole_) return right_ = false;
      state_.touch(page * page_bytes, 1, last_);
    }
    return true;
  }
  PrivateState& state_;
  const std::uint64_t last_;
  const bool whole_;
  bool right_ = true;
};

PrivateState::~PrivateState() {
  if (last_ != nullptr) ::munmap(last_, last_bytes_);
}

Status PrivateState::attach(const pool::Header& header) {
  if (Status s = file_.follow_from(header); !s.ok()) return s;
  if (last_ == nullptr) {
    const std::uint64_t bytes = pool::Directory(header).max_data_bytes() / page_bytes * 8;
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
      return system_failure(file_.path(), "mmap of " + std::to_string(bytes) + " bytes", errno);
    last_ = static_cast<std::uint64_t*>(at);
    last_bytes_ = bytes;
  } else {
    for (const std::uint64_t page : private_) last_[page] = 0;
  }
  private_.clear();
  pages_.store(0, std::memory_order_relaxed);
  return {};
}

void PrivateState::touch(std::uint64_t offset, std::uint64_t bytes, std::uint64_t last) {
  for (std::uint64_t page = offset / page_bytes; page <= (offset + bytes - 1) / page_bytes;
       ++page) {
    if (last_[page] == 0) {
      private_.push_back(page);
      // A store that changes nothing, and that no compiler may leave out: it makes the page's copy.
      auto* const word = reinterpret_cast<std::uint64_t*>(file_.view() + page * page_bytes);
      __asm__ volatile("lock orq $0, %0" : "+m"(*word) : : "cc", "memory");
      pages_.store(private_.size(), std::memory_order_relaxed);
    }
    last_[page] = std::max(last_[page], last);
  }
}

// GROW-1: the header has a new length before a record names what was added.
Status PrivateState::grow_to(std::uint64_t bytes) {
  if (bytes <= file_.data_bytes()) return {};
  const auto strange = [this](std::uint64_t end) {
    return failure(Code::corrupt, file_.path(),
                   "a record that names bytes up to " + std::to_string(end) + " of the data region",
                   "at most " + std::to_string(file_.data_bytes()));
  };
  const auto header = file_.newest_header();
  if (!header.ok()) return header.status();
  if (bytes > header->data_bytes) return strange(bytes);
  return file_.follow_growth(header->data_bytes);
}

Status PrivateState::prepare(const std::uint64_t* payload, std::uint64_t words,
                             std::uint64_t last) {
  const pool::Directory directory(file_.header());
  Status status;
  const auto range = [&](std::uint64_t offset, std::uint64_t bytes) {
    if (status.ok()) status = grow_to(offset + bytes);
    if (status.ok()) touch(offset, bytes, last);
  };
  const bool sound = log::each_entry(payload, words, [&](const log::Entry& e) {
    switch (e.kind) {
      case log::EntryKind::words:
        if (e.count == 0) status = failure(Code::corrupt, file_.path(), "an entry of no words");
        range(e.offset, e.count * 8);
        return;
      case log::EntryKind::alloc:
      case log::EntryKind::free: {
        const pool::HeapOp op = e.heap_op();
        if (status.ok()) status = grow_to(end_of(op, directory));
        if (status.ok() && !pool::possible(op, file_.data_bytes(), directory))
          status = failure(Code::corrupt, file_.path(), "a record of a block that can't be");
        if (status.ok()) each_range(op, directory, range);
        return;
      }
      case log::EntryKind::end:
      case log::EntryKind::note:
      case log::EntryKind::after: return;
      case log::EntryKind::before:
        status = failure(Code::corrupt, file_.path(), "an undo entry in a redo log");
    }
  });
  if (!sound && status.ok())
    status = failure(Code::corrupt, file_.path(), "a record whose entries overrun it");
  return status;
}

bool PrivateState::apply(const std::uint64_t* payload, std::uint64_t words, std::uint64_t last,
                         bool whole) {
  const pool::Directory directory(file_.header());
  Target target(*this, last, whole);
  (void)log::each_entry(payload, words, [&](const log::Entry& e) {
    if (e.kind == log::EntryKind::words)
      target.words(e.offset, e.values, e.count);
    else if (e.kind == log::EntryKind::alloc || e.kind == log::EntryKind::free)
      pool::apply_op(target, e.heap_op(), directory);
  });
  return target.right();
}

bool PrivateState::give_back(std::uint64_t up_to, std::uint64_t most) noexcept {
  const auto done = std::partition(private_.begin(), private_.end(),
                                   [&](std::uint64_t page) { return last_[page] > up_to; });
  std::sort(done, private_.end());
  const std::uint64_t all = static_cast<std::uint64_t>(private_.end() - done);
  const auto end = done + static_cast<std::ptrdiff_t>(std::min(all, most));
  for (auto i = done; i != end;) {
    auto j = i + 1;
    while (j != end && *j == *(j - 1) + 1) ++j;
    const std::uint64_t n = static_cast<std::uint64_t>(j - i);
    if (::madvise(file_.view() + *i * page_bytes, n * page_bytes, MADV_DONTNEED) == 0)
      std::fill(last_ + *i, last_ + *i + n, 0);
    i = j;
  }
  private_.erase(
      std::remove_if(done, private_.end(), [&](std::uint64_t page) { return last_[page] == 0; }),
      private_.end());
  pages_.store(private_.size(), std::memory_order_relaxed);
  return all <= most;
}

}  // namespace perdure::engine::follow
