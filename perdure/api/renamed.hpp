// SPDX-License-Identifier: BSD-3-Clause
//
// renamed: what a struct says of its earlier versions, beside the names of fields that it dropped:
//     static constexpr std::string_view perdure_removed[] = {"notes"};
// Thread safety: compile time only.
#pragma once

#include <string_view>

namespace perdure {

/// A field that had another name in an earlier version of its struct, which has, of all such:
///     static constexpr perdure::renamed perdure_renamed[] = {{"owner", "user"}};
struct renamed {
  std::string_view now;     ///< the field's name in this version
  std::string_view before;  ///< its name in an earlier one
};

}  // namespace perdure
