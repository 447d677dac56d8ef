// SPDX-License-Identifier: BSD-3-Clause
//
// load_pool: makes a pool of a layout text and of what Dump wrote of one.
//
// The pool is made as PATH.loading and gets its name when it is whole, was checked and was closed
// in order, by a link that replaces nothing; a failure removes it. What a killed load leaves is
// named PATH.loading, and the next load of that path removes it.
// Thread safety: any thread; one load per path at a time, of whatever process.
// LOADED-1: a file of the name PATH is whole: the pool's bytes are durable before its name is.
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
  bool lines = false;       ///< the dump is one of lines
  Options pool = {};        ///< engine, medium, creation
  /// Called now and then with the number of entries and elements so far.
  std::function<void(std::uint64_t)> progress = {};
};

/// What was loaded.
struct LoadedPool {
  std::uint64_t entries = 0;  ///< of all containers
  std::uint64_t blocks = 0;   ///< that the root object leads to
  Stats stats = {};
};

/// Makes the pool `path`. Throws error(exists) where there is a file of that name, error(busy)
/// while another process loads it, error(unsupported) with the names of the fields that a dump does
/// not say enough of, error(invalid) where the dump does not fit the schema, and what opening a
/// pool and transactions throw. Except where the machine fails, nothing is left then.
[[nodiscard]] LoadedPool load_pool(const std::string& path, const LoadOptions& options,
                                   JsonReader& in);

/// Reads a layout text for load_pool. Throws error(invalid) where it is none, and
/// error(unsupported).
[[nodiscard]] Tree read_schema(std::string_view text, const std::string& name);

}  // namespace perdure::inspect
