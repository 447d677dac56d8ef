// SPDX-License-Identifier: BSD-3-Clause
//
// LayoutHistory: the layouts that a pool had before, along one root field. Records of all of them
// may still be in its container.
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

  /// Calls f for each earlier layout that had the field that is called `path` in the newest one,
  /// with the field's line there, the newest first; not for those of which no record is left.
  void each(std::string path,
            const std::function<void(const LayoutLines&, const LayoutLine&)>& f) const;
  /// The texts of the records (record_in()) that a field's container had in those layouts; empty
  /// where it had none.
  [[nodiscard]] std::vector<std::string> records(const std::string& path) const;

 private:
  std::vector<LayoutLines> before_;  ///< the newest first
  std::vector<std::string> notes_;   ///< of the layout after each of them
};

/// Adds a line to the notes of a new layout text (pool::LayoutText): a field of the root was
/// called `before`; all records of a field have the layout; steps made the elements of a container
/// that was rebuilt.
void note_renamed(std::string& notes, std::string_view path, std::string_view before);
void note_settled(std::string& notes, std::string_view path);
void note_stepped(std::string& notes, std::string_view path);

}  // namespace perdure::detail
