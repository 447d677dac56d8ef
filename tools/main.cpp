// SPDX-License-Identifier: BSD-3-Clause
//
// The `perdure` command: reads the command line, runs one subcommand, turns what it throws into a
// message and an exit code.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>

#include "papers/papers.h"
#include "tools/command.hpp"
#include "tools/json.hpp"
#ifdef PERDURE_TOOL_S3
#include "s3/bucket.hpp"
#endif
#ifdef PERDURE_TOOL_NATS
#include "nats/nats_log.hpp"
#endif

namespace {

using namespace perdure::tool;

int fail(const App& app, std::string_view code, std::string_view message, int exit_code) {
  fmt::print(stderr, "perdure: {}\n", message);
  if (app.json) print_json_error(code, message);
  return exit_code;
}

int run(App& app, int argc, char** argv) {
  try {
    return app.parse(argc, argv) ? app.go(app) : exit_ok;
  } catch (const UsageError& e) {
    return fail(app, "usage", fmt::format("{}\nTry: {} --help", e.what(), app.typed()), exit_usage);
  } catch (const perdure::error& e) {
    return fail(app, perdure::name(e.code()), e.what(), exit_error);
  } catch (const std::exception& e) {
    return fail(app, "error", e.what(), exit_error);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // For `perdure scan POOL | head`: an error from write, so that the pool is closed in order.
  std::signal(SIGPIPE, SIG_IGN);
  perdure_papers_register();
  App app;
  add_load(app);
  add_export(app);
  add_get(app);
  add_put(app);
  add_del(app);
  add_scan(app);
  add_schema(app);
  add_dump(app);
  add_info(app);
  add_check(app);
  add_recover(app);
  add_scrub(app);
  add_backup(app);
  add_restore(app);
  add_verify(app);
  add_prune(app);
  add_replicate(app);
  add_standby(app);
  add_promote(app);
  add_follow(app);
  add_compact(app);
  add_log(app);
  add_doctor(app);
  add_stat(app);
  add_lag(app);
  add_advise(app);
#ifdef PERDURE_TOOL_S3
  perdure::s3::enable();
#endif
#ifdef PERDURE_TOOL_NATS
  perdure::nats::enable();
#endif
#ifdef PERDURE_TOOL_SQLITE
  add_sqlite(app);
#endif
  return run(app, argc, argv);
}
