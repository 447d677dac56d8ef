// SPDX-License-Identifier: BSD-3-Clause
//
// LoadEntries: a container that is being built, entry by entry, in its own order. Parts of Loader;
// not for other files.
//
// Thread safety: that of the Loader.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perdure/inspect/load.hpp"

namespace perdure::inspect {

/// Writes a number or address to an image.
inline void put(std::byte* to, std::uint64_t value) { std::memcpy(to, &value, sizeof value); }
[[nodiscard]] inline std::uint64_t word_at(const std::byte* from) {
  std::uint64_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
/// The bytes that a part takes in a node.
[[nodiscard]] inline std::uint64_t stride(const Layout& type) {
  return std::max<std::uint64_t>(type.size, 1);
}

class LoadEntries {
 public:
  explicit LoadEntries(Loader& loader) : loader_(loader) {}
  LoadEntries(const LoadEntries&) = delete;
  LoadEntries& operator=(const LoadEntries&) = delete;
  virtual ~LoadEntries() = default;

  /// Where the next entry's key and value are to be read: zero bytes. key() is null where the
  /// container has none.
  [[nodiscard]] virtual std::byte* key() { return nullptr; }
  [[nodiscard]] virtual std::byte* value() = 0;
  /// The next entry has been read.
  virtual void add() = 0;
  /// All entries have been read: fills the container's own image, and its blocks are whole.
  virtual void finish(std::byte* image) = 0;

 protected:
  [[nodiscard]] LoadStore& store() const { return loader_.store_; }
  Loader& loader_;
};

/// map, set, and the maps within multimap, deque and table: a B+-tree, from its leaves upwards.
class TreeEntries final : public LoadEntries {
 public:
  TreeEntries(Loader& loader, const Layout& map);
  [[nodiscard]] std::byte* key() override { return reinterpret_cast<std::byte*>(key_.data()); }
  [[nodiscard]] std::byte* value() override { return reinterpret_cast<std::byte*>(value_.data()); }
  void add() override;
  void finish(std::byte* image) override;

 private:
  /// One level of the tree: what its last nodes will have. An inner level's payloads are children;
  /// the key of the first child of all, which no node has, is empty bytes.
  struct Level {
    std::string keys, payloads;
    std::uint64_t entries = 0, nodes = 0;
    Address last = 0;  ///< the last node, of leaves
  };
  void add_to(std::size_t level, const char* key, const char* payload);
  void node(std::size_t level, std::uint64_t entries);
  [[nodiscard]] std::uint64_t payload_bytes(std::size_t level) const;

  const Layout& map_;
  const std::uint64_t full_;  ///< entries of a node that is not the last
  std::string key_, value_;
  std::vector<Level> levels_;
  std::uint64_t count_ = 0;
};

/// hash_map and hash_set.
class HashEntries final : public LoadEntries {
 public:
  HashEntries(Loader& loader, const Layout& map);
  [[nodiscard]] std::byte* key() override { return bytes() + map_.key_at; }
  [[nodiscard]] std::byte* value() override { return bytes() + map_.value_at; }
  void add() override;
  void finish(std::byte* image) override;

 private:
  struct Node {
    std::uint64_t hash;
    Address at;
  };
  [[nodiscard]] std::byte* bytes() { return reinterpret_cast<std::byte*>(node_.data()); }
  [[nodiscard]] std::uint64_t bucket(std::uint64_t hash) const;
  [[nodiscard]] bool same_key(Address a, Address b) const;
  [[nodiscard]] bool as_walked(unsigned most_bits, std::vector<std::uint64_t>& segment_of) const;
  void segment(std::vector<std::uint64_t>& directory, std::uint64_t index, std::size_t from,
               std::size_t to);

  const Layout& map_;
  std::string node_;
  std::vector<Node> nodes_;
};

/// The rows of a table, and its indexes.
class TableEntries final : public LoadEntries {
 public:
  TableEntries(Loader& loader, const Layout& table);
  ~TableEntries() override;
  [[nodiscard]] std::byte* value() override;
  void add() override;
  void finish(std::byte* image) override;

  /// The row's number, where the dump shows it.
  [[nodiscard]] std::uint64_t* number() { return &number_; }
  /// The number that the next row will have, where the dump shows it: the key that add() gives.
  void next(std::uint64_t number) { next_ = std::max(next_, number); }
  /// The entries of a part in their order, by the numbers of their rows.
  void order(const std::string& part, std::vector<std::uint64_t> numbers);
  static constexpr std::uint64_t no_number = ~std::uint64_t{0};

 private:
  struct Row {
    std::uint64_t number;
    Address at;
  };
  void index(std::size_t part, std::byte* image);
  [[nodiscard]] std::vector<Row> sorted(std::size_t part);
  [[nodiscard]] bool key_of(std::size_t part, const std::byte* row, std::uint64_t number,
                            std::byte* key) const;
  [[nodiscard]] std::vector<const Member*> found_by(std::size_t part) const;

  const Layout& table_;
  std::string row_;
  std::uint64_t number_ = no_number, next_ = 0;
  bool numbered_ = false;
  std::unique_ptr<LoadEntries> first_;
  std::vector<std::vector<const Member*>> members_;  ///< of each part
  std::vector<Row> rows_;
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> orders_;
};

}  // namespace perdure::inspect
