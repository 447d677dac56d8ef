// SPDX-License-Identifier: BSD-3-Clause
//
// The catalog: the root object of a pool with the feature `catalog root`. It leads to the program's
// root object and to the texts of all layouts that the pool has had.
//
// A change of layout is an ordinary transaction that writes the catalog; it does not rewrite the
// header. In a new pool the root block is [catalog][first layout text][program's root object].
// Later layout texts and root objects lie in blocks of their own.
//
// CATALOG-1: the catalog, its first text and the zeros of the first root object are durable before
// the header that makes the bytes a pool. So a pool whose first transaction did not become durable
// opens as a new one.
// CATALOG-2: where a pool without a catalog gets one (Migration::add_catalog), one transaction
// makes its block and stores the block's address in the word at late_catalog. It is durable before
// the header that leads to the catalog. So after a crash between the two, the pool is one without a
// catalog, and the block still has an owner: the next catalog takes its place.
// Thread safety: plain functions over their arguments; nothing else changes the catalog meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/pool/format.hpp"

namespace perdure::pool {

struct Identity;

/// The catalog's bytes in the pool. Addresses are those of the mapping at Header::base.
struct Catalog {
  std::uint64_t root;        ///< address of the program's root object, a multiple of 64
  std::uint64_t root_bytes;  ///< its size
  std::uint64_t layout;      ///< address of the newest LayoutText
  /// 1 while the work that follows a change of layout is not finished (SWITCH-2, api/switch.hpp);
  /// otherwise 0
  std::uint64_t pending;
  std::uint64_t copies;  ///< address of the newest CopyList; 0: there are no copies
  /// Before the switch, the fingerprint of the layout for which the copies are made. After it, and
  /// without copies, 0 (MOVE-1, api/copies.hpp).
  std::uint64_t copies_for;
  std::uint64_t reserved[10];
};
static_assert(sizeof(Catalog) == 128);

/// The head of a layout text; the bytes of the text and of its notes follow. The texts of earlier
/// programs stay: they say how to read the records that those programs wrote. The notes say how the
/// layout follows from the one before it, one line each:
///     renamed NEW OLD   the root's field NEW was called OLD
///     settled FIELD     all records of this field have this layout, once no work is pending
///     stepped FIELD     steps make the elements of this container, which is rebuilt
struct LayoutText {
  std::uint64_t older;          ///< address of the text before this one; 0: this is the first
  std::uint32_t length, notes;  ///< bytes of the text, and of its notes
};
static_assert(sizeof(LayoutText) == 16);

/// An object behind a pointer, and its copy for another version of the program: the addresses of
/// their blocks.
struct CopyEntry {
  std::uint64_t old, made;
};
/// A block of the list of copies.
struct CopyList {
  static constexpr std::uint64_t most = 255;
  std::uint64_t older;  ///< address of the block before this one; 0: this is the first
  std::uint64_t count;  ///< entries in use, 1 to `most`
  CopyEntry entries[most];
};
static_assert(sizeof(CopyList) == 4096);

/// The bytes of a new pool's root block; without a catalog, those of the root object.
[[nodiscard]] std::uint64_t root_block_bytes(const Identity& who) noexcept;
/// Returns the first bytes of a new root block at `address`, which zeros follow: the catalog and
/// the layout text. Empty without a catalog.
[[nodiscard]] std::string first_catalog(const Identity& who, std::uint64_t address);

/// The bytes of a catalog and its first layout text, for a block at `address`. The program's root
/// object lies at `root`.
[[nodiscard]] std::string catalog_bytes(std::uint64_t address, std::uint64_t root,
                                        std::uint64_t root_bytes, const std::string& layout);

/// The contents of a catalog.
struct CatalogContents {
  std::uint64_t root_offset = 0, root_bytes = 0;
  std::vector<std::string> layouts;  ///< the newest first
  std::vector<std::string> notes;    ///< the notes of each layout
  bool pending = false;
  std::uint64_t copies_for = 0;  ///< of Catalog
  /// After the switch: the objects that were copied, with their copies.
  std::vector<CopyEntry> copied;
  /// The offsets of the blocks that the catalog leads to, except the one that it lies in: also
  /// the copies, before the switch, or the objects that were copied, after it. In a pool without
  /// the feature, that of a catalog to which no header leads yet (CATALOG-2).
  std::vector<std::uint64_t> blocks;
};
/// Copies `n` bytes from an address in the data region.
using ReadBytes = std::function<void(void* to, const std::byte* from, std::size_t n)>;
/// Reads the catalog in the data region at `data`. `read` copies the bytes: pass that of a
/// transaction if transactions run; without one, memcpy is used. In a pool without the feature,
/// only root_offset and root_bytes are set, from the header, and `blocks`. Error: `corrupt`, if the
/// catalog leads out of the data region.
Result<CatalogContents> read_catalog(const std::string& path, const Header& header,
                                     const std::byte* data, const ReadBytes& read = {});

}  // namespace perdure::pool
