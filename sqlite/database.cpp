// SPDX-License-Identifier: BSD-3-Clause
#include "sqlite/database.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace perdure::sqlite {

Database::Database(std::string path, DatabasePool pool, bool read_only)
    : Store(std::move(path), read_only), pool_(std::move(pool)) {
  size_ = committed_ =
      pool_.view([](auto& tx, const Root& root) -> std::uint64_t { return tx(root.bytes); });
  if (!read_only) free_beyond(committed_);
}

void Database::load(std::uint64_t number, std::uint64_t skip, std::byte* to, std::uint64_t n) {
  pool_.view([&](auto& tx, const Root& root) {
    const ptr<Block>* const slot = root.blocks.find(tx, number);
    const Block* const block = slot == nullptr ? nullptr : tx(*slot);
    if (block == nullptr)
      std::memset(to, 0, n);
    else
      tx.read_bytes(to, reinterpret_cast<const std::byte*>(block) + skip, n);
  });
}

std::uint64_t Database::read(std::uint64_t offset, void* to, std::uint64_t n) {
  const std::uint64_t there = offset >= size_ ? 0 : std::min(n, size_ - offset);
  auto* out = static_cast<std::byte*>(to);
  std::memset(out + there, 0, n - there);
  for (std::uint64_t left = there; left != 0;) {
    const std::uint64_t number = offset / block_bytes, skip = offset % block_bytes,
                        part = std::min(left, block_bytes - skip);
    if (const auto mine = overlay_.find(number); mine != overlay_.end())
      std::memcpy(out, mine->second->data() + skip, part);
    else
      load(number, skip, out, part);
    offset += part;
    out += part;
    left -= part;
  }
  return there;
}

Database::Bytes& Database::overlaid(std::uint64_t number) {
  auto& mine = overlay_[number];
  if (mine == nullptr) {
    mine = std::make_unique<Bytes>();
    load(number, 0, mine->data(), block_bytes);
    // Bytes beyond the end read as zeros, whatever the block contains there.
    const std::uint64_t end = std::min(size_, committed_), first = number * block_bytes;
    if (first + block_bytes > end)
      std::memset(mine->data() + (end > first ? end - first : 0), 0,
                  first + block_bytes - std::max(end, first));
  }
  return *mine;
}

void Database::write(std::uint64_t offset, const void* from, std::uint64_t n) {
  if (offset + n > max_bytes)
    throw error(failure(Code::full, path_, "a database of " + std::to_string(offset + n) + " bytes",
                        "at most " + std::to_string(max_bytes)));
  const auto* in = static_cast<const std::byte*>(from);
  const std::uint64_t end = offset + n;
  for (; offset < end;) {
    const std::uint64_t skip = offset % block_bytes,
                        part = std::min(end - offset, block_bytes - skip);
    std::memcpy(overlaid(offset / block_bytes).data() + skip, in, part);
    offset += part;
    in += part;
  }
  size_ = std::max(size_, end);
}

void Database::truncate(std::uint64_t bytes) {
  if (bytes < size_) {
    overlay_.erase(overlay_.lower_bound((bytes + block_bytes - 1) / block_bytes), overlay_.end());
    size_ = bytes;
    if (bytes % block_bytes != 0)
      std::memset(overlaid(bytes / block_bytes).data() + bytes % block_bytes, 0,
                  block_bytes - bytes % block_bytes);
  }
  size_ = bytes;
}

void Database::sync(Durability durability) {
  if (overlay_.empty() && size_ == committed_) {
    if (soon_ && durability != Durability::async)
      pool_.view(Durability::durable, [](auto&, const Root&) {});
    soon_ = soon_ && durability == Durability::async;
    return;
  }
  try {
    commit(durability);
  } catch (const error& e) {
    if (e.code() != Code::too_big) throw;
    spill(durability);
  }
  committed_ = size_;
  overlay_.clear();
  soon_ = durability == Durability::async;
}

void Database::commit(Durability durability) {
  const std::uint64_t blocks = blocks_of(size_), had = blocks_of(committed_);
  pool_.update(durability, [&](auto& tx, Root& root) {
    bool changed = size_ != committed_;
    for (const auto& [number, bytes] : overlay_) {
      auto& slot = root.blocks.place(tx, number);
      Block* block = tx(slot);
      if (block == nullptr) {
        block = reinterpret_cast<Block*>(tx.alloc(block_bytes));
        tx.write_bytes(static_cast<void*>(block), bytes->data(), block_bytes);
        tx(slot) = block;
        changed = true;
        continue;
      }
      std::array<std::uint64_t, block_bytes / 8> now, then;
      tx.read_bytes(now.data(), block, block_bytes);
      std::memcpy(then.data(), bytes->data(), block_bytes);
      for (std::size_t w = 0; w < now.size();) {  // runs of words that differ
        std::size_t end = w;
        while (end < now.size() && now[end] != then[end]) ++end;
        if (end != w) {
          tx.write_bytes(reinterpret_cast<std::byte*>(block) + w * 8, then.data() + w,
                         (end - w) * 8);
          changed = true;
        }
        w = end + 1;
      }
    }
    root.blocks.free(tx, blocks, had);
    root.blocks.free_tables(tx, blocks, had);
    if (!changed) return;
    if (size_ != committed_) tx(root.bytes) = size_;
    tx(root.commits) += 1;
  });
}

void Database::discard() noexcept {
  overlay_.clear();
  size_ = committed_;
}

File* Database::journal(bool make) {
  if (!journaled_.load(std::memory_order_relaxed)) {
    if (!make) return nullptr;
    journal_.truncate(0);
    journaled_.store(true, std::memory_order_relaxed);
  }
  return &journal_;
}

}  // namespace perdure::sqlite
