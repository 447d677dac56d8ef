// SPDX-License-Identifier: BSD-3-Clause
//
// What every subcommand of `perdure` shares: how it is registered, exit codes, output for people
// and for programs.
//
// A subcommand is one file with one function add_X that describes it to CLI11 and sets App::go.
// Standard output carries the answer (text, or with --json one JSON document, errors included),
// standard error progress and errors in words. Single-threaded.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "perdure/base/status.hpp"

namespace perdure::tool {

using Json = nlohmann::ordered_json;

/// Exit codes, the same for every subcommand; docs/man/perdure.1 lists them.
enum Exit : int {
  exit_ok = 0,
  /// it worked and the answer is no: key not there, damage found, no program runs
  exit_problem = 1,
  exit_usage = 2,  ///< the command line makes no sense
  exit_error = 3   ///< it could not be done; standard error says why and what to do
};

struct App {
  CLI::App cli{
      "perdure: durable transactions for ordinary in-memory data structures; this command works on "
      "pool files"};
  bool json = false;
  std::function<int(App&)> go;  ///< the chosen subcommand

  /// A subcommand with --json and an example line in its help.
  CLI::App* add(const std::string& name, const std::string& what, const std::string& example) {
    return add(&cli, name, what, example);
  }
  /// The same below a subcommand that has some of its own.
  CLI::App* add(CLI::App* parent, const std::string& name, const std::string& what,
                const std::string& example);
  /// Prints one JSON document to standard output.
  static void print(const Json& document);
};

/// How pools are opened or created; options that many subcommands take.
struct PoolArguments {
  std::string path;
  std::string medium = "auto";
  bool no_direct = false;
  void add_to(CLI::App* sub);                ///< POOL, --medium, --no-direct
  std::string engine;                        ///< the rest: for commands that may create the pool
  std::uint64_t max_size = 0, log_size = 0;  ///< 0: the library's default
  /// `log`: how large the log is unless said, and what that bounds.
  void add_creation_to(CLI::App* sub,
                       const std::string& log = "default: 16MiB; one row may be half of it");
};

/// Sets document[name], or document[name + "_hex"] where the bytes are not UTF-8 (JSON has no other
/// text).
void set_bytes(Json& document, const std::string& name, std::string_view bytes);

/// Bytes on one line: \\, \t, \n, \r as such, other control characters as \xHH.
[[nodiscard]] std::string escaped(std::string_view bytes);
/// "12.3 MiB", "812 bytes".
[[nodiscard]] std::string human_bytes(std::uint64_t n);
/// "1,234,567"
[[nodiscard]] std::string grouped(std::uint64_t n);
/// "3f0c2a9e-..." of a pool's uuid.
[[nodiscard]] std::string uuid_text(const std::uint8_t (&uuid)[16]);

/// Writes all bytes to a descriptor; throws perdure::error (EPIPE and the like).
void write_all(int fd, std::string_view bytes, std::string_view name);
/// Reads a descriptor to its end; throws perdure::error.
[[nodiscard]] std::string read_all(int fd, std::string_view name);

// One function a subcommand, each in the file named after it (cmd_load.cpp, ...).
void add_load(App& app);
void add_export(App& app);
void add_get(App& app);
void add_put(App& app);
void add_del(App& app);
void add_scan(App& app);
void add_info(App& app);
void add_check(App& app);
void add_recover(App& app);
void add_log(App& app);
void add_doctor(App& app);
void add_stat(App& app);
void add_advise(App& app);
#ifdef PERDURE_TOOL_SQLITE
void add_sqlite(App& app);
#endif

}  // namespace perdure::tool
