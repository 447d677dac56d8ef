// SPDX-License-Identifier: BSD-3-Clause
//
// Loader: builds a pool's data from the output of Dump and the layout text alone: blocks of values,
// nodes of containers, indexes of tables.
//
// A dump has a container's entries in the container's order. So trees are built from their leaves
// upwards, and a hash_map gets the segments with which a walk visits its entries in the same order.
// The Loader chooses what a dump does not contain: the positions of a deque, how full nodes are,
// and numbers of rows. The caller must check the result (find_blocks) before a program uses it.
// That check finds entries out of order, where the layout tells the order, and rows and indexes
// that disagree. Memory: 16 bytes per entry of one hash_map, 8 per entry of one rb_tree, 16 per row
// of one table, and the keys of one of its indexes; 40 bytes for each object that a pointer or a
// hook leads to.
// Thread safety: one thread. Errors: error(invalid) with the line and the field if the dump does
// not fit the layout, and those of the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "perdure/inspect/json_reader.hpp"
#include "perdure/inspect/layout.hpp"
#include "perdure/inspect/load_store.hpp"

namespace perdure::inspect {

/// Returns why pools of this layout can't be loaded, each reason with the name of its field; empty
/// if they can. Reasons are untyped pointers, types of which the layout has only the name, and keys
/// that are hashed by a function of the program.
[[nodiscard]] std::vector<std::string> refusals_of(const Tree& tree);

/// The size of the root object, which is sizeof of the program's root type.
[[nodiscard]] std::uint64_t root_bytes(const Tree& tree) noexcept;

class LoadEntries;
class TableEntries;

class Loader {
 public:
  /// `progress`: called from time to time with the number of entries and elements read so far.
  Loader(LoadStore& store, const Tree& tree, JsonReader& in,
         std::function<void(std::uint64_t)> progress = {});
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Reads what Dump::document() wrote of all fields, and writes the root object at `root`.
  void document(Address root);
  /// Reads what Dump::lines() wrote of all fields, and writes the root object at `root`.
  void lines(Address root);
  /// The number of entries and elements that were read.
  [[nodiscard]] std::uint64_t entries() const noexcept { return entries_; }

 private:
  friend class LoadEntries;
  friend class TreeEntries;
  friend class HashEntries;
  friend class TableEntries;

  /// An object that a pointer leads to. Its block is made when the pointer is read, and filled when
  /// the object is read.
  struct Target {
    Address at = 0;
    const Layout* type = nullptr;
    bool filled = false;
  };
  /// A hook or hooked_list in an image that has no address in the pool yet.
  struct Pending {
    std::byte* image;
    std::uint64_t hook = 0;               ///< for a hook: its number in the dump
    std::vector<std::uint64_t> elements;  ///< for a hooked_list: the numbers of its hooks
    bool list = false;
  };
  struct HookedList {
    Address at;
    std::vector<std::uint64_t> hooks;
  };

  // load_value.cpp: each reads a value into its image, which is `type.size` zero bytes in DRAM.
  // `open`: whether the bracket of the value's object has been read.
  void value(const Layout& type, std::byte* image, bool open = false);
  void members(const Layout& structure, std::byte* image, bool open,
               std::uint64_t* row_number = nullptr);
  void scalar(const Layout& type, std::byte* image);
  void unknown(const Layout& type, std::byte* image, bool open);
  void array(const Layout& type, std::byte* image, bool open);
  void optional(const Layout& type, std::byte* image, bool open);
  void variant(const Layout& type, std::byte* image, bool open);
  void sequence(const Layout& type, std::byte* image);
  void record(const Layout& type, std::byte* image, bool open);
  void owned(const Layout& type, std::byte* image, bool open);
  [[nodiscard]] std::string text(bool open);
  [[nodiscard]] Address text_block(std::string_view text);
  [[nodiscard]] Address target(std::uint64_t number, const Layout& type);
  /// Reads the number in {"$ptr": number}, whose bracket has been read.
  [[nodiscard]] std::uint64_t reference();
  [[nodiscard]] std::uint64_t unsigned_number(std::string_view what);

  // load_roots.cpp: the root object, the objects that pointers lead to, and hooks.
  void object(std::uint64_t number);
  void write_root(Address root);
  void finish();
  void hook(std::byte* image, bool open);
  void hooked_list(const Layout& type, std::byte* image);
  void add_to_hooked_list(const Layout& type, std::byte* image, std::uint64_t element);
  /// Called when the n bytes of an image have got an address in the pool.
  void placed(const std::byte* image, std::uint64_t n, Address at);
  /// Makes a block with the bytes of an image.
  [[nodiscard]] Address block(const std::byte* image, std::uint64_t n);
  /// Reads the rest of a line of a field; `entries`: those of its container.
  void line(const Member& field, LoadEntries* entries);

  // load_containers.cpp, load_maps.cpp, load_hash.cpp, load_table.cpp
  void container(const Layout& type, std::byte* image, bool open);
  void map_key(std::byte* image);
  void table(const Layout& type, TableEntries& rows, bool open);
  [[nodiscard]] std::unique_ptr<LoadEntries> entries_of(const Layout& type);
  void count_entry();

  // load_keys.cpp
  /// Replaces the blocks that a copied key image points to by copies, which the image then owns.
  void own_blocks(const Layout& key, std::byte* image);
  [[nodiscard]] std::uint64_t hash(const Layout& map, const std::byte* key);
  [[nodiscard]] std::uint64_t part_hash(const Layout& type, const std::byte* image);
  [[nodiscard]] std::string stored_text(const std::byte* image);

  /// Reads the next token, which must be this one.
  void expect(JsonReader::Token token, std::string_view expected);
  [[noreturn]] void wrong(const std::string& found, std::string_view expected) const;

  LoadStore& store_;
  const Tree& tree_;
  JsonReader& in_;
  std::function<void(std::uint64_t)> progress_;
  std::uint64_t entries_ = 0;
  unsigned depth_ = 0;
  std::vector<std::byte> root_;
  std::vector<std::string> path_;
  std::unordered_map<std::uint64_t, Target> targets_;
  std::vector<Pending> pending_;
  std::unordered_map<std::uint64_t, Address> hooks_;
  std::vector<HookedList> hooked_lists_;
};

/// Returns bytes that compare as the keys of this layout do, for an image in DRAM. `reader` reads
/// the blocks that the image points to.
[[nodiscard]] std::string sort_key(const Layout& key, const std::byte* image,
                                   value::Reader& reader);
/// Whether the order of a key is known from its layout. REQUIRES: a text with names.
[[nodiscard]] bool sorts(const Layout& key);

}  // namespace perdure::inspect
