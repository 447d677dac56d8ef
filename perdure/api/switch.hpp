// SPDX-License-Identifier: BSD-3-Clause
//
// The switch: the one transaction that gives a pool the root object of another version of the
// program. The amount that it reads and writes depends on the sizes of the two root objects alone,
// not on the contents of containers.
//
// SWITCH-1: one transaction writes the new root object, the layout text, the catalog's pointers to
// them and the mark of pending work. So after a crash the pool has the old layout or the new one,
// each with all of the data.
// SWITCH-2: what the program still has to do after the switch (rows that need a step, entries of a
// new index, elements of a retired container) can be seen in the data itself, and the catalog's
// mark stays until all of it is durable. So if an opening is cut short at any point, the next one
// continues the work.
// Thread safety: the opening's thread; no other thread has the pool yet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "perdure/api/copies.hpp"
#include "perdure/api/plan.hpp"
#include "perdure/pool/catalog.hpp"

namespace perdure::detail {

/// A catalog that store_catalog() has made.
struct NewCatalog {
  std::byte* at = nullptr;
  std::uint64_t bytes = 0;
};

/// Stores a catalog for a pool that has none: of this root object, with this layout text.
/// `data`: the data region in the mapping. It takes the place of a catalog that was stored before
/// and to which no header leads (CATALOG-2). Throws as Tx.
template <class Tx>
NewCatalog store_catalog(Tx& tx, std::byte* data, const std::byte* root, std::uint64_t root_bytes,
                         const std::string& text) {
  std::uint64_t before = 0;
  tx.read_bytes(&before, data + pool::late_catalog, sizeof before);
  if (before != 0) tx.free(reinterpret_cast<std::byte*>(before));
  constexpr std::uint64_t line = 64;
  NewCatalog made;
  made.bytes =
      (sizeof(pool::Catalog) + sizeof(pool::LayoutText) + text.size() + line - 1) / line * line;
  made.at = tx.alloc(made.bytes);
  const auto address = reinterpret_cast<std::uint64_t>(made.at);
  const std::string bytes =
      pool::catalog_bytes(address, reinterpret_cast<std::uint64_t>(root), root_bytes, text);
  tx.write_bytes(made.at, bytes.data(), bytes.size());
  // mutant: late-catalog-has-an-owner
  tx.write_bytes(data + pool::late_catalog, &address, sizeof address);
  return made;
}

/// Writes the number at `from` to `to` in its wider type.
void widen(const Move& move, const std::byte* from, std::byte* to) noexcept;

/// Gives the new object's bytes at `image` the fields of the old one. Throws as Tx.
template <class Tx>
void move_fields(Tx& tx, const std::vector<Move>& moves, const std::byte* old, std::byte* image) {
  for (const Move& move : moves) {
    if (move.to_bytes == 0) {
      tx.read_bytes(image + move.to, old + move.from, move.bytes);
    } else {
      std::byte number[8] = {};  // the plan has no number of more bytes
      tx.read_bytes(number, old + move.from, move.bytes);
      widen(move, number, image + move.to);
    }
  }
}

/// Makes the switch, and returns the new address of the root object. `catalog`: the catalog in the
/// mapping. `image`: a new root object of `bytes` bytes, which this function overwrites with the
/// old one's fields. `text`: the new layout text. `first_block`: the size of the block that begins
/// with the catalog. `copies`: objects behind pointers that were copied; null: there are none.
/// Throws as Tx.
template <class Tx>
std::byte* switch_layout(Tx& tx, std::byte* catalog, const Plan& plan, std::byte* image,
                         std::uint64_t bytes, const std::string& text, std::uint64_t first_block,
                         const Copies* copies) {
  constexpr std::uint64_t line = 64;
  pool::Catalog was;
  tx.read_bytes(&was, catalog, sizeof was);
  const auto* const old = reinterpret_cast<const std::byte*>(was.root);
  move_fields(tx, plan.moves, old, image);
  if (copies != nullptr) copies->lead_to_copies(image);
  std::byte* const root = tx.alloc((bytes + line - 1) / line * line);
  // A line that the new block has already, zeros as a rule, is not logged: so a large root object
  // that is mostly zeros does not need as much log.
  for (std::uint64_t at = 0; at < bytes; at += line) {
    const std::uint64_t n = std::min(line, bytes - at);
    std::byte there[line];
    tx.read_bytes(there, root + at, n);
    if (std::memcmp(there, image + at, n) != 0) tx.write_bytes(root + at, image + at, n);
  }
  const pool::LayoutText head{was.layout, static_cast<std::uint32_t>(text.size()),
                              static_cast<std::uint32_t>(plan.notes.size())};
  std::byte* const layout = tx.alloc(sizeof head + text.size() + plan.notes.size());
  tx.write_bytes(layout, &head, sizeof head);
  tx.write_bytes(layout + sizeof head, text.data(), text.size());
  if (!plan.notes.empty())
    tx.write_bytes(layout + sizeof head + text.size(), plan.notes.data(), plan.notes.size());
  // The first root object of a pool that was made with a catalog lies in the catalog's block.
  if (was.root - reinterpret_cast<std::uint64_t>(catalog) >= first_block)
    tx.free(const_cast<std::byte*>(old));
  pool::Catalog now = was;
  now.root = reinterpret_cast<std::uint64_t>(root);
  now.root_bytes = bytes;
  now.layout = reinterpret_cast<std::uint64_t>(layout);
  now.pending = plan.pending ? 1 : was.pending;
  // From here on the list of copies owns the old objects (MOVE-2).
  // mutant: list-owns-old-objects
  now.copies_for = 0;
  tx.write_bytes(catalog, &now, offsetof(pool::Catalog, reserved));
  return root;
}

}  // namespace perdure::detail
