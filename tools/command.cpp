// SPDX-License-Identifier: BSD-3-Clause
//
// The one source that includes CLI11: Option, Subcommand and App over it.
#include "tools/command.hpp"

#include <CLI/CLI.hpp>

#include "perdure/engine/dynamic_engine.hpp"

#ifndef PERDURE_VERSION
#define PERDURE_VERSION "unknown"
#endif

namespace perdure::tool {
namespace {

const char* const exit_status =
    "\n\nExit status: 0 done, 1 the answer is no or a problem was found, 2 usage, 3 error.";

std::vector<std::string> durable_engines() {
  std::vector<std::string> names;
  for (const engine::EngineInfo& e : engine::registered())
    if (e.name == e.family && e.family != "volatile") names.emplace_back(e.name);
  return names;
}

Subcommand add_below(App& app, CLI::App* parent, const std::string& name, const std::string& what,
                     const std::string& example) {
  CLI::App* const sub = parent->add_subcommand(name, what);
  sub->add_flag("--json", app.json, "print one JSON document");
  sub->footer("Example:\n  " + example + exit_status);
  return {app, sub};
}

}  // namespace

Option Option::required() {
  option_->required();
  return *this;
}
Option Option::show_default() {
  option_->capture_default_str();
  return *this;
}
Option Option::one_of(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return *this;
}
Option Option::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}
Option Option::in_range(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option Option::in_range(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option Option::byte_size() {
  option_->transform(CLI::AsSizeValue(false));
  return *this;
}
Option Option::separated_by(char separator) {
  option_->delimiter(separator);
  return *this;
}
Option Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option Subcommand::option(const std::string& name, std::string& value, const std::string& what) {
  return Option(parsed_->add_option(name, value, what));
}
Option Subcommand::option(const std::string& name, std::vector<std::string>& value,
                          const std::string& what) {
  return Option(parsed_->add_option(name, value, what));
}
Option Subcommand::option(const std::string& name, std::uint64_t& value, const std::string& what) {
  return Option(parsed_->add_option(name, value, what));
}
Option Subcommand::option(const std::string& name, unsigned& value, const std::string& what) {
  return Option(parsed_->add_option(name, value, what));
}
Option Subcommand::option(const std::string& name, double& value, const std::string& what) {
  return Option(parsed_->add_option(name, value, what));
}
Option Subcommand::flag(const std::string& name, bool& value, const std::string& what) {
  return Option(parsed_->add_flag(name, value, what));
}

Subcommand Subcommand::add(const std::string& name, const std::string& what,
                           const std::string& example) {
  parsed_->require_subcommand(1);
  return add_below(*app_, parsed_, name, what, example);
}

void Subcommand::runs(int (*go)(App&)) {
  parsed_->callback([app = app_, go] { app->go = go; });
}

App::App()
    : parsed_(std::make_unique<CLI::App>("perdure: durable transactions for ordinary in-memory "
                                         "data structures; this command works on pool files")) {
  parsed_->require_subcommand(1);
  parsed_->set_version_flag("--version", "perdure " PERDURE_VERSION);
  parsed_->footer(std::string("Example:\n  perdure load packages.perdure Packages && perdure get "
                              "packages.perdure 'bash 5.2.15-2+b2 amd64'") +
                  exit_status + " See perdure(1).");
}

App::~App() = default;

Subcommand App::add(const std::string& name, const std::string& what, const std::string& example) {
  return add_below(*this, parsed_.get(), name, what, example);
}

bool App::parse(int argc, char** argv) {
  try {
    parsed_->parse(argc, argv);
    return true;
  } catch (const CLI::ParseError& e) {
    // CLI11 says only that a subcommand is required, whatever was given in its place.
    if (e.get_exit_code() != 0 && argc > 1 && *argv[1] != '-' && parsed_->get_subcommands().empty())
      throw UsageError("found '" + std::string(argv[1]) + "', expected one of perdure's commands");
    if (e.get_exit_code() != 0) throw UsageError(e.what());
    parsed_->exit(e);  // prints the help or the version
    return false;
  }
}

std::string App::typed() const {
  std::string command = "perdure";
  for (const CLI::App* at = parsed_.get();;) {
    const auto below = at->get_subcommands();
    if (below.empty()) return command;
    at = below.front();
    command += " " + at->get_name();
  }
}

void PoolArguments::add_to(Subcommand sub) {
  sub.option("POOL", path, "the pool file").required();
  sub.option("--medium", medium, "auto, file, dax or emulated")
      .one_of({"auto", "file", "dax", "emulated"})
      .show_default();
  sub.flag("--no-direct", no_direct, "do not write the log with O_DIRECT (medium file)");
}

void PoolArguments::add_creation_to(Subcommand sub, const std::string& log) {
  sub.option("--engine", engine, "engine of a pool that is created (default: shadow)")
      .one_of(durable_engines());
  sub.option("--max-size", max_size,
             "largest size of a pool that is created, e.g. 8GiB (address space, not disk)")
      .byte_size();
  sub.option("--log-size", log_size, "size of the log of a pool that is created (" + log + ")")
      .byte_size();
}

void PoolArguments::add_log_to(Subcommand sub) {
  sub.option("--replicate", replicate,
             "the log over which the pool is replicated: a folder that the copies share, or "
             "nats://HOST/STREAM; a pool that is replicated needs it (default: none)");
  sub.option("--ack", ack,
             "how far a change has to get before it is reported: local (durable in this copy); "
             "with --replicate also shipped (in the log), quorum (and on most of its servers' "
             "disks), standby:N (in the log, and on the disks of N standbys)")
      .one_of({"local", "shipped", "quorum", "standby:1", "standby:2", "standby:3"})
      .show_default();
  sub.option("--beat", beat,
             "with --replicate: give standbys a sign every so many seconds, so that one can take "
             "over by itself (default: never)")
      .in_range(0.0, 60.0);
}

}  // namespace perdure::tool
