// SPDX-License-Identifier: BSD-3-Clause
//
// Loader: builds what a Dump wrote, from the layout alone: blocks of values, nodes of containers,
// indexes of tables.
//
// A container's entries come in its own order, so trees are built from their leaves upwards, and a
// hash_map gets such segments that a walk meets its entries in that order again. What the program
// could have built otherwise (the positions of a deque, how full nodes are, numbers of rows that
// the dump does not show) is chosen here. The caller checks the result (find_blocks) before anybody
// uses it: an order that the layout knows, and the agreement of rows and indexes, are seen there.
// Memory: 16 bytes per entry of one hash_map, 8 per entry of one rb_tree, 16 per row of one table,
// and the keys of one of its indexes; what pointers and hooks lead to, by 40 bytes each.
// Thread safety: one thread. Errors: error(invalid) with the line and the field where the dump does
// not fit the layout; those of the store.
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

/// Why pools of this layout can't be loaded, each with the name of its field; empty where they can:
/// untyped pointers, types that are only named, keys that are hashed by a function of the program.
[[nodiscard]] std::vector<std::string> refusals_of(const Tree& tree);

/// The size of the root object: sizeof the program's root type.
[[nodiscard]] std::uint64_t root_bytes(const Tree& tree) noexcept;

class LoadEntries;
class TableEntries;

class Loader {
 public:
  /// `progress`: called now and then with the number of entries and elements so far.
  Loader(LoadStore& store, const Tree& tree, JsonReader& in,
         std::function<void(std::uint64_t)> progress = {});
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Reads what Dump::document() wrote of all fields, and writes the root object at `root`.
  void document(Address root);
  /// Reads what Dump::lines() wrote of all fields, and writes the root object at `root`.
  void lines(Address root);
  /// The entries and elements that were read.
  [[nodiscard]] std::uint64_t entries() const noexcept { return entries_; }

 private:
  friend class LoadEntries;
  friend class TreeEntries;
  friend class HashEntries;
  friend class TableEntries;

  /// An object that a pointer leads to: made where the pointer is read, filled where it is.
  struct Target {
    Address at = 0;
    const Layout* type = nullptr;
    bool filled = false;
  };
  /// A hook or hooked_list of an image that is not at its place yet.
  struct Pending {
    std::byte* image;
    std::uint64_t hook = 0;               ///< of a hook: its number in the dump
    std::vector<std::uint64_t> elements;  ///< of a hooked_list: the numbers of their hooks
    bool list = false;
  };
  struct HookedList {
    Address at;
    std::vector<std::uint64_t> hooks;
  };

  // load_value.cpp: reads a value into its image, `type.size` zero bytes in DRAM. `open`: the
  // bracket of its object was read.
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
  /// The number of {"$ptr": number}, of which the bracket was read.
  [[nodiscard]] std::uint64_t reference();
  [[nodiscard]] std::uint64_t unsigned_number(std::string_view what);

  // load_roots.cpp: the root object, what pointers lead to, and hooks.
  void object(std::uint64_t number);
  void write_root(Address root);
  void finish();
  void hook(std::byte* image, bool open);
  void hooked_list(const Layout& type, std::byte* image);
  void add_to_hooked_list(const Layout& type, std::byte* image, std::uint64_t element);
  /// The n bytes of an image lie at an address now.
  void placed(const std::byte* image, std::uint64_t n, Address at);
  /// A new block with the bytes of an image.
  [[nodiscard]] Address block(const std::byte* image, std::uint64_t n);
  /// The rest of a line of a field; `entries`: of its container.
  void line(const Member& field, LoadEntries* entries);

  // load_containers.cpp, load_maps.cpp, load_hash.cpp, load_table.cpp
  void container(const Layout& type, std::byte* image, bool open);
  void map_key(std::byte* image);
  void table(const Layout& type, TableEntries& rows, bool open);
  [[nodiscard]] std::unique_ptr<LoadEntries> entries_of(const Layout& type);
  void count_entry();

  // load_keys.cpp
  /// Gives a key's image, a copy of another one, blocks of its own.
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

/// Bytes that sort as the keys of this layout do: of an image in DRAM, whose blocks the reader has.
[[nodiscard]] std::string sort_key(const Layout& key, const std::byte* image,
                                   value::Reader& reader);
/// Whether the order of a key, in a text with names, is known from it.
[[nodiscard]] bool sorts(const Layout& key);

}  // namespace perdure::inspect
