// SPDX-License-Identifier: BSD-3-Clause
#include "papers/dudetm/combiner.hpp"

#include <algorithm>

#include "perdure/pool/size_classes.hpp"

namespace perdure::papers::dudetm {
namespace {

constexpr std::size_t min_slots = 1024;

// The maximum number of lines of a span's bitmap: that of the smallest blocks. A span lies at a
// multiple of a chunk, so the low bits of its offset are free to hold the number.
constexpr std::uint64_t max_bitmap_lines = [] {
  std::uint64_t most = 0;
  for (const pool::ClassInfo& c : pool::classes) most = c.first / 64 > most ? c.first / 64 : most;
  return most;
}();
static_assert(max_bitmap_lines < pool::chunk_bytes);

bool is_op(const Entry& e) { return e.kind == EntryKind::alloc || e.kind == EntryKind::free; }

}  // namespace

void Combiner::configure(const pool::Directory& directory) {
  first_chunk_ = directory.first_chunk();
  rehash(min_slots);
}

std::size_t Combiner::slot_of(std::uint64_t line) const noexcept {
  const std::size_t mask = index_.size() - 1;
  std::size_t slot = base::mix(line) & mask;
  while (index_[slot] != 0 && lines_[index_[slot] - 1].line != line) slot = (slot + 1) & mask;
  return slot;
}

void Combiner::rehash(std::size_t slots) {
  index_.assign(slots, 0);
  for (std::size_t i = 0; i < lines_.size(); ++i)
    index_[slot_of(lines_[i].line)] = static_cast<std::uint32_t>(i + 1);
}

Combiner::Line& Combiner::line_at(std::uint64_t line) {
  std::size_t slot = slot_of(line);
  if (index_[slot] != 0) return lines_[index_[slot] - 1];
  if ((lines_.size() + 1) * 2 > index_.size()) {
    rehash(index_.size() * 2);
    slot = slot_of(line);
  }
  lines_.push_back({line});
  index_[slot] = static_cast<std::uint32_t>(lines_.size());
  return lines_.back();
}

// Returns the span of an op on a small block, with the number of its bitmap's lines in the low
// bits; 0 for an op on a large block, which has no span.
std::uint64_t Combiner::span_of(const pool::HeapOp& op) const noexcept {
  if (op.cls >= pool::small_classes) return 0;
  const pool::ClassInfo& info = pool::classes[op.cls];
  return pool::span_chunk_of(op.offset, info.chunks, first_chunk_) * pool::chunk_bytes +
         info.first / 64;
}

bool Combiner::in_bitmap(std::uint64_t line) const noexcept {
  const std::uint64_t offset = line * 64, chunk = offset / pool::chunk_bytes * pool::chunk_bytes;
  if (offset - chunk >= max_bitmap_lines * 64) return false;
  for (auto at = std::lower_bound(spans_.begin(), spans_.end(), chunk);
       at != spans_.end() && *at - chunk < pool::chunk_bytes; ++at)
    // Spans of several classes may have been here one after the other.
    if (offset - chunk < *at % pool::chunk_bytes * 64) return true;
  return false;
}

bool Combiner::commutes(const std::uint64_t* payload, std::uint64_t words) const {
  bool good = true;
  each_entry(payload, words, [&](const Entry& e) {
    if (!good) return;
    if (is_op(e)) {
      const std::uint64_t span = span_of(e.heap_op());
      // A span that the group has already needs no second check.
      if (span == 0 || std::binary_search(spans_.begin(), spans_.end(), span)) return;
      const std::uint64_t first = span / pool::chunk_bytes * pool::chunk_bytes / 64;
      // mutant: combine-op-after-word
      for (std::uint64_t i = 0; i < span % pool::chunk_bytes; ++i)
        good = good && !has_line(first + i);
    } else if (e.kind == EntryKind::words && !spans_.empty()) {
      // mutant: combine-word-after-op
      for (std::uint64_t line = e.offset / 64; line <= (e.offset + e.count * 8 - 1) / 64; ++line)
        good = good && !in_bitmap(line);
    }
  });
  return good;
}

void Combiner::add(const std::uint64_t* payload, std::uint64_t words) {
  words_in_ += words;
  each_entry(payload, words, [&](const Entry& e) {
    if (is_op(e)) {
      ops_.push_back(e.heap_op());
      if (const std::uint64_t span = span_of(ops_.back()); span != 0)
        if (const auto at = std::lower_bound(spans_.begin(), spans_.end(), span);
            at == spans_.end() || *at != span)
          spans_.insert(at, span);
    } else if (e.kind == EntryKind::words) {
      for (std::uint64_t i = 0; i < e.count;) {
        const std::uint64_t word = e.offset / 8 + i, at = word % 8,
                            n = std::min(8 - at, e.count - i);
        Line& line = line_at(word / 8);
        line.mask |= ((std::uint64_t{1} << n) - 1) << at;
        std::memcpy(line.values + at, e.values + i, n * 8);
        i += n;
      }
    }
  });
}

void Combiner::write(RecordWriter& record) {
  for (const pool::HeapOp& op : ops_) record.heap_op(op);
  std::sort(lines_.begin(), lines_.end(),
            // This makes the index invalid; clear() follows.
            [](const Line& a, const Line& b) { return a.line < b.line; });
  std::uint64_t begin = 0;  // the run's first word
  run_.clear();
  const auto end_run = [&] {
    if (!run_.empty()) record.words(begin * 8, run_.data(), run_.size());
    run_.clear();
  };
  for (const Line& line : lines_)
    for (std::uint64_t m = line.mask; m != 0; m &= m - 1) {
      const auto at = static_cast<std::uint64_t>(__builtin_ctzll(m));
      if (const std::uint64_t word = line.line * 8 + at;
          run_.empty() || begin + run_.size() != word) {
        end_run();
        begin = word;
      }
      run_.push_back(line.values[at]);
    }
  end_run();
}

void Combiner::clear() noexcept {
  // The index shrinks again, so that one large group does not make each small one after it as
  // expensive.
  std::size_t slots = index_.size();
  while (slots > min_slots && slots / 16 > lines_.size()) slots /= 2;
  index_.resize(slots);
  std::fill(index_.begin(), index_.end(), 0);
  lines_.clear();
  ops_.clear();
  spans_.clear();
  words_in_ = 0;
}

}  // namespace perdure::papers::dudetm
