// SPDX-License-Identifier: BSD-3-Clause
//
// LayoutHistory: the earlier layouts of a pool, followed back for one field of the root. The
// field's container may still have records of all of them.
// Thread safety: none; an object belongs to one call. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/api/plan.hpp"
#include "perdure/evolve/layout_lines.hpp"

namespace perdure::detail {

class LayoutHistory {
 public:
  /// The layouts before catalog.layouts[newest].
  LayoutHistory(const pool::CatalogContents& catalog, std::size_t newest);

  /// Calls f for each earlier layout that has the field which is called `path` in the newest one,
  /// with the field's line in that layout, the newest first. Stops at layouts of which no record is
  /// left.
  void each(std::string path,
            const std::function<void(const LayoutLines&, const LayoutLine&)>& f) const;
  /// The texts of the records (record_in()) that a field's container had in each of these layouts;
  /// an empty text where it had none.
  [[nodiscard]] std::vector<std::string> records(const std::string& path) const;

  /// All of them, the newest first.
  [[nodiscard]] const std::vector<LayoutLines>& layouts() const noexcept { return before_; }

 private:
  std::vector<LayoutLines> before_;  ///< the newest first
  std::vector<std::string> notes_;   ///< for each of them, the notes of the layout after it
};

/// Each adds a line to the notes of a new layout text (pool::LayoutText): a field of the root was
/// called `before`; all records of a field have this layout; steps make the elements of a container
/// that is rebuilt.
void note_renamed(std::string& notes, std::string_view path, std::string_view before);
void note_settled(std::string& notes, std::string_view path);
void note_stepped(std::string& notes, std::string_view path);

}  // namespace perdure::detail
