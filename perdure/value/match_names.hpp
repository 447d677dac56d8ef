// SPDX-License-Identifier: BSD-3-Clause
//
// match_names(): finds for each field of a struct the field that it was in an earlier version, by
// the names in perdure_renamed. Both the fields of records and those of root objects use it.
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
  /// For each field of the struct, the number of the earlier field; none if the field is new.
  std::vector<std::optional<std::size_t>> from;
  /// Two fields of the struct that the list declares to be one earlier field; all by number.
  struct Both {
    std::size_t earlier, one, other;
  };
  std::vector<Both> both;
};

/// `renamed` may have the entries of several versions, so that a field has a chain of earlier
/// names. A field matches the earlier field with its own name, unless that one has been renamed to
/// another; otherwise the earlier field to which the fewest renamings lead. No earlier field is
/// matched twice. Throws std::bad_alloc.
[[nodiscard]] MatchedNames match_names(const std::vector<std::string_view>& before,
                                       const std::vector<std::string_view>& now,
                                       const std::vector<perdure::renamed>& renamed);

/// The text of a message about a pair in `both`; the name of the earlier field and ": " come before
/// it.
[[nodiscard]] std::string both_text(std::string_view one, std::string_view other);

}  // namespace perdure::value
