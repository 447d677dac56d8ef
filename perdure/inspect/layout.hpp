// SPDX-License-Identifier: BSD-3-Clause
//
// Layout, Tree: what lies in a pool, as data, read at run time from the pool's layout text and the
// names of its fields (api/layout.hpp). Tools read pools of programs that they don't know with it.
//
// A text comes from a file: whatever it says, reading it ends, and takes memory in proportion to
// it. A word that this build does not know is a node of kind `unknown`, and the rest is read.
// The sizes and offsets within the nodes of containers are computed here, once; walk.hpp reads
// them. tests/inspect compares them with the containers' own.
// Thread safety: a Tree does not change after it was made.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/value/type.hpp"

namespace perdure::inspect {

/// What a part of a pool is.
enum class Kind : std::uint8_t {
  unknown,    ///< a type that its program only names, or that a newer build wrote
  scalar,     ///< a number, bool, char, byte, enumerator or time
  text,       ///< std::string: an address
  sequence,   ///< std::vector: an address
  optional,   ///< std::optional
  variant,    ///< std::variant
  array,      ///< std::array or a C array
  structure,  ///< a struct, std::pair or std::tuple
  record,     ///< the address of a record (value/record.hpp)
  owned,      ///< the address of an object that is owned
  pointer,    ///< an address that owns nothing
  hook,       ///< list_hook: its neighbours' addresses and its list's
  elsewhere,  ///< an element that is in a hooked_list by its hook: at its own address
  string,     ///< perdure::string
  box,
  vector,
  list,
  queue,
  map,
  rb_tree,
  hash_map,
  set,       ///< a map whose values are one byte
  hash_set,  ///< a hash_map whose values are one byte
  multimap,
  deque,
  priority_queue,
  hooked_list,
  table,
};

struct Layout;

/// A part of a Layout.
struct Member {
  std::string name;              ///< empty where the pool has none
  const Layout* type = nullptr;  ///< never null
  std::uint64_t at = 0;          ///< in bytes, in what it is a part of
};

/// How a scalar's number is meant.
enum class Meaning : std::uint8_t { number, boolean, character, enumerator, time, local, span };

/// One node of a Tree.
struct Layout {
  Kind kind = Kind::unknown;
  std::string text;         ///< its part of the layout text
  std::uint64_t size = 0;   ///< in bytes; 0: unknown
  std::uint64_t align = 1;  ///< in bytes
  /// Whether size and align are certain: not those of a class that the text only names.
  bool exact = true;
  /// Whether it leads to heap blocks, or may do so.
  bool leads = false;

  value::Number number = value::Number::unsigned_integer;  ///< of a scalar
  Meaning meaning = Meaning::number;                       ///< of a scalar
  std::uint64_t numerator = 1, denominator = 1;            ///< of a time or span: seconds per unit
  bool reversed = false;                                   ///< ordered the other way round
  bool named = false;       ///< a structure whose text has names; without a catalog: an image
  bool own_order = false;   ///< a key whose class has an operator<, where the text says so
  bool own_hash = false;    ///< a key whose class has a perdure::hash, where the text says so
  std::uint64_t shape = 0;  ///< of a record's or a table row's structure
  /// An array's number of elements, a map's entries per node, a hash_map's buckets per segment.
  std::uint64_t count = 0;
  /// A structure's fields, a variant's alternatives, the element of a sequence, array, optional,
  /// vector, list, queue, box, record, owned; a pointer's target, if it is known; a map's key and
  /// value. A multimap and a deque, behind these: the map that they are made of. A table: its row's
  /// structure, then the map of each part, named "key token".
  std::vector<Member> parts;

  // Nodes of containers, in bytes.
  std::uint64_t key_at = 0, value_at = 0;  ///< the first key, value or element
  std::uint64_t node_bytes = 0;            ///< of a leaf, an element's node, a block of a queue
  std::uint64_t children_at = 0, inner_bytes = 0;  ///< of a map's inner node
  bool keeps_hash = false;                         ///< of a hash_map's node
  std::uint64_t slots = 0;                         ///< of a queue's or deque's block
  std::uint64_t hook_at = 0;                       ///< of a hooked_list's elements
  /// Whether a priority_queue's order is that of std::less or std::greater, and known.
  bool ordered = false;

  [[nodiscard]] bool is_container() const noexcept { return kind >= Kind::string; }
  /// Whether it has keys.
  [[nodiscard]] bool is_map() const noexcept {
    return is_btree() || is_hashed() || kind == Kind::rb_tree || kind == Kind::multimap;
  }
  /// Whether it has keys alone.
  [[nodiscard]] bool is_set() const noexcept { return kind == Kind::set || kind == Kind::hash_set; }
  [[nodiscard]] bool is_btree() const noexcept { return kind == Kind::map || kind == Kind::set; }
  [[nodiscard]] bool is_hashed() const noexcept {
    return kind == Kind::hash_map || kind == Kind::hash_set;
  }
  /// Whether a dump writes it as an object of its keys.
  [[nodiscard]] bool is_named_map() const noexcept {
    return (kind == Kind::map || kind == Kind::rb_tree || kind == Kind::hash_map) &&
           element().kind == Kind::text;
  }
  /// The first part's type: an element's, a key's. REQUIRES: there is one.
  [[nodiscard]] const Layout& element() const { return *parts.front().type; }
  /// A map's value.
  [[nodiscard]] const Layout& mapped() const { return *parts[1].type; }
};

/// A pool's layout.
class Tree {
 public:
  Tree() = default;
  Tree(Tree&&) = default;
  Tree& operator=(Tree&&) = default;

  /// The root object: a structure.
  [[nodiscard]] const Layout& root() const noexcept { return *root_; }
  /// The structs that pointers lead to, in the order of their numbers.
  [[nodiscard]] const std::vector<Layout*>& definitions() const noexcept { return definitions_; }
  /// The part of the root with this name or number; "meta.next" is a part of a part. Throws
  /// error(not_found), with the names that there are.
  [[nodiscard]] Member field(std::string_view path) const;
  /// The struct with this shape, from this text or one that add_records() has added; null if there
  /// is none. Valid as long as the tree.
  [[nodiscard]] const Layout* record(std::uint64_t shape) const;
  /// Adds the records of another version's layout text. Damaged parts of the text are left out.
  /// Throws std::bad_alloc.
  void add_records(std::string_view text);

 private:
  friend class TreeReader;
  std::deque<Layout> nodes_;
  Layout* root_ = nullptr;
  std::vector<Layout*> definitions_;
  std::map<std::uint64_t, const Layout*> records_;
  std::vector<std::deque<Layout>> others_;  ///< of other versions
};

/// Whether a value of this layout is stored as the bytes of its C++ object: numbers, and structs
/// and arrays of numbers. REQUIRES: the text has the names of a tuple's fields.
[[nodiscard]] bool is_bytes_alone(const Layout& value) noexcept;

/// Reads the layout text of a root object and the names of its fields, which may be missing or cut;
/// a catalog's text has the names in it.
/// Throws error(corrupt) where the text is not one, std::bad_alloc.
[[nodiscard]] Tree read_layout(std::string_view text, std::string_view names);

/// Whether the order of two keys is known from the layout alone: a struct may have an operator< of
/// its own.
[[nodiscard]] bool has_known_order(const Layout& key) noexcept;

/// Whether `key` is a tuple, or a pair as the walker makes one.
[[nodiscard]] bool is_tuple(const Layout& key) noexcept;

/// Where the map in a multimap or deque lies, in bytes from its beginning.
inline constexpr std::uint64_t inner_map_at = 64;
/// Where the parts of table `table` lie, in bytes from its beginning.
inline constexpr std::uint64_t table_part_bytes = 64;

}  // namespace perdure::inspect
