// SPDX-License-Identifier: BSD-3-Clause
//
// Plan: what happens to a pool's root object when the pool is opened with another root type. A plan
// is made from the two layout texts with names (docs/format.md, "The catalog").
//
// A field keeps its value if the pool has a field of the same type with its name, or with the name
// that it had before; its bytes are moved. A number may become wider. A container's own bytes may
// be moved, since no block points back to them. A table may get and lose indexes. The same holds
// for structs that pointers lead to, whose objects are then copied (copies.hpp). Every other change
// that would alter or lose data is refused, and one error lists all refusals.
// perdure/evolve has the code, since it compares values.
// Thread safety: pure functions, and add_shapes() from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perdure/api/migrate.hpp"
#include "perdure/base/status.hpp"
#include "perdure/pool/catalog.hpp"

namespace perdure::detail {

/// What a root type declares about the version before it; fields are given by their paths.
struct SaidOfBefore {
  std::vector<std::pair<std::string, std::string>> renamed;  ///< from, to
  std::vector<std::string> removed;
};

/// A container of a root type that is rebuilt from another one (container/rebuilt.hpp).
struct Rebuild {
  std::string text;                       ///< the layout text of its type
  std::string before;                     ///< the layout text of the old container
  std::uint64_t before_at, before_bytes;  ///< offset in it, and size, of the old container
  const value::Type* from;                ///< the type of the old container's elements
  const value::Type* to;                  ///< the type of the new container's elements
};

/// A struct of the program that pointers lead to.
struct PointedType {
  std::uint64_t bytes = 0, align = 1;
  void (*initial)(std::byte* at) = nullptr;  ///< makes one with its initial values; null: can't
};

/// Bytes of the old root object, or of another object, that become bytes of the new one.
struct Move {
  std::uint64_t from, to, bytes;
  /// The number there becomes one of `to_bytes` bytes; 0: the bytes are copied as they are.
  std::uint64_t to_bytes = 0;
  char number = 'u';  ///< if to_bytes is not 0: the kind of the old number, u, i or f
};

/// A key, index or unique part of a table that is new, so that its entries are made after the
/// switch, or that is unique and has members that a step may change.
struct NewPart {
  std::uint64_t table_from, table_to;  ///< the table in the old and in the new root object
  std::string path;                    ///< "users.mail"
  bool is_unique;
};

/// A container that is rebuilt after the switch.
struct RebuiltField {
  std::uint64_t from,
      to;  ///< where the old one is in the old root object, and the field in the new
  std::string path;
};

/// A pointer in the root object or in an object that is copied.
struct PointerPlace {
  static constexpr std::size_t other = ~std::size_t{0};
  std::uint64_t from, to;  ///< where it lies in the old object and in the new one
  std::size_t leads_to;    ///< the index in Plan::copied of its target's struct; other: not copied
};

/// A container of the root whose values are pointers to objects that are copied.
struct PointerContainer {
  std::uint64_t from, to;  ///< where it lies in the old root object and in the new one
  std::size_t leads_to;    ///< the index in Plan::copied
};

/// A struct behind pointers whose objects are copied to new blocks (copies.hpp).
struct CopiedStruct {
  std::string name;         ///< a path that leads to it: "head", "head->left"
  std::uint64_t old_bytes;  ///< the bytes of an object in the pool that have fields
  /// The same, of the largest version of the struct whose objects may still lie in their blocks.
  std::uint64_t most_bytes;
  PointedType now;
  std::vector<Move> moves;
  std::vector<PointerPlace> pointers;
};

struct Plan {
  MigrationPlan said;
  std::vector<std::string> refused;  ///< said.refusals without the advice
  std::vector<Move> moves;
  std::vector<NewPart> parts;
  std::vector<RebuiltField> rebuilt;
  std::vector<std::string> lazy;  ///< tables whose rows go through their steps when they are read
  std::vector<CopiedStruct> copied;
  std::vector<PointerPlace> root_pointers;        ///< if anything is copied
  std::vector<PointerContainer> root_containers;  ///< if anything is copied
  std::uint64_t copies_for = 0;                   ///< of the catalog, if anything is copied
  bool drops_copies = false;  ///< the pool has copies that another opening made for nothing
  bool pending = false;       ///< work follows the switch
  bool adds_catalog = false;  ///< the pool has no catalog, and gets one
  std::string notes;          ///< of the new layout text (pool::LayoutText)
  Migration migrate;          ///< how this work is done
  /// Where the `bytes` bytes at offset `at` of the new root object lie in the old one; none: they
  /// are not all taken from there as they are.
  [[nodiscard]] std::optional<std::uint64_t> old_place(std::uint64_t at, std::uint64_t bytes) const;
  [[nodiscard]] bool same() const noexcept { return said.changes.empty() && said.refusals.empty(); }
  void change(std::string text) { said.changes.push_back(std::move(text)); }
  void refuse(const std::string& what, const std::string& advice) {
    refused.push_back(what);
    said.refusals.push_back(what + " (" + advice + ")");
  }
};

struct RootType;  // layout.hpp

/// Makes the plan for a pool that has this catalog. `newest`: the index in catalog.layouts of the
/// layout from which the change begins; newer ones are ignored. It is 1 to plan a pending change
/// again from its beginning.
[[nodiscard]] Plan make_plan(const pool::CatalogContents& catalog, const RootType& program,
                             const Migration& migrate, std::size_t newest = 0);

/// Adds a refusal to the plan for each pointer in the root object that leads into it, and for each
/// hook in it that is in a list: the root object moves (ROOT-1). `layout`: the pool's; `root`: the
/// root object's bytes, at `address` for transactions.
/// ROOT-1: nothing in the pool leads into the root object when the switch gives it another address:
/// such a pointer would then lead to whatever lies there next. This function checks the pointers
/// and hooks in the root object itself. It does not check pointers elsewhere, since that would take
/// a walk over all blocks: programs must not make such pointers (docs/values.md).
void refuse_pointers_into_root(Plan& plan, std::string_view layout, const std::byte* root,
                               std::uint64_t address, std::uint64_t bytes);

/// Registers the layouts of the records in a pool's layout text with this process (value::shapes).
/// Error: `incompatible` if two layouts have one shape. A damaged text is left out: a record that
/// it should describe is refused when it is read.
Status add_shapes(std::string_view layout);
/// Registers the layouts of the rows of all steps.
Status add_shapes(const std::vector<MigrationStep>& steps);

/// The path of the root's field at an offset: "users"; empty where there is none.
[[nodiscard]] std::string path_at(const RootType& root, std::uint64_t at);

/// Compares the notes of a change that has begun with the notes of the same change as it would
/// begin now. Returns the fields for which steps did the work then and would not now, and the
/// fields of containers that are rebuilt for which steps would do it now and did not then.
[[nodiscard]] std::vector<std::string> missing_steps(std::string_view began, std::string_view now);

/// The part of migration_plan() that does not depend on the root type.
Result<MigrationPlan> plan_of_file(const std::string& path, const RootType& root,
                                   const Migration& migrate);

/// The refusals as one text for a message, "2 changes are refused: [1] ...; [2] ...".
[[nodiscard]] std::string refusals_text(const std::vector<std::string>& refusals);

}  // namespace perdure::detail
