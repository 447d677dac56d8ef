// SPDX-License-Identifier: BSD-3-Clause
#include "sqlite/database.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace perdure::sqlite {

Database::Database(std::string path, DatabasePool pool, bool read_only)
    : Overlay(std::move(path), read_only), pool_(std::move(pool)) {
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

}  // namespace perdure::sqlite
