// SPDX-License-Identifier: BSD-3-Clause
//
// The `perdure` command: reads the command line, runs one subcommand, turns what it throws into a
// message and an exit code.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>

#include "papers/engines.hpp"
#include "tools/command.hpp"

#ifndef PERDURE_VERSION
#define PERDURE_VERSION "unknown"
#endif

namespace {

using namespace perdure::tool;

int fail(const App& app, std::string_view code, std::string_view message, int exit_code) {
  fmt::print(stderr, "perdure: {}\n", message);
  if (app.json) {
    Json document;
    document["error"] = {{"code", code}, {"message", message}};
    std::puts(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  }
  return exit_code;
}

int run(App& app, int argc, char** argv) {
  try {
    app.cli.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.cli.exit(e);  // --help, --version
    const auto chosen = app.cli.get_subcommands();
    std::string command;
    for (const CLI::App* at = chosen.empty() ? nullptr : chosen.front(); at != nullptr;) {
      command += " " + at->get_name();
      const auto below = at->get_subcommands();
      at = below.empty() ? nullptr : below.front();
    }
    return fail(app, "usage", fmt::format("{}\nTry: perdure{} --help", e.what(), command),
                exit_usage);
  }
  try {
    return app.go(app);
  } catch (const perdure::error& e) {
    return fail(app, perdure::name(e.code()), e.what(), exit_error);
  } catch (const std::exception& e) {
    return fail(app, "error", e.what(), exit_error);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // `perdure scan POOL | head`: an error from write, so that the pool is closed in order
  std::signal(SIGPIPE, SIG_IGN);
  perdure::papers::register_engines();
  App app;
  app.cli.require_subcommand(1);
  app.cli.set_version_flag("--version", "perdure " PERDURE_VERSION);
  app.cli.footer(
      "Example:\n  perdure load packages.perdure Packages && perdure get packages.perdure 'bash "
      "5.2.15-2+b2 amd64'\n\n"
      "Exit status: 0 done, 1 the answer is no or a problem was found, 2 usage, 3 error. See "
      "perdure(1).");
  add_load(app);
  add_export(app);
  add_get(app);
  add_put(app);
  add_del(app);
  add_scan(app);
  add_info(app);
  add_check(app);
  add_recover(app);
  add_log(app);
  add_doctor(app);
  add_stat(app);
  add_advise(app);
#ifdef PERDURE_TOOL_SQLITE
  add_sqlite(app);
#endif
  return run(app, argc, argv);
}
