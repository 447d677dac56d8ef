// SPDX-License-Identifier: BSD-3-Clause
//
// What all subcommands of `perdure` share: how a subcommand is registered, its options, its exit
// codes.
//
// A subcommand is one file with one function add_X, which describes its command line and names the
// function that runs it. The answer goes to standard output (text, or with --json one JSON
// document, errors included; json.hpp); progress and error messages go to standard error
// (text.hpp).
//
// The command line is parsed by CLI11. Its header takes 4 s to compile, so command.cpp alone
// includes it, and Subcommand and Option offer what the subcommands need of it.
// Thread safety: single-threaded.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "perdure/base/status.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace perdure::tool {

struct App;

/// Exit codes, the same for every subcommand; docs/man/perdure.1 lists them.
enum Exit : int {
  exit_ok = 0,
  /// It worked and the answer is no: the key does not exist, damage was found, no program runs.
  exit_problem = 1,
  exit_usage = 2,  ///< the command line makes no sense
  exit_error = 3   ///< it could not be done; standard error says why and what to do
};

/// The command line makes no sense. main() adds which help to read, and exits with exit_usage.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An option or a positional argument of a subcommand: which values it accepts, and what the help
/// says about it. Every member returns the same option. A value that is not accepted is a
/// UsageError.
class Option {
 public:
  explicit Option(CLI::Option* option) noexcept : option_(option) {}
  Option required();
  /// The help shows the value that the variable has now.
  Option show_default();
  Option one_of(const std::vector<std::string>& values);
  Option positive();
  /// From `least` to `most`, both included.
  Option in_range(int least, int most);
  Option in_range(double least, double most);
  /// A number of bytes, with a unit or without: 8GiB.
  Option byte_size();
  /// Several values, separated by this character.
  Option separated_by(char separator);
  /// Not allowed together with the other one.
  Option excludes(const Option& other);

 private:
  CLI::Option* option_;
};

/// A subcommand's command line. A variable is set when the command line has been parsed, and must
/// live until then.
class Subcommand {
 public:
  Subcommand(App& app, CLI::App* parsed) noexcept : app_(&app), parsed_(parsed) {}

  /// `name`: "--limit" is an option, "KEY" a positional argument.
  Option option(const std::string& name, std::string& value, const std::string& what);
  Option option(const std::string& name, std::vector<std::string>& value, const std::string& what);
  Option option(const std::string& name, std::uint64_t& value, const std::string& what);
  Option option(const std::string& name, unsigned& value, const std::string& what);
  Option option(const std::string& name, double& value, const std::string& what);
  Option flag(const std::string& name, bool& value, const std::string& what);

  /// Adds a subcommand of this one; the user must then give one of them.
  Subcommand add(const std::string& name, const std::string& what, const std::string& example);
  /// Sets the function that runs the subcommand. It returns the exit code; it may throw
  /// perdure::error or UsageError.
  void runs(int (*go)(App&));

 private:
  App* app_;
  CLI::App* parsed_;
};

/// The whole command line.
struct App {
  App();
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  bool json = false;          ///< --json was given
  int (*go)(App&) = nullptr;  ///< the chosen subcommand's function

  /// A subcommand with --json and an example line in its help.
  Subcommand add(const std::string& name, const std::string& what, const std::string& example);
  /// Sets the variables, `json` and `go`. Returns false if --help or --version was given and has
  /// been answered. Throws UsageError.
  [[nodiscard]] bool parse(int argc, char** argv);
  /// The subcommand as the user typed it: "perdure sqlite import". For messages.
  [[nodiscard]] std::string typed() const;

 private:
  std::unique_ptr<CLI::App> parsed_;
};

/// How pools are opened or created; options that many subcommands take.
struct PoolArguments {
  std::string path;
  std::string medium = "auto";
  bool no_direct = false;
  void add_to(Subcommand sub);  ///< POOL, --medium, --no-direct
  /// This and the rest: for commands that may create the pool
  std::string engine;
  std::uint64_t max_size = 0, log_size = 0;  ///< 0: the library's default
  std::string archive;                       ///< the folder of Options::archive; empty: none
  std::string replicate;                     ///< the log of Options::replicate; empty: none
  std::string ack = "local";                 ///< how far a change has to get before it is reported
  double beat = 0;                           ///< seconds of ReplicateOptions::beat_every; 0: none
  void add_log_to(Subcommand sub);  ///< --replicate, --ack, --beat, for commands that change it
  /// `log`: how large the log is by default, and what that limits.
  void add_creation_to(Subcommand sub,
                       const std::string& log = "default: 16MiB; one row may be half of it");
};

// One function per subcommand, each in the file named after it (cmd_load.cpp, ...).
void add_load(App& app);
void add_export(App& app);
void add_get(App& app);
void add_put(App& app);
void add_del(App& app);
void add_scan(App& app);
void add_schema(App& app);
void add_dump(App& app);
void add_info(App& app);
void add_check(App& app);
void add_recover(App& app);
void add_scrub(App& app);
void add_backup(App& app);
void add_restore(App& app);
void add_verify(App& app);
void add_prune(App& app);
void add_replicate(App& app);
void add_standby(App& app);
void add_promote(App& app);
void add_follow(App& app);
void add_compact(App& app);
void add_log(App& app);
void add_doctor(App& app);
void add_stat(App& app);
void add_lag(App& app);
void add_advise(App& app);
#ifdef PERDURE_TOOL_SQLITE
void add_sqlite(App& app);
#endif

}  // namespace perdure::tool
