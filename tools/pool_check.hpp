// SPDX-License-Identifier: BSD-3-Clause
//
// What `perdure check` finds in a pool (cmd_check.cpp), for other commands, too.
// Thread safety: single-threaded; it runs a child process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/command.hpp"
#include "tools/json.hpp"

namespace perdure::tool {

struct Findings {
  std::vector<std::string> problems, notes;
  std::shared_ptr<Json> summary;  ///< an object
};

/// Checks header, log, heap and containers of a pool. Throws perdure::error if it can't be opened.
Findings check_pool(const PoolArguments& which);

}  // namespace perdure::tool
