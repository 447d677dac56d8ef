// SPDX-License-Identifier: BSD-3-Clause
//
// load_dump: runs `perdure load --schema SCHEMA POOL DUMP`; cmd_load.cpp reads the command line.
// Not thread-safe.
#pragma once

#include <string>

namespace perdure::tool {

struct App;
struct PoolArguments;

/// Its part of the command line.
struct DumpToLoad {
  std::string schema;  ///< a file with the output of `perdure schema --text`; empty: load no dump
  bool lines = false;  ///< whether the dump is one of `perdure dump --jsonl`
};

/// Makes a pool from a dump ("-": standard input). Returns the exit status. Throws perdure::error.
int load_dump(App& app, const PoolArguments& pool, const DumpToLoad& dump, const std::string& file,
              const std::string& progress);

}  // namespace perdure::tool
