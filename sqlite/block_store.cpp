// SPDX-License-Identifier: BSD-3-Clause
#include "sqlite/block_store.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace perdure::sqlite {
namespace {

constexpr std::uint64_t lines_in_block = block_bytes / medium::line_bytes;
/// This many blocks are added to a file, or freed, in one transaction.
constexpr std::uint64_t blocks_at_once = 16;
/// This many blocks of a journal are kept for the next journal.
constexpr std::uint64_t journal_keeps = 256;
constexpr std::size_t database_number = 0, journal_number = 1;
constexpr std::uint64_t unknown = ~std::uint64_t{0};

}  // namespace

BlockFile::BlockFile(BlockPool& pool, const Store& owner, const std::string& path,
                     std::size_t which)
    : pool_(pool), medium_(pool.file().medium()), owner_(owner), path_(path), which_(which) {
  durable_1_ = pool_.view([&](auto& tx, const BlockRoot& root) -> std::uint64_t {
    const FileRoot& file = root.file[which_];
    at_ = place_of(&file.size_1);
    for (std::uint64_t t = 0; t < tables_in_file; ++t) {
      const Table* const table = tx(file.blocks.table[t]);
      if (table == nullptr) break;
      for (const auto& slot : table->block) {
        const Block* const block = tx(slot);
        if (block == nullptr) return tx(file.size_1);
        blocks_.push_back(place_of(block));
      }
    }
    return tx(file.size_1);
  });
  size_1_.store(durable_1_, std::memory_order_release);
}

std::uint64_t BlockFile::place_of(const void* in_view) const noexcept {
  return medium_.log_bytes() +
         static_cast<std::uint64_t>(static_cast<const std::byte*>(in_view) - pool_.file().view());
}

std::uint64_t BlockFile::size() const noexcept {
  // pairs with write, truncate: what lies below the size is stored
  const std::uint64_t s = size_1_.load(std::memory_order_acquire);
  return s == 0 ? 0 : s - 1;
}

void BlockFile::set_size(std::uint64_t size_1) {
  size_1_.store(size_1, std::memory_order_release);
  if (owner_.waits()) return;
  medium_.store(at_, &size_1, sizeof size_1);
  durable_1_ = unknown;
}

void BlockFile::make() {
  if (!there()) set_size(1);
}

void BlockFile::remove() {
  if (!there()) return;
  set_size(0);
  dirty_.clear();
  if (owner_.waits()) sync(Durability::durable);
}

std::uint64_t BlockFile::read(std::uint64_t offset, void* to, std::uint64_t n) {
  const std::uint64_t end = size(), there = offset >= end ? 0 : std::min(n, end - offset);
  auto* out = static_cast<std::byte*>(to);
  std::memset(out + there, 0, n - there);
  for (std::uint64_t left = there; left != 0;) {
    const std::uint64_t skip = offset % block_bytes, part = std::min(left, block_bytes - skip);
    std::memcpy(out, medium_.at(blocks_[offset / block_bytes] + skip), part);
    offset += part, out += part, left -= part;
  }
  return there;
}

// BLOCKSTORE-2: the blocks belong to the file before they are written to.
void BlockFile::reserve(std::uint64_t bytes) {
  if (bytes > max_bytes)
    throw error(failure(Code::full, path_, "a file of " + std::to_string(bytes) + " bytes",
                        "at most " + std::to_string(max_bytes)));
  while (blocks_.size() < blocks_of(bytes)) {
    std::array<Block*, blocks_at_once> made{};
    const std::uint64_t first = blocks_.size(),
                        n = std::min(blocks_at_once, max_bytes / block_bytes - first);
    pool_.update(Durability::durable, [&](auto& tx, BlockRoot& root) {
      for (std::uint64_t i = 0; i < n; ++i) {
        made[i] = reinterpret_cast<Block*>(tx.alloc(block_bytes));
        tx(root.file[which_].blocks.place(tx, first + i)) = made[i];
      }
    });
    for (std::uint64_t i = 0; i < n; ++i) blocks_.push_back(place_of(made[i]));
  }
}

void BlockFile::put(std::uint64_t offset, const std::byte* from, std::uint64_t n) {
  while (n != 0) {
    const std::uint64_t skip = offset % block_bytes, part = std::min(n, block_bytes - skip),
                        block = blocks_[offset / block_bytes];
    medium_.store(block + skip, from, part);
    const std::uint64_t first = skip / medium::line_bytes,
                        lines = (skip + part - 1) / medium::line_bytes - first + 1;
    dirty_[block] |= (lines == lines_in_block ? ~std::uint64_t{0} : (std::uint64_t{1} << lines) - 1)
                     << first;
    offset += part, from += part, n -= part;
  }
}

void BlockFile::write(std::uint64_t offset, const void* from, std::uint64_t n) {
  const std::uint64_t end = size();
  reserve(std::max(end, offset + n));
  static constexpr std::array<std::byte, block_bytes> zeros{};
  for (std::uint64_t gap = end; gap < offset;) {  // clears what the blocks contained before
    const std::uint64_t part = std::min(offset - gap, block_bytes - gap % block_bytes);
    put(gap, zeros.data(), part);
    gap += part;
  }
  put(offset, static_cast<const std::byte*>(from), n);
  if (offset + n > end) set_size(offset + n + 1);
}

void BlockFile::truncate(std::uint64_t bytes) {
  if (bytes > size()) {
    const std::byte zero{};
    write(bytes - 1, &zero, 1);
  } else {
    set_size(bytes + 1);
    if (bytes == 0) dirty_.clear();
    if (which_ == journal_number && owner_.waits()) sync(Durability::durable);
  }
}

void BlockFile::sync(Durability durability) {
  // Written back whenever the cache does it, as in a file system
  if (durability == Durability::async) return;
  if (!dirty_.empty()) {
    for (const auto& [block, lines] : dirty_)
      for (std::uint64_t left = lines; left != 0;) {  // one run of lines each
        const auto first = static_cast<std::uint64_t>(std::countr_zero(left)),
                   run = static_cast<std::uint64_t>(std::countr_one(left >> first));
        medium_.flush(block + first * medium::line_bytes, run * medium::line_bytes);
        left = first + run == lines_in_block ? 0 : left >> (first + run) << (first + run);
      }
    // BLOCKSTORE-1: the bytes are durable before a size that counts them.
    medium_.fence().or_throw();
    dirty_.clear();
  }
  const std::uint64_t size_1 = size_1_.load(std::memory_order_relaxed);
  if (size_1 == durable_1_) return;
  medium_.store(at_, &size_1, sizeof size_1);
  medium_.flush(at_, sizeof size_1);
  // Before the call returns, and before blocks are freed (BLOCKSTORE-2).
  medium_.fence().or_throw();
  durable_1_ = size_1;
}

void BlockFile::trim(std::uint64_t kept) {
  const std::uint64_t needed = std::max(blocks_of(size()), kept), had = blocks_.size();
  if (durable_1_ != size_1_.load(std::memory_order_relaxed) || needed + blocks_at_once > had)
    return;
  while (blocks_.size() > needed) {
    const std::uint64_t to = blocks_.size(),
                        from = std::max(needed, to - std::min(to, blocks_at_once));
    pool_.update(Durability::durable, [&](auto& tx, BlockRoot& root) {
      root.file[which_].blocks.free(tx, from, to);
      root.file[which_].blocks.free_tables(tx, from, to);
    });
    blocks_.resize(from);
  }
}

BlockStore::BlockStore(std::string path, BlockPool pool, bool read_only)
    : Store(std::move(path), read_only),
      pool_(std::move(pool)),
      database_(pool_, *this, path_, database_number),
      journal_(pool_, *this, path_, journal_number) {
  database_.make();
}

BlockStore::~BlockStore() {
  try {
    if (!closed_) close();
  } catch (const error&) {  // the medium has failed: the same as after a crash
  }
}

void BlockStore::close() {
  closed_ = true;
  if (!read_only()) {
    // first: it is for what the database may have of an open transaction
    journal_.sync(Durability::durable);
    database_.sync(Durability::durable);
  }
  pool_.close();
}

Options BlockStore::options_of(const std::string& path, Options options) {
  if (!options.engine.empty() && options.engine != undo_none::names[0].name)
    throw error(failure(Code::invalid, path, "engine=" + options.engine + " with design=a",
                        "none: SQLite's own journal is the log", "leave it out"));
  options.engine = undo_none::names[0].name;
  return options;
}

void BlockStore::sync(Durability durability) {
  database_.sync(durability);
  if (durability != Durability::async) database_.trim(0);
}

File* BlockStore::journal(bool make) {
  if (!journal_.there()) {
    if (!make) return nullptr;
    journal_.make();
  }
  return &journal_;
}

void BlockStore::remove_journal() {
  journal_.remove();
  journal_.trim(journal_keeps);
}

}  // namespace perdure::sqlite
