// SPDX-License-Identifier: BSD-3-Clause
//
// Which field of an earlier version each field of a struct was, by the names in its
// perdure_renamed: for the fields of records and of root objects alike.
// Thread safety: a pure function.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perdure/api/renamed.hpp"

namespace perdure::value {

struct MatchedNames {
  /// Of each field now, the number of the earlier one; none: it is new.
  std::vector<std::optional<std::size_t>> from;
  /// Two fields now, by number, that are said to have been one earlier field.
  struct Both {
    std::size_t earlier, one, other;
  };
  std::vector<Both> both;
};

/// A list may have the renamings of several versions, and so lead over a name to an earlier one. A
/// field is the earlier one of its own name, unless that one has another name now; or else the one
/// to which the fewest renamings lead. No earlier field is taken twice. Throws std::bad_alloc.
[[nodiscard]] MatchedNames match_names(const std::vector<std::string_view>& before,
                                       const std::vector<std::string_view>& now,
                                       const std::vector<perdure::renamed>& renamed);

/// What a message says of such a pair, after the earlier field's name and ": ".
[[nodiscard]] std::string both_text(std::string_view one, std::string_view other);

}  // namespace perdure::value
