// SPDX-License-Identifier: BSD-3-Clause
//
// load_dump: `perdure load --schema SCHEMA POOL DUMP`, of which cmd_load.cpp reads the command
// line. Not thread-safe.
#pragma once

#include <string>

namespace perdure::tool {

struct App;
struct PoolArguments;

/// What of the command line belongs to it.
struct DumpToLoad {
  std::string schema;  ///< the file of `perdure schema --text`; empty: no dump is loaded
  bool lines = false;  ///< of `perdure dump --jsonl`
};

/// Makes the pool of a dump, "-" for standard input. Returns the exit status. Throws
/// perdure::error.
int load_dump(App& app, const PoolArguments& pool, const DumpToLoad& dump, const std::string& file,
              const std::string& progress);

}  // namespace perdure::tool
