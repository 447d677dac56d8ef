// SPDX-License-Identifier: BSD-3-Clause
//
// LoadEntries: builds a container entry by entry, in the container's own order. Only for the files
// load_*.cpp.
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
/// The number of bytes that a part takes in a node.
[[nodiscard]] inline std::uint64_t stride(const Layout& type) {
  return std::max<std::uint64_t>(type.size, 1);
}

class LoadEntries {
 public:
  explicit LoadEntries(Loader& loader) : loader_(loader) {}
  LoadEntries(const LoadEntries&) = delete;
  LoadEntries& operator=(const LoadEntries&) = delete;
  virtual ~LoadEntries() = default;

  /// The buffers, of zero bytes, into which the caller reads the next entry's key and value. key()
  /// is null if the container has no keys.
  [[nodiscard]] virtual std::byte* key() { return nullptr; }
  [[nodiscard]] virtual std::byte* value() = 0;
  /// Call this when the next entry has been read.
  virtual void add() = 0;
  /// Call this when all entries have been read: completes the container's blocks, and fills its own
  /// image.
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
  /// One level of the tree: the entries that its last nodes will get. The payloads of an inner
  /// level are children. The first child's key, which no node stores, is empty bytes.
  struct Level {
    std::string keys, payloads;
    std::uint64_t entries = 0, nodes = 0;
    Address last = 0;  ///< at the level of leaves: the last node
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

  /// The row's number, if the dump has it.
  [[nodiscard]] std::uint64_t* number() { return &number_; }
  /// The number that the next row will get, if the dump has it; add() makes keys from it.
  void next(std::uint64_t number) { next_ = std::max(next_, number); }
  /// Reads the entries of a part in their order, as the numbers of their rows.
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
  std::vector<std::vector<const Member*>> members_;  ///< the members of each part
  std::vector<Row> rows_;
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> orders_;
};

}  // namespace perdure::inspect
