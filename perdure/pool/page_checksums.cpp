// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/page_checksums.hpp"

#include <algorithm>
#include <string>

#include "perdure/base/cpu.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/size_classes.hpp"

namespace perdure::pool {
namespace {

// Spans of n chunks lie at multiples of n from the first chunk for objects. A run of a multiple of
// the largest n does not change that, neither for builds that do not know the run.
constexpr std::uint64_t run_unit = classes[small_classes - 1].chunks;

std::uint64_t chunks_for(std::uint64_t limit) noexcept {
  const std::uint64_t bytes = limit / PageSum::page_bytes * 8;
  const std::uint64_t chunks = (bytes + chunk_bytes - 1) / chunk_bytes;
  return (chunks + run_unit - 1) / run_unit * run_unit;
}

Directory without_checksums(const Header& h, std::uint64_t limit) noexcept {
  return Directory(h.raised_max_bytes != 0 ? h.first_max_bytes : h.max_data_bytes, limit);
}

}  // namespace

bool PageChecksums::has(const Header& header) noexcept {
  return header.checksums_bytes != 0;  // only with the feature (contradiction_of_checksums)
}

void PageChecksums::mark(std::uint64_t checkpoint_id) noexcept {
  set(offset_ / page_bytes, checkpoint_id + 1);
}

bool PageChecksums::marked(std::uint64_t checkpoint_id) const noexcept {
  return load(offset_ / page_bytes) == checkpoint_id + 1;
}

void PageChecksums::forget(std::uint64_t chunk, std::uint64_t count) noexcept {
  const std::uint64_t zeros[chunk_pages] = {};
  for (const std::uint64_t end = chunk + count; chunk < end; ++chunk) {
    if (!covers(chunk * chunk_pages)) continue;
    const std::uint64_t at = medium_.log_bytes() + offset(chunk * chunk_pages);
    if (!medium_.allocated(at, sizeof zeros)) continue;  // zeros already
    medium_.store(at, zeros, sizeof zeros);
    // mutant: checksum-forget-flushes, call checksum-forget-flushes
    medium_.flush(at, sizeof zeros);
  }
}

void PageChecksums::each_page(std::uint64_t data_bytes,
                              const std::function<void(std::uint64_t)>& f) const {
  for (std::uint64_t page = 0; page < data_bytes / page_bytes; ++page) {
    if (!covers(page)) continue;
    const std::uint64_t chunk = page / chunk_pages;
    std::uint64_t word;
    std::memcpy(&word, medium_.data() + directory_.word(chunk), sizeof word);
    // A hole is not read: on tmpfs that would take a page.
    if ((word != 0 || directory_.holds_words(chunk)) &&
        medium_.allocated(medium_.log_bytes() + page * page_bytes, page_bytes))
      f(page);
  }
}

void PageChecksums::compute_all(std::uint64_t data_bytes) {
  each_page(data_bytes, [this](std::uint64_t page) { set(page, computed(page)); });
}

void PageChecksums::forget_freed(const std::uint64_t* offsets, std::size_t n,
                                 const std::uint64_t* words, const std::byte* view) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    if (offsets[i] < directory_offset || directory_.holds_checksums(offsets[i] / chunk_bytes))
      continue;
    std::uint64_t old[8];
    std::memcpy(old, medium_.data() + offsets[i], sizeof old);
    for (std::uint64_t w = 0; w < 8; ++w) {
      const std::uint64_t at = offsets[i] + w * 8;
      if (old[w] == 0 || words[i * 8 + w] != 0) continue;
      // Relaxed: if it is used just now, its pages are copied by the next checkpoint.
      if (__atomic_load_n(reinterpret_cast<const std::uint64_t*>(view + at), __ATOMIC_RELAXED) != 0)
        continue;
      // mutant: checksum-forgets-freed
      forget(directory_.chunk_of_word(at), 1);
    }
  }
}

void PageChecksums::Change::prepare(const std::uint64_t* offsets, std::size_t n,
                                    const std::uint64_t* words) noexcept {
  // A line's old words, and its page's checksum, are seldom in a cache.
  constexpr std::size_t ahead = 8;
  const std::byte* const data = sums_.medium_.data();
  pages_.clear();
  for (std::size_t i = 0; i < n;) {
    const std::uint64_t page = offsets[i] / page_bytes;
    std::size_t end = i + 1;
    while (end < n && offsets[end] / page_bytes == page) ++end;
    if (!sums_.covers(page)) {
      i = end;
      continue;
    }
    const PageSum sum(page);
    const std::uint64_t before = sums_.load(page);
    // Where no line stays, there is nothing that the old sum could still tell.
    const bool anew = before == 0 || end - i == page_bytes / PageSum::line_bytes;
    std::uint64_t after = anew ? 0 : before;
    if (anew) {
      // The lines that stay as they are; the others follow.
      std::size_t next = i;
      for (std::uint64_t line = 0; line < page_bytes / PageSum::line_bytes; ++line) {
        const std::uint64_t at = page * page_bytes + line * PageSum::line_bytes;
        if (next < end && offsets[next] == at)
          ++next;
        else if (PageSum::counts(page, line))
          after += sum.line(line, data + at);
      }
    }
    for (; i < end; ++i) {
      if (i + ahead < n) __builtin_prefetch(data + offsets[i + ahead]);
      const std::uint64_t line = offsets[i] % page_bytes / PageSum::line_bytes;
      // mutant: checksum-subtracts-old
      if (!anew) after -= sum.line(line, data + offsets[i]);
      after += sum.line(line, words + i * 8);
    }
    pages_.push_back({page, after});
    // mutant: checksum-zero-meanwhile
    if (before != 0) sums_.set(page, 0, false);
  }
  // CHECKSUM-3: nobody sees a line of a batch before the zeros. Streams overtake stores.
  if (!pages_.empty()) base::store_fence();
}

void PageChecksums::Change::publish() noexcept {
  if (pages_.empty()) return;
  // CHECKSUM-3: nobody sees a new checksum before the lines.
  base::store_fence();
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    const std::uint64_t page = pages_[i].page;
    // Eight words are one line: it is written back once.
    const bool last = i + 1 == pages_.size() || pages_[i + 1].page / 8 != page / 8;
    sums_.set(page, pages_[i].sum, last);
  }
}

DataRange checksums_of_new_pool(std::uint64_t max_data_bytes) noexcept {
  return {Directory(max_data_bytes).first_chunk() * chunk_bytes,
          chunks_for(max_data_bytes) * chunk_bytes};
}

DataRange checksums_of_old_pool(const Header& header, std::uint64_t limit) noexcept {
  const Directory directory = without_checksums(header, limit);
  const std::uint64_t count = chunks_for(limit), first = directory.first_chunk();
  std::uint64_t at = (header.data_bytes + chunk_bytes - 1) / chunk_bytes;
  while (at < directory.chunks()) {
    const std::uint64_t from = std::max(at, directory.first_object(at));
    const std::uint64_t begin = first + (from - first + run_unit - 1) / run_unit * run_unit;
    if (begin + count <= directory.section_end(at))
      return {begin * chunk_bytes, count * chunk_bytes};
    at = directory.section_end(at);
  }
  return {};
}

void place_checksums_anew(Header& header) noexcept {
  if (header.checksums_bytes == 0) return;
  const std::uint64_t limit = Directory(header).max_data_bytes();
  const bool from_the_start =
      header.checksums_offset == without_checksums(header, limit).first_chunk() * chunk_bytes;
  if (from_the_start && header.checksums_offset + header.checksums_bytes <= header.data_bytes)
    return;
  const DataRange place = checksums_of_old_pool(header, limit);
  header.checksums_offset = place.offset;
  header.checksums_bytes = place.bytes;
  if (place.bytes == 0)
    header.features_write &= ~info(Feature::data_checksums).bit();
  else
    set_data_bytes(header, std::max(header.data_bytes, place.offset + place.bytes));
}

std::string contradiction_of_checksums(const Header& h) {
  const std::uint64_t offset = h.checksums_offset, bytes = h.checksums_bytes;
  const std::string text =
      "checksums of " + std::to_string(bytes) + " bytes at " + std::to_string(offset);
  if (!has_feature(h, Feature::data_checksums)) return offset == 0 && bytes == 0 ? "" : text;
  if (bytes == 0 || bytes % chunk_bytes != 0 || offset % chunk_bytes != 0 ||
      bytes > max_data_limit || offset > max_data_limit)
    return text;
  const Directory directory = without_checksums(h, Directory(h).max_data_bytes());
  const std::uint64_t first = offset / chunk_bytes, end = first + bytes / chunk_bytes;
  // In one section, behind its words, and in the data region.
  // mutant: header-checksums-in-section
  return first < directory.first_object(first) || end > directory.section_end(first) ||
                 end * chunk_bytes > h.data_bytes
             ? text
             : "";
}

}  // namespace perdure::pool
