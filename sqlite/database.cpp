// SPDX-License-Identifier: BSD-3-Clause
#include "sqlite/database.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

namespace perdure::sqlite {
namespace {

struct Open {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Database>> all;  // by path
};
Open& all_open() {
  static Open open;
  return open;
}

/// In a transaction: the place of a block in its table; null: no table.
template <class Tx, class R>
ptr<Block>* slot_of(Tx& tx, R& root, std::uint64_t number) {
  Table* const table = tx(root.table[number / blocks_in_table]);
  return table == nullptr ? nullptr : &table->block[number % blocks_in_table];
}

}  // namespace

std::shared_ptr<Database> Database::open(const std::string& path, const Options& options) {
  Open& open = all_open();
  const std::lock_guard lock(open.mutex);
  if (auto there = open.all[path].lock()) return there;
  auto made = std::make_shared<Database>(path, DatabasePool::open(path, options), options.read_only);
  open.all[path] = made;
  return made;
}

std::shared_ptr<Database> Database::adopt(const std::string& path, DatabasePool pool) {
  Open& open = all_open();
  const std::lock_guard lock(open.mutex);
  auto made = std::make_shared<Database>(path, std::move(pool), false);
  open.all[path] = made;
  return made;
}

void Database::release(std::shared_ptr<Database>& database) {
  const std::lock_guard lock(all_open().mutex);
  database.reset();
}

Database::Database(std::string path, DatabasePool pool, bool read_only)
    : path_(std::move(path)), pool_(std::move(pool)), read_only_(read_only) {
  size_ = committed_ = pool_.view([](auto& tx, const Root& root) -> std::uint64_t { return tx(root.bytes); });
}

void Database::load(std::uint64_t number, std::uint64_t skip, std::byte* to, std::uint64_t n) {
  pool_.view([&](auto& tx, const Root& root) {
    const ptr<Block>* const slot = slot_of(tx, root, number);
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
    const std::uint64_t number = offset / block_bytes, skip = offset % block_bytes, part = std::min(left, block_bytes - skip);
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
    // what was beyond the end reads as zeros, whatever the block has there
    const std::uint64_t end = std::min(size_, committed_), first = number * block_bytes;
    if (first + block_bytes > end)
      std::memset(mine->data() + (end > first ? end - first : 0), 0, first + block_bytes - std::max(end, first));
  }
  return *mine;
}

void Database::write(std::uint64_t offset, const void* from, std::uint64_t n) {
  if (offset + n > most_bytes)
    throw error(
        failure(Code::full, path_, "a database of " + std::to_string(offset + n) + " bytes", "at most " + std::to_string(most_bytes)));
  const auto* in = static_cast<const std::byte*>(from);
  const std::uint64_t end = offset + n;
  for (; offset < end;) {
    const std::uint64_t skip = offset % block_bytes, part = std::min(end - offset, block_bytes - skip);
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
      std::memset(overlaid(bytes / block_bytes).data() + bytes % block_bytes, 0, block_bytes - bytes % block_bytes);
  }
  size_ = bytes;
}

bool Database::commit(Durability durability) {
  if (!dirty()) return false;
  const std::uint64_t blocks = (size_ + block_bytes - 1) / block_bytes, had = (committed_ + block_bytes - 1) / block_bytes;
  pool_.update(durability, [&](auto& tx, Root& root) {
    bool changed = size_ != committed_;
    for (const auto& [number, bytes] : overlay_) {
      auto& top = root.table[number / blocks_in_table];
      Table* table = tx(top);
      if (table == nullptr) {
        static constexpr std::array<std::byte, sizeof(Table)> zeros{};
        table = reinterpret_cast<Table*>(tx.alloc(sizeof(Table)));
        tx.write_bytes(static_cast<void*>(table), zeros.data(), sizeof(Table));
        tx(top) = table;
      }
      auto& slot = table->block[number % blocks_in_table];
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
          tx.write_bytes(reinterpret_cast<std::byte*>(block) + w * 8, then.data() + w, (end - w) * 8);
          changed = true;
        }
        w = end + 1;
      }
    }
    for (std::uint64_t number = blocks; number < had; ++number) {
      auto* const slot = slot_of(tx, root, number);
      if (slot == nullptr) continue;
      if (Block* const block = tx(*slot); block != nullptr) {
        tx.free(block);
        tx(*slot) = nullptr;
      }
    }
    for (std::uint64_t t = (blocks + blocks_in_table - 1) / blocks_in_table; t < (had + blocks_in_table - 1) / blocks_in_table; ++t)
      if (Table* const table = tx(root.table[t]); table != nullptr) {
        tx.free(table);
        tx(root.table[t]) = nullptr;
      }
    if (!changed) return;
    if (size_ != committed_) tx(root.bytes) = size_;
    tx(root.commits) += 1;
  });
  committed_ = size_;
  overlay_.clear();
  return true;
}

void Database::discard() noexcept {
  overlay_.clear();
  size_ = committed_;
}

bool Database::lock(Lock from, Lock to) {
  const std::lock_guard guard(mutex_);
  if (to == Lock::shared && from == Lock::none) {
    if (pending_ || exclusive_) return false;
    ++shared_;
    return true;
  }
  if (from < Lock::reserved && to >= Lock::reserved) {
    if (reserved_) return false;
    reserved_ = true;
  }
  if (to == Lock::exclusive) {
    pending_ = true;
    if (shared_ > 1) {                                          // its own is among them
      if (from < Lock::reserved) reserved_ = pending_ = false;  // else it stays pending: no new readers
      return false;
    }
    exclusive_ = true;
  }
  return true;
}

void Database::unlock(Lock from, Lock to) {
  const std::lock_guard guard(mutex_);
  if (from >= Lock::reserved && to < Lock::reserved) reserved_ = pending_ = exclusive_ = false;
  if (from >= Lock::shared && to == Lock::none) --shared_;
}

bool Database::reserved() {
  const std::lock_guard guard(mutex_);
  return reserved_;
}

}  // namespace perdure::sqlite
