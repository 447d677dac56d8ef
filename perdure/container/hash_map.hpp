// SPDX-License-Identifier: BSD-3-Clause
//
// hash_map<K, V>: a chained hash table in a pool that grows in small steps.
//
// Buckets lie in segments of `Buckets` (128: 1 KiB); a directory that never moves holds a pointer
// to each. The low bits of a hash pick the segment, its high bits the bucket. Growing doubles the
// directory with nulls only (past 2^20 buckets it adds that many at a time): a null entry stands
// for its parent, which is the index without its highest bit, and so on. The first insertion that
// finds a null makes the segment and moves to it the nodes that belong there, a split of about 128
// nodes: no transaction ever rehashes the table, and none is large. Lookups change nothing. A hit
// costs four dependent loads: directory, segment, bucket, node; an insertion stores the node, its
// bucket and a counter. The map occupies a cache line of its own, so that writes to fields beside
// it in a root do not slow its readers.
// Thread safety: that of the transaction.
// Invariants:
// HASHMAP-1 Segment 0 exists unless segments_ is 0.
// HASHMAP-2 A node is in the last existing segment of its hash's path.
// HASHMAP-3 A chain holds a key once.
// HASHMAP-4 count_ is the number of nodes.
// Zero bytes are an empty map.
// Source: lazily split tables as in Shalev, Shavit, "Split-Ordered Lists" (PODC 2003); addressing
// as in linear hashing (Litwin 1980).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/api/layout.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/container/counter.hpp"
#include "perdure/container/hash_node.hpp"
#include "perdure/container/live_cursor.hpp"
#include "perdure/container/record_steps.hpp"
#include "perdure/container/segments.hpp"
#include "perdure/container/stored.hpp"

namespace perdure {

/// An unordered map in a pool. K and V are values, V may be an object that the map owns
/// (docs/values.md); hash<K> says how a key is hashed. `Buckets` is a power of two, at most 4,096:
/// the chains of one segment.
///
/// Each call takes the transaction first. Calls that change the map need an update()'s `tx` (they
/// do not compile with a view's) and throw error(full), error(too_big), error(out_of_memory) or
/// std::bad_alloc where memory or log space is lacking; the transaction is then rolled back. Thread
/// safety: the transaction's; two threads conflict where they change one chain.
template <class K, class V, unsigned Buckets = 128>
class alignas(64) hash_map {
  static_assert(std::has_single_bit(Buckets) && Buckets <= 4096,
                "perdure::hash_map: Buckets is a power of two, at most 4096");
  using Key = stored_key<K>;
  using Value = stored<V>;
  using Node = detail::hash_node<K, V>;
  using Bucket = ptr<Node>;
  struct Segment {
    Bucket bucket[Buckets];
  };

 public:
  /// The type of a key.
  using key_type = K;
  /// The type of a value.
  using mapped_type = V;
  using key_arg = typename Key::arg;      ///< const K&, or std::string_view
  using value_arg = typename Value::arg;  ///< const V&, or std::string_view
  /// What a look-up returns: a copy; where V is an object in the pool, a pointer to it.
  using value_kept = typename Value::kept;
  /// What find() returns.
  using look_up = std::conditional_t<std::is_pointer_v<value_kept> && !std::is_pointer_v<V>,
                                     value_kept, std::optional<V>>;

  /// The number of elements. In a big map it is the sum of several counters, and conflicts with
  /// every insertion.
  template <class Tx>
  [[nodiscard]] std::uint64_t size(Tx& tx) const {
    return count_.total(tx);
  }
  /// Whether there is no element.
  template <class Tx>
  [[nodiscard]] bool empty(Tx& tx) const {
    return size(tx) == 0;
  }

  /// A copy of the key's value, or a pointer to it if it is an object in the pool; nothing (null)
  /// where the key is not there.
  template <class Tx>
  [[nodiscard]] look_up find(Tx& tx, key_arg key) const {
    Node* node = find_node(tx, key);
    if (node == nullptr) return {};
    return Value::read(tx, node->value);
  }
  /// Whether the key is there.
  template <class Tx>
  [[nodiscard]] bool contains(Tx& tx, key_arg key) const {
    return find_node(tx, key) != nullptr;
  }

  /// Adds the key unless it is there. Returns whether it was added.
  template <class Tx>
  bool insert(Tx& tx, key_arg key, value_arg value) {
    return add(tx, key, value, [](Node*) {});
  }

  /// Adds the key with a new, empty object, unless the key is there. Returns whether it was added.
  template <class Tx>
  bool insert(Tx& tx, key_arg key)
    requires std::is_same_v<value_arg, new_object>
  {
    return insert(tx, key, value_arg{});
  }
  /// Adds the key, or replaces its value. Returns whether it was added.
  template <class Tx>
  bool put(Tx& tx, key_arg key, value_arg value) {
    return add(tx, key, value, [&](Node* node) { Value::assign(tx, node->value, value); });
  }

  /// Calls f(V&), which changes the key's value. Returns false, without a call, when the key is not
  /// there.
  template <class Tx, class F>
  bool update(Tx& tx, key_arg key, F&& f) {
    detail::require_update<Tx>();
    Node* node = find_node(tx, key);
    if (node == nullptr) return false;
    change(tx, node, f);
    return true;
  }
  /// update, on a V{} that is added first when the key is not there. Returns whether it was added.
  template <class Tx, class F>
  bool upsert(Tx& tx, key_arg key, F&& f) {
    detail::require_update<Tx>();
    if (Node* node = find_node(tx, key)) {
      change(tx, node, f);
      return false;
    }
    if constexpr (std::is_same_v<value_arg, new_object>) {
      insert(tx, key);
      return update(tx, key, f);
    } else {
      V value{};
      f(value);
      return insert(tx, key, value);
    }
  }

  /// Removes the key. Returns whether it was there.
  template <class Tx>
  bool erase(Tx& tx, key_arg key) {
    detail::require_update<Tx>();
    const std::uint64_t n = tx.read(segments_);
    if (n == 0) return false;
    const std::uint64_t h = Key::hash(key);
    for (Bucket* link = bucket_of(tx, n, h);;) {
      Node* node = tx.read(*link);
      if (node == nullptr) return false;
      if (node->is(tx, h, key)) {
        Node* const next = tx.read(node->next);
        leave(node, next);
        tx.write(*link, next);
        drop(tx, node);
        count_.add(tx, std::uint64_t(0) - 1, h);
        return true;
      }
      link = &node->next;
    }
  }

  /// Prepares the map for `buckets` chains. It costs one directory entry per `Buckets` of them;
  /// segments are made when first used.
  template <class Tx>
  void reserve(Tx& tx, std::uint64_t buckets) {
    detail::require_update<Tx>();
    const std::uint64_t n = (buckets + Buckets - 1) / Buckets;
    if (tx.read(segments_) == 0) start(tx, n);
    if (n > tx.read(segments_)) extend(tx, n);
    if (buckets > detail::counter::spread_at) count_.spread(tx);
  }
  /// The number of chains that the map has room for: 0 before the first insertion.
  template <class Tx>
  [[nodiscard]] std::uint64_t bucket_count(Tx& tx) const {
    return tx.read(segments_) * Buckets;
  }

  /// Removes all elements, in this transaction: empty a very large map with clear_some.
  template <class Tx>
  void clear(Tx& tx) {
    (void)clear_some(tx, ~std::uint64_t{0});
  }

  /// Removes up to `n` elements, and the map's own memory after the last. Returns whether the map
  /// is empty.
  template <class Tx>
  bool clear_some(Tx& tx, std::uint64_t n) {
    return remove_some(tx, n, false, [](const Node*) {});
  }
  /// As clear_some(), and calls f(key, value) with each element before it removes it. f must not
  /// change the map. Until take_some() has returned true, nothing else may use the map. For
  /// rebuilt.hpp.
  template <class Tx, class F>
  bool take_some(Tx& tx, std::uint64_t n, F f) {
    return remove_some(tx, n, true, [&](const Node* node) {
      f(Key::read(tx, node->key), Value::read(tx, node->value));
    });
  }

  /// Frees up to `blocks` heap blocks of what the map owns, and lowers `blocks` by their number.
  /// Returns whether nothing is left; until then nothing else may use the map. For retired.hpp.
  template <class Tx>
  bool free_some(Tx& tx, std::uint64_t& blocks) {
    return free_some(tx, blocks, [&](auto& value) { return Value::free_some(tx, value, blocks); });
  }
  /// The same; free_value(field) frees what a value owns, and returns whether it owns nothing any
  /// more.
  template <class Tx, class F>
  bool free_some(Tx& tx, std::uint64_t& blocks, F free_value) {
    detail::require_update<Tx>();
    const std::uint64_t segments = tx.read(segments_);
    for (std::uint64_t s = segments; s-- > 0;) {
      ptr<Segment>* const entry = directory_.at(tx, s);
      Segment* const segment = tx.read(*entry);
      if (segment == nullptr) continue;
      bool done = true;
      for (Bucket& bucket : segment->bucket) {
        Node* const first = tx.read(bucket);
        Node* node = first;
        while (node != nullptr && (done = blocks != 0 && free_value(node->value))) {
          blocks -= blocks != 0 ? 1 : 0;  // the entry is freed after its value
          Node* const next = tx.read(node->next);
          count_.add(tx, std::uint64_t(0) - 1, node->hash_of(tx));
          drop(tx, node);
          node = next;
        }
        if (node != first) tx.write(bucket, node);
        if (!done) break;
      }
      if (!done || blocks == 0) {
        if (s + 1 != segments) tx.write(segments_, s + 1);  // the next call begins here
        return false;
      }
      --blocks;
      tx.free(segment);
      tx.write(*entry, nullptr);
    }
    directory_.clear(tx);
    count_.clear(tx);
    if (segments != 0) tx.write(segments_, 0);
    return true;
  }

  /// A place in the map, for this transaction; false past the end. The order is the table's. It
  /// stays valid whatever changes; after its element was erased, only next() may be called
  /// (live_cursor.hpp).
  class cursor : private detail::live_cursor {
   public:
    /// Marks a type that must not leave its transaction: update() and view() refuse to return it.
    using transaction_bound = void;
    /// Whether the cursor is at an element, or where one was erased.
    [[nodiscard]] explicit operator bool() const noexcept { return node_ != nullptr || gone_; }
    /// A copy of the element's key. Throws error(invalid) if the element was erased.
    template <class Tx>
    [[nodiscard]] K key(Tx& tx) const {
      if (gone_) detail::live_cursor::erased();
      return Key::read(tx, node_->key);
    }
    /// A copy of the element's value, or a pointer to it if it is an object in the pool. Throws
    /// error(invalid) if the element was erased.
    template <class Tx>
    [[nodiscard]] value_kept value(Tx& tx) const {
      if (gone_) detail::live_cursor::erased();
      return Value::read(tx, node_->value);
    }
    /// Goes on to the next element in the table's order.
    template <class Tx>
    void next(Tx& tx) {
      if (gone_)
        gone_ = false;
      else
        node_ = listed_ ? take() : tx.read(node_->next);
      if (node_ == nullptr) settle(tx, bucket_ + 1);
    }

   private:
    friend class hash_map;
    cursor(const hash_map* map, bool live) : detail::live_cursor(map, live), map_(map) {}
    /// Moves to the first node at or after bucket `b` of the segment, or in a later segment.
    template <class Tx>
    void settle(Tx& tx, unsigned b) {
      listed_ = false;
      for (const std::uint64_t n = tx.read(map_->segments_); at_ < n; ++at_, b = visited(at_)) {
        const Segment* segment = tx.read(*map_->directory_.at(tx, at_));
        for (; segment != nullptr && b < Buckets; ++b) {
          node_ = tx.read(segment->bucket[b]);
          if (node_ == nullptr) continue;
          bucket_ = b;
          return;
        }
      }
    }
    /// Takes the next of the listed nodes; null when there is none.
    const Node* take() {
      if (rest_.empty()) return nullptr;
      const Node* const node = rest_.back();
      rest_.pop_back();
      return node;
    }
    /// `node` is being removed; `next` is the one after it in its chain.
    void leave(const Node* node, const Node* next) {
      if (node_ == node) {
        node_ = listed_ ? take() : next;
        gone_ = true;
      } else if (listed_) {
        std::erase(rest_, node);
      }
    }
    /// Segment `to` is about to be split from segment `from`, which precedes it in the walk.
    /// Without this, nodes that were visited would appear again, and the rest of this bucket's
    /// chain would be divided.
    template <class Tx>
    void split(Tx& tx, std::uint64_t from, std::uint64_t to) {
      const unsigned done = from < at_ ? Buckets : from == at_ ? bucket_ + 1 : visited(from);
      std::erase_if(visited_, [&](const auto& v) { return v.first == to; });
      if (done > 0) visited_.emplace_back(to, done);
      if (from != at_ || listed_ || !*this) return;
      listed_ = true;
      rest_.clear();
      for (const Node* node = node_; node != nullptr && (node = tx.read(node->next)) != nullptr;)
        rest_.push_back(node);
      std::reverse(rest_.begin(), rest_.end());
    }
    /// Returns how many of the segment's buckets were visited as those of the segment that it was
    /// split from.
    [[nodiscard]] unsigned visited(std::uint64_t segment) const {
      for (const auto& [index, buckets] : visited_) {
        if (index == segment) return buckets;
      }
      return 0;
    }

    const hash_map* map_;
    const Node* node_ = nullptr;  ///< the element; when it is gone, the next one in its bucket
    std::uint64_t at_ = 0;
    unsigned bucket_ = 0;
    bool gone_ = false;
    bool listed_ = false;            ///< the next nodes of this bucket are in rest_, not the chain
    std::vector<const Node*> rest_;  ///< last first
    std::vector<std::pair<std::uint64_t, unsigned>> visited_;
  };
  /// A cursor at the first element in the table's order; false where there is none.
  template <class Tx>
  [[nodiscard]] cursor begin(Tx& tx) const {
    cursor c(this, !Tx::read_only);
    c.settle(tx, 0);
    return c;
  }

  /// Calls f(key, value) for each element, in the table's order. A result of false from f ends the
  /// walk.
  template <class Tx, class F>
  void for_each(Tx& tx, F f) const {
    for (cursor c = begin(tx); c; c.next(tx)) {
      if (!detail::go_on(f, c.key(tx), c.value(tx))) return;
    }
  }

  /// The map has each_place(), for a change of layout (record_steps.hpp).
  static constexpr bool has_places = true;
  /// Calls f(place) for each place of a value, in the order of begin().
  template <class Tx, class F>
  void each_place(Tx& tx, F f) const {
    for (cursor c = begin(tx); c; c.next(tx)) f(c.node_->value);
  }
  /// Calls f(const void*) for each heap block that the container owns, for Pool::check(). Any
  /// transaction.
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    directory_.each_block(tx, f);
    count_.each_block(tx, f);
    for (std::uint64_t s = 0, n = tx.read(segments_); s < n; ++s) {
      if (const Segment* segment = tx.read(*directory_.at(tx, s)))
        f(static_cast<const void*>(segment));
    }
    for (cursor c = begin(tx); c; c.next(tx)) {
      f(static_cast<const void*>(c.node_));
      Key::each_block(tx, tx.read(c.node_->key), f);
      Value::each_block(tx, tx.read(c.node_->value), f);
    }
  }
  /// Calls f(const V&) for each value that is an object in the pool, for Pool::check().
  template <class Tx, class F>
    requires std::is_same_v<value_arg, new_object>
  void each_object(Tx& tx, F f) const {
    for (cursor c = begin(tx); c; c.next(tx)) f(*c.value(tx));
  }
  /// Calls f(pointer) for each key, value or element that is a pool pointer, for Pool::check().
  template <class Tx, class F>
    requires(std::is_pointer_v<K> || std::is_pointer_v<V>)
  void each_pointer(Tx& tx, F f) const {
    for_each(tx, [&](const K& key, const V& value) {
      detail::if_pointer(key, f), detail::if_pointer(value, f);
    });
  }

  /// Returns what is wrong; empty when nothing is.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const;

  /// What stands for this container in the layout text of a root (layout.hpp). `names` collects the
  /// structs that it leads to.
  static std::string layout_text(LayoutNames& names) {
    return "hash_map<" + stored_key<K>::name(names) + "," + stored<V>::name(names) + "," +
           std::to_string(Buckets) + ">/1";
  }
  /// The same, of the container alone.
  static std::string layout_text() {
    LayoutNames names;
    return layout_text(names);
  }

 private:
  /// `only`: no other call uses the map until it is empty, so the next call continues where this
  /// one ends. Otherwise the next call looks at empty segments again.
  template <class Tx, class F>
  bool remove_some(Tx& tx, std::uint64_t n, bool only, F before) {
    detail::require_update<Tx>();
    const std::uint64_t segments = tx.read(segments_);
    const bool all = n == ~std::uint64_t{0};      // the map need not be valid before the end
    for (std::uint64_t s = segments; s-- > 0;) {  // segment 0 last (HASHMAP-1)
      ptr<Segment>* entry = directory_.at(tx, s);
      Segment* segment = tx.read(*entry);
      if (segment == nullptr) continue;
      for (Bucket& bucket : segment->bucket) {
        Node* const first = tx.read(bucket);
        Node* node = first;
        for (; node != nullptr && n > 0; --n) {
          Node* next = tx.read(node->next);
          before(node);
          leave(node, next);
          if (!all) count_.add(tx, std::uint64_t(0) - 1, node->hash_of(tx));
          drop(tx, node);
          node = next;
        }
        if (node != first && !all) tx.write(bucket, node);
        if (node != nullptr) return end_at(tx, s, segments, only);
      }
      // Freeing a segment counts as an element: a map that was large has many empty segments.
      if (only && n-- == 0) return end_at(tx, s, segments, only);
      tx.free(segment);
      if (!all) tx.write(*entry, nullptr);
    }
    directory_.clear(tx);
    count_.clear(tx);
    if (segments != 0) tx.write(segments_, 0);
    return true;
  }

  template <class Tx>
  bool end_at(Tx& tx, std::uint64_t segment, std::uint64_t segments, bool only) {
    if (only && segment + 1 != segments) tx.write(segments_, segment + 1);
    return false;
  }

  /// In directory entries that one transaction adds as the map grows: 64 KiB.
  static constexpr std::uint64_t max_at_once = 8192;

  static std::uint64_t parent(std::uint64_t i) { return i & ~std::bit_floor(i); }
  static unsigned bucket_in(std::uint64_t h) {
    if constexpr (Buckets == 1)
      return 0;
    else
      return static_cast<unsigned>(h >> (64 - std::countr_zero(Buckets)));
  }
  static std::uint64_t index_of(std::uint64_t n, std::uint64_t h) {
    const std::uint64_t i = h & (std::bit_ceil(n) - 1);
    return i < n ? i : parent(i);
  }

  /// Returns the bucket for a key of hash h as the table is now (HASHMAP-2). REQUIRES: n =
  /// segments_ > 0.
  template <class Tx>
  Bucket* bucket_of(Tx& tx, std::uint64_t n, std::uint64_t h) const {
    std::uint64_t i = index_of(n, h);
    Segment* segment = tx.read(*directory_.at(tx, i));
    while (segment == nullptr) {
      i = parent(i);
      segment = tx.read(*directory_.at(tx, i));
    }
    return &segment->bucket[bucket_in(h)];
  }

  template <class Tx>
  Node* find_node(Tx& tx, key_arg key) const {
    const std::uint64_t n = tx.read(segments_);
    if (n == 0) return nullptr;
    const std::uint64_t h = Key::hash(key);
    Node* node = tx.read(*bucket_of(tx, n, h));
    while (node != nullptr && !node->is(tx, h, key)) node = tx.read(node->next);
    return node;
  }

  template <class Tx, class Found>
  bool add(Tx& tx, key_arg key, value_arg value, Found found) {
    detail::require_update<Tx>();
    std::uint64_t n = tx.read(segments_);
    if (n == 0) {
      start(tx, 1);
      n = 1;
    }
    const std::uint64_t h = Key::hash(key), i = index_of(n, h);
    Segment* segment = tx.read(*directory_.at(tx, i));
    if (segment == nullptr) segment = split(tx, i);
    Bucket& bucket = segment->bucket[bucket_in(h)];
    Node* const first = tx.read(bucket);
    for (Node* node = first; node != nullptr; node = tx.read(node->next)) {
      if (node->is(tx, h, key)) {
        found(node);
        return false;
      }
    }
    tx.write(bucket, Node::make(tx, first, h, key, value));
    if (count_.add(tx, 1, h) > n * Buckets) extend(tx, n + std::min(n, max_at_once));
    return true;
  }

  template <class Tx, class F>
  void change(Tx& tx, Node* node, F& f) {
    const detail::being_changed changing(node);
    Value::change(tx, node->value, f);
  }

  /// Updates the cursors at `node`, before it is dropped.
  void leave(const Node* node, const Node* next) {
    if (!detail::live_cursor::any()) return;
    detail::being_changed::refuse(node);
    detail::live_cursor::each(
        this, [&](detail::live_cursor& live) { static_cast<cursor&>(live).leave(node, next); });
  }

  template <class Tx>
  void drop(Tx& tx, Node* node) {
    Key::drop(tx, tx.read(node->key));
    Value::drop(tx, tx.read(node->value));
    tx.free(node);
  }

  /// Gives the empty map segment 0, and a directory whose first piece holds n entries.
  template <class Tx>
  void start(Tx& tx, std::uint64_t n) {
    directory_.grow(tx, 0, std::max<std::uint64_t>(n, 8));
    static constexpr std::byte zeros[sizeof(Segment)] = {};
    auto* segment = reinterpret_cast<Segment*>(tx.alloc(sizeof(Segment)));
    tx.write_bytes(segment, zeros, sizeof zeros);
    tx.write(*directory_.at(tx, 0), segment);
    tx.write(segments_, 1);
  }

  /// Makes segments_ n, with nulls in the new entries.
  template <class Tx>
  void extend(Tx& tx, std::uint64_t n) {
    static constexpr std::uint64_t at_once = 512;
    static constexpr std::byte zeros[at_once * sizeof(ptr<Segment>)] = {};
    const std::uint64_t old = tx.read(segments_);
    for (std::uint64_t i = old; i < n; i = std::bit_floor(i) * 2) directory_.grow(tx, i, n);
    directory_.each_run(tx, old, n, [&](ptr<Segment>* run, std::uint64_t entries) {
      for (std::uint64_t done = 0; done < entries;) {
        const std::uint64_t part = std::min(entries - done, at_once);
        tx.write_bytes(run + done, zeros, part * sizeof *run);
        done += part;
      }
    });
    tx.write(segments_, n);
  }

  /// Makes segment i from the part of its nearest existing ancestor that belongs to it. REQUIRES:
  /// 0 < i < segments_, and it does not exist.
  template <class Tx>
  Segment* split(Tx& tx, std::uint64_t i) {
    std::uint64_t a = parent(i);
    Segment* from;
    while ((from = tx.read(*directory_.at(tx, a))) == nullptr) a = parent(a);
    const std::uint64_t mask = std::bit_floor(i) * 2 - 1;
    if (detail::live_cursor::any())
      detail::live_cursor::each(
          this, [&](detail::live_cursor& live) { static_cast<cursor&>(live).split(tx, a, i); });
    auto* to = reinterpret_cast<Segment*>(tx.alloc(sizeof(Segment)));
    Node* heads[Buckets];
    for (unsigned b = 0; b < Buckets; ++b) {
      // One chain becomes two, in unchanged order. A link is written only where the next node of
      // its chain is a different one now.
      Node* node = tx.read(from->bucket[b]);
      Node *last_stay = nullptr, *last_move = nullptr;
      heads[b] = nullptr;
      bool in_stay = true;  // the chain begins as the one that stays
      while (node != nullptr) {
        Node* next = tx.read(node->next);
        const bool moves = (node->hash_of(tx) & mask) == i;
        if (moves) {
          if (last_move == nullptr)
            heads[b] = node;
          else if (in_stay)
            tx.write(last_move->next, node);
          last_move = node;
        } else {
          if (!in_stay) {
            if (last_stay == nullptr)
              tx.write(from->bucket[b], node);
            else
              tx.write(last_stay->next, node);
          }
          last_stay = node;
        }
        in_stay = !moves;
        node = next;
      }
      if (in_stay) {
        if (last_move != nullptr) tx.write(last_move->next, nullptr);
      } else if (last_stay == nullptr) {
        tx.write(from->bucket[b], nullptr);
      } else {
        tx.write(last_stay->next, nullptr);
      }
    }
    tx.write_bytes(to, heads, sizeof(Segment));
    tx.write(*directory_.at(tx, i), to);
    return to;
  }

  p<std::uint64_t> segments_;
  detail::segments<ptr<Segment>> directory_;
  detail::counter count_;
};

}  // namespace perdure

#include "perdure/container/hash_map_audit.hpp"
