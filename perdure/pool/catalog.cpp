// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/catalog.hpp"

#include <cstring>
#include <unordered_set>

#include "perdure/pool/features.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::pool {
namespace {

constexpr std::uint64_t line = 64;
constexpr std::size_t most_layouts = 100'000;

// Where the program's root object lies in a new root block.
std::uint64_t first_root_at(const Identity& who) noexcept {
  const std::uint64_t end = sizeof(Catalog) + sizeof(LayoutText) + who.catalog.size();
  return (end + line - 1) / line * line;
}

Status damaged(const std::string& path, const std::string& what) {
  return failure(Code::corrupt, path, "a catalog whose " + what + " lies outside the data region",
                 "one inside it", "restore the pool from a copy");
}

}  // namespace

std::uint64_t root_block_bytes(const Identity& who) noexcept {
  if (who.catalog.empty() || who.root_bytes == 0) return who.root_bytes;
  // For a multiple of 64 bytes, the heap has a size class whose blocks lie at multiples of 64.
  return (first_root_at(who) + who.root_bytes + line - 1) / line * line;
}

std::string first_catalog(const Identity& who, std::uint64_t address) {
  if (who.catalog.empty() || who.root_bytes == 0) return {};
  return catalog_bytes(address, address + first_root_at(who), who.root_bytes, who.catalog);
}

std::string catalog_bytes(std::uint64_t address, std::uint64_t root, std::uint64_t root_bytes,
                          const std::string& layout) {
  const Catalog catalog{root, root_bytes, address + sizeof(Catalog), 0, 0, 0, {}};
  const LayoutText text{0, static_cast<std::uint32_t>(layout.size()), 0};
  std::string bytes(reinterpret_cast<const char*>(&catalog), sizeof catalog);
  bytes.append(reinterpret_cast<const char*>(&text), sizeof text);
  bytes += layout;
  bytes.resize((bytes.size() + 7) / 8 * 8);
  return bytes;
}

Result<CatalogContents> read_catalog(const std::string& path, const Header& header,
                                     const std::byte* data, const ReadBytes& read) {
  const auto copy = [&](void* to, const std::byte* from, std::size_t n) {
    read ? read(to, from, n) : static_cast<void>(std::memcpy(to, from, n));
  };
  CatalogContents found;
  // Whether [address, + bytes) lies in the data region, at a multiple of 8.
  const auto inside = [&](std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t at = address - header.base;
    return address >= header.base && at % 8 == 0 && at <= header.data_bytes &&
           bytes <= header.data_bytes - at;
  };
  const auto note_block = [&](std::uint64_t address) {
    const std::uint64_t at = address - header.base;
    if (at - header.root_offset >= header.root_bytes) found.blocks.push_back(at);
  };
  if (!has_feature(header, Feature::catalog_root)) {
    found.root_offset = header.root_offset;
    found.root_bytes = header.root_bytes;
    std::uint64_t late = 0;
    copy(&late, data + late_catalog, sizeof late);
    if (late != 0 && !inside(late, sizeof(Catalog))) return damaged(path, "own block");
    if (late != 0) note_block(late);
    return found;
  }
  Catalog catalog;
  if (!inside(header.base + header.root_offset, sizeof catalog)) return damaged(path, "own block");
  copy(&catalog, data + header.root_offset, sizeof catalog);
  if (!inside(catalog.root, catalog.root_bytes)) return damaged(path, "root object");
  found.root_offset = catalog.root - header.base;
  found.root_bytes = catalog.root_bytes;
  found.pending = catalog.pending != 0;
  note_block(catalog.root);
  std::unordered_set<std::uint64_t> read_texts;
  for (std::uint64_t at = catalog.layout; at != 0;) {
    LayoutText text;
    if (!inside(at, sizeof text)) return damaged(path, "layout text");
    copy(&text, data + (at - header.base), sizeof text);
    const std::byte* const begin = data + (at - header.base) + sizeof text;
    if (!inside(at, sizeof text + text.length + std::uint64_t{text.notes}))
      return damaged(path, "layout text");
    // If the texts lead in a circle, this text was read before.
    if (!read_texts.insert(at).second || found.layouts.size() == most_layouts)
      return failure(Code::corrupt, path, "a catalog whose layout texts lead in a circle", {},
                     "restore the pool from a copy");
    std::string& layout = found.layouts.emplace_back(text.length, '\0');
    copy(layout.data(), begin, text.length);
    std::string& notes = found.notes.emplace_back(text.notes, '\0');
    copy(notes.data(), begin + text.length, text.notes);
    note_block(at);
    at = text.older;
  }
  if (found.layouts.empty()) return damaged(path, "layout text");
  found.copies_for = catalog.copies_for;
  std::unordered_set<std::uint64_t> read_lists;
  for (std::uint64_t at = catalog.copies; at != 0;) {
    CopyList list;
    if (!inside(at, sizeof list)) return damaged(path, "list of copies");
    copy(&list, data + (at - header.base), sizeof list);
    if (list.count == 0 || list.count > CopyList::most || !read_lists.insert(at).second)
      return failure(Code::corrupt, path, "a damaged list of copies", {},
                     "restore the pool from a copy");
    note_block(at);
    for (std::uint64_t i = 0; i < list.count; ++i) {
      note_block(catalog.copies_for != 0 ? list.entries[i].made : list.entries[i].old);
      if (catalog.copies_for == 0) found.copied.push_back(list.entries[i]);
    }
    at = list.older;
  }
  return found;
}

}  // namespace perdure::pool
