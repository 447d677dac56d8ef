// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of a pool's root object when it is opened with another root type: a plan, made of
// the two named layout texts (docs/format.md, "The catalog").
//
// A field keeps its value if a field of its name, or of the name that it had, has the same type;
// its bytes are moved. A number may become wider. A container's own bytes may be moved, since no
// block points back to them. A table may get and lose indexes. Everything else that would change
// or lose data is refused, and all refusals are named at once.
// perdure/evolve has the code, since it compares values.
// Thread safety: pure functions, and add_shapes() from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perdure/api/migrate.hpp"
#include "perdure/base/status.hpp"
#include "perdure/pool/catalog.hpp"

namespace perdure::detail {

/// What a root type says of the version before it, each field by its path.
struct SaidOfBefore {
  std::vector<std::pair<std::string, std::string>> renamed;  ///< from, to
  std::vector<std::string> removed;
};

/// What a root type says of a container that is made of another one (container/rebuilt.hpp).
struct Rebuild {
  std::string text;                       ///< of its type
  std::string before;                     ///< the text of the container that it is made of
  std::uint64_t before_at, before_bytes;  ///< where that lies, from its beginning
  const value::Type* from;                ///< an element of that one
  const value::Type* to;                  ///< an element of the new one
};

/// Bytes of the old root object that become bytes of the new one.
struct Move {
  std::uint64_t from, to, bytes;
  /// The number there becomes one of `to_bytes` bytes; 0: it is copied as it is.
  std::uint64_t to_bytes = 0;
  char number = 'u';  ///< then the kind of the old number: u, i or f
};

/// A part that a table gets, whose entries are made after the switch; or a unique one that it has,
/// and whose members a step may change.
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

struct Plan {
  MigrationPlan said;
  std::vector<std::string> refused;  ///< said.refusals without advice
  std::vector<Move> moves;
  std::vector<NewPart> parts;
  std::vector<RebuiltField> rebuilt;
  std::vector<std::string> lazy;  ///< tables whose rows go through their steps when they are read
  bool pending = false;           ///< work follows the switch
  std::string notes;              ///< of the new layout text (pool::LayoutText)
  Migration migrate;              ///< how that is done
  [[nodiscard]] bool same() const noexcept { return said.changes.empty() && said.refusals.empty(); }
};

struct RootType;  // layout.hpp

/// Makes the plan for a pool that has this catalog. `newest`: the layout of the catalog with which
/// it begins, and only those that are older count: 1, to plan what a pending change began with.
[[nodiscard]] Plan make_plan(const pool::CatalogContents& catalog, const RootType& program,
                             const Migration& migrate, std::size_t newest = 0);

/// Adds a refusal to the plan for each pointer in the root object that leads into it, and for each
/// hook in it that is in a list: the root object moves (ROOT-1). `layout`: the pool's; `root`: the
/// root object's bytes, at `address` for transactions.
/// ROOT-1: nothing in the pool leads into the root object when the switch gives it another address:
/// such a pointer would then lead to whatever lies there next. What lies in the root object itself
/// is looked at here; pointers elsewhere are not, since that takes a walk over all blocks: programs
/// must not make them (docs/values.md).
void refuse_pointers_into_root(Plan& plan, std::string_view layout, const std::byte* root,
                               std::uint64_t address, std::uint64_t bytes);

/// Adds the layouts of the records in a pool's layout text to the process's book of shapes. Error:
/// `incompatible`, where two layouts have one shape. A text that is damaged is left out: a record
/// that it would describe is then refused when it is read.
Status add_shapes(std::string_view layout);
/// Adds the rows of all steps to the book of shapes.
Status add_shapes(const std::vector<MigrationStep>& steps);

/// The path of the root's field at an offset: "users"; empty where there is none.
[[nodiscard]] std::string path_at(const RootType& root, std::uint64_t at);

/// The fields for which the notes of a change that began say that steps do the work, and those of
/// the change as it would begin now do not; or the other way round, where a container is rebuilt.
[[nodiscard]] std::vector<std::string> missing_steps(std::string_view began, std::string_view now);

/// migration_plan() without types.
Result<MigrationPlan> plan_of_file(const std::string& path, const RootType& root,
                                   const Migration& migrate);

/// The refusals as one text for a message, "2 changes are refused: [1] ...; [2] ...".
[[nodiscard]] std::string refusals_text(const std::vector<std::string>& refusals);

}  // namespace perdure::detail
