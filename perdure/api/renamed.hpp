// SPDX-License-Identifier: BSD-3-Clause
//
// renamed: an entry of the list by which a struct declares the former names of its fields. A second
// list has the names of the fields that were removed:
//     static constexpr std::string_view perdure_removed[] = {"notes"};
// Thread safety: compile time only.
#pragma once

#include <string_view>

namespace perdure {

/// A field that had another name in an earlier version of its struct. The struct lists all of them:
///     static constexpr perdure::renamed perdure_renamed[] = {{"owner", "user"}};
struct renamed {
  std::string_view now;     ///< the field's name in this version
  std::string_view before;  ///< its name in an earlier one
};

}  // namespace perdure
