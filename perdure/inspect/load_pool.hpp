// SPDX-License-Identifier: BSD-3-Clause
//
// load_pool: makes a pool from a layout text and from the output of Dump.
//
// The pool is made as PATH.loading. When it is whole, checked and closed in order, a link that
// replaces nothing gives it the name PATH. A failure removes it. If a load is killed, the next load
// of the same path removes PATH.loading.
// Thread safety: any thread; one load per path at a time, among all processes.
// LOADED-1: if a file has the name PATH, it is a whole pool: the pool's bytes are durable before
// its name is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "perdure/api/options.hpp"
#include "perdure/inspect/json_reader.hpp"
#include "perdure/inspect/layout.hpp"

namespace perdure::inspect {

/// What is loaded, and how.
struct LoadOptions {
  std::string schema;       ///< a layout text with names, as a pool's catalog has it
  std::string schema_name;  ///< for messages: its file
  bool lines = false;       ///< the dump has one JSON document per line
  Options pool = {};        ///< engine, medium, creation
  /// Called from time to time with the number of entries and elements that were loaded so far.
  std::function<void(std::uint64_t)> progress = {};
};

/// What was loaded.
struct LoadedPool {
  std::uint64_t entries = 0;  ///< of all containers
  std::uint64_t blocks = 0;   ///< that the root object leads to
  Stats stats = {};
};

/// Makes the pool `path`. Throws error(exists) if a file has that name, error(busy) while another
/// process loads it, error(unsupported) with the names of the fields about which a dump does not
/// say enough, error(invalid) if the dump does not fit the schema, and what opening a pool and
/// transactions throw. After an error no file is left, unless the machine failed.
[[nodiscard]] LoadedPool load_pool(const std::string& path, const LoadOptions& options,
                                   JsonReader& in);

/// Reads a layout text for load_pool. Throws error(invalid) if the text is no layout text, and
/// error(unsupported) as load_pool does.
[[nodiscard]] Tree read_schema(std::string_view text, const std::string& name);

}  // namespace perdure::inspect
