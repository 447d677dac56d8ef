// SPDX-License-Identifier: BSD-3-Clause
//
// Walker: visits what a Layout describes: the elements of a container in its order, and the blocks
// that it is made of.
//
// The reader checks addresses (api/checked.hpp); the walker checks everything else: a walk over
// damaged data ends, because the number of blocks, the number of bytes read and the depth of values
// are bounded by what the pool can hold. What it finds wrong it reports, or throws as
// error(corrupt) where it can't go on.
// Thread safety: that of the transaction behind the reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "perdure/inspect/layout.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/value/access.hpp"

namespace perdure::inspect {

/// An address in the pool's mapping.
using Address = std::uint64_t;

/// An element of a container: where its fields lie. A table's element is the row's block, in
/// `value`.
struct Entry {
  Address key = 0;    ///< 0 where the container has no keys
  Address value = 0;  ///< never 0
};

/// What a walk over one container meets. The members that are not overridden do nothing.
class Visitor {
 public:
  Visitor() = default;
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;
  virtual ~Visitor() = default;
  /// A block of the container's own.
  virtual void block(Address, std::uint64_t /*bytes*/) {}
  /// An element, in the container's order. A result of false ends the walk.
  virtual bool entry(const Entry&) { return true; }
  /// A key of an inner node, which is a copy.
  virtual void separator(Address) {}
  /// Something that a sound container does not have.
  virtual void problem(const std::string&) {}
};

class Walker {
 public:
  /// `data_bytes`: the length of the pool's data region, which bounds the walk. `mapped`: its
  /// address.
  Walker(value::Reader& reader, Address mapped, std::uint64_t data_bytes) noexcept;

  /// Visits a container that lies at `at`. A table is visited by its first part. Throws
  /// error(corrupt).
  void each(const Layout& container, Address at, Visitor& visitor);
  /// The number of elements that a container counts.
  [[nodiscard]] std::uint64_t count(const Layout& container, Address at);
  /// Whether the `key` part of a table keeps the hashes of its keys: its text does not tell it
  /// where keys are structs. Returns the part's map, as it lies in the pool.
  [[nodiscard]] Layout first_part(const Layout& table, Address at);

  /// A value of T at an address.
  template <class T>
  [[nodiscard]] T read(Address at) {
    T value;
    read_bytes(&value, at, sizeof value);
    return value;
  }
  void read_bytes(void* to, Address at, std::uint64_t n);
  /// The bytes of a text block; of null, none.
  [[nodiscard]] std::string text(Address block);
  /// A sequence's number of elements; of null, 0.
  [[nodiscard]] std::uint64_t sequence_count(const Layout& sequence, Address block);

  /// Returns a negative value, zero or a positive value: the key at a is below, equal to or above
  /// that at b. REQUIRES: has_known_order(key).
  [[nodiscard]] int compare(const Layout& key, Address a, Address b, unsigned depth = 0);
  /// The hash of a key, where it is known from the layout: of text and integers.
  [[nodiscard]] std::optional<std::uint64_t> hash(const Layout& key, Address at);

  /// The element of a hash_map's bucket for which `is_it` returns true. `hash`: its key's.
  [[nodiscard]] std::optional<Entry> in_bucket(const Layout& map, Address at, std::uint64_t hash,
                                               const std::function<bool(const Entry&)>& is_it);

  /// The entry of a map for whose key `order_of` returns 0. It returns a negative value for keys
  /// below that one, and a positive one above it.
  [[nodiscard]] std::optional<Entry> in_tree(const Layout& map, Address at,
                                             const std::function<int(Address)>& order_of);

  /// What is wrong with a list_hook's neighbours; empty when nothing is.
  [[nodiscard]] std::string hook_problem(Address hook);

  /// Counts one step into a value that holds another one. Throws error(corrupt) past 200.
  static void check_depth(unsigned depth);
  /// Throws error(corrupt): `found` is not what a sound pool has.
  [[noreturn]] static void damaged(const std::string& found, const std::string& expected);

  /// Sets the tree in which the walker looks up records of other versions of the program. The tree
  /// must live as long as the walker is used.
  void use_records_of(const Tree& tree) noexcept { tree_ = &tree; }
  /// The struct of a record or row that has the shape `found`: `own` if that is `shape`, otherwise
  /// one of another version; null if the shape is unknown.
  [[nodiscard]] const Layout* structure(std::uint64_t found, std::uint64_t shape,
                                        const Layout& own) const {
    if (found == shape) return &own;
    return tree_ == nullptr ? nullptr : tree_->record(found);
  }

  /// Sets which copies stand for the objects to which pointers still lead (MOVE-1,
  /// api/copies.hpp).
  void use_copies(const std::vector<pool::CopyEntry>& copied);
  /// The object to which a pointer that lies at an address leads.
  [[nodiscard]] Address pointer(Address at) {
    const auto to = read<Address>(at);
    const auto found = copies_.find(to);
    return found == copies_.end() ? to : found->second;
  }

  [[nodiscard]] Address mapped() const noexcept { return mapped_; }
  [[nodiscard]] std::uint64_t data_bytes() const noexcept { return data_bytes_; }

 private:
  void step();
  void block(Visitor& visitor, Address at, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t counter(Address at, Visitor& visitor);
  void map(const Layout& map, Address at, Visitor& visitor);
  void rb_tree(const Layout& tree, Address at, Visitor& visitor);
  void hash_map(const Layout& map, Address at, Visitor& visitor);
  void vector(const Layout& vector, Address at, Visitor& visitor);
  void list(const Layout& list, Address at, Visitor& visitor);
  void queue(const Layout& queue, Address at, Visitor& visitor);
  void multimap(const Layout& map, Address at, Visitor& visitor);
  void deque(const Layout& deque, Address at, Visitor& visitor);
  void priority_queue(const Layout& queue, Address at, Visitor& visitor);
  void hooked_list(const Layout& list, Address at, Visitor& visitor);
  void table(const Layout& table, Address at, Visitor& visitor);
  void segment_blocks(Address at, std::uint64_t bytes, Visitor& visitor);
  [[nodiscard]] Address segment_at(Address at, std::uint64_t index, std::uint64_t bytes);

  /// HASHMAP-2: the segment of a hash is the last existing one of the hash's path. Returns its
  /// number and address.
  [[nodiscard]] std::pair<std::uint64_t, Address> segment_of(Address map, std::uint64_t segments,
                                                             std::uint64_t hash);

  friend class MapWalk;
  value::Reader& reader_;
  const Tree* tree_ = nullptr;
  std::unordered_map<Address, Address> copies_;
  const Address mapped_;
  const std::uint64_t data_bytes_;
  std::uint64_t blocks_left_, bytes_left_;
};

}  // namespace perdure::inspect
