// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure advise -- PROGRAM` and `perdure advise --trace FILE`: which engine, concurrency control
// and mode suit a program on a medium. This file is the command line; the rest is in tools/advise/:
// record (runs the program), program (what to replay), cell and matrix (measure), report and words
// (the output), picture.
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/advise/picture.hpp"
#include "tools/advise/record.hpp"
#include "tools/advise/report.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"

namespace perdure::tool {
namespace {

struct Arguments {
  std::vector<std::string> program, modes{"durable", "async"};
  std::string trace, trace_out, picture;
  MatrixOptions matrix;
} arguments;

int run(App& app) {
  if (arguments.program.empty() == arguments.trace.empty())
    throw UsageError(
        fmt::format("advise: found {}, expected -- PROGRAM ARGS... or --trace FILE",
                    arguments.trace.empty() ? "nothing to go by" : "a program and a trace"));
  MatrixOptions& options = arguments.matrix;
  options.modes.clear();
  for (const std::string& m : arguments.modes)
    options.modes.push_back(m == "durable" ? Durability::durable
                            : m == "group" ? Durability::group
                                           : Durability::async);
  // Before minutes of measuring are spent
  if (!arguments.picture.empty()) check_picture(arguments.picture);

  std::optional<TraceFolder> folder;
  std::string file = arguments.trace;
  if (!arguments.program.empty()) {
    folder.emplace();
    file = record(arguments.program, *folder);
    if (!arguments.trace_out.empty()) {
      std::filesystem::copy_file(file, arguments.trace_out,
                                 std::filesystem::copy_options::overwrite_existing);
      file = arguments.trace_out;
    }
  }
  const engine::WorkloadTrace trace = engine::read_workload_trace(file).value();
  Json document;
  try {
    const Interrupts interrupts;
    const Matrix matrix = measure(trace, options);
    document =
        describe({folder && arguments.trace_out.empty() ? "" : file,
                  fmt::format("{}", fmt::join(arguments.program, " ")), trace, options, matrix});
  } catch (const Interrupted& i) {
    // The scratch pool has been removed by now; end as the signal demands.
    folder.reset();
    std::raise(i.signal);
    return exit_error;
  }
  if (!arguments.picture.empty()) draw_picture(document, arguments.picture);
  if (app.json)
    print_json(document);
  else
    print_advice(document);
  return exit_ok;
}

}  // namespace

void add_advise(App& app) {
  auto sub = app.add("advise",
                     "say which engine, concurrency control and mode suit a program on a medium, "
                     "by replaying what it did",
                     "perdure advise --dir /mnt/data -- ./my_program its arguments");
  MatrixOptions& m = arguments.matrix;
  sub.option("PROGRAM", arguments.program,
             "a program and its arguments, behind --: it is run and recorded");
  sub.option("--trace", arguments.trace,
             "a trace that was recorded before (PERDURE_TRACE=FILE program)");
  sub.option("--trace-out", arguments.trace_out, "keep the trace of PROGRAM here");
  sub.option("--dir", m.directory, "where scratch pools are put: a directory on your medium")
      .show_default();
  sub.option("--medium", m.medium, "auto, file, dax or emulated")
      .one_of({"auto", "file", "dax", "emulated"})
      .show_default();
  sub.option("--engine", m.engines,
             "only these, separated by commas (default: all that isolate and run here, and "
             "volatile as a bound)")
      .separated_by(',');
  sub.option("--mode", arguments.modes,
             "of durable, group, async, separated by commas (default: durable,async)")
      .separated_by(',')
      .one_of({"durable", "group", "async"});
  sub.option("--seconds", m.seconds, "for each engine and mode in a round")
      .in_range(0.01, 3600.0)
      .show_default();
  sub.option("--rounds", m.rounds, "over all of them").in_range(1, 1000).show_default();
  sub.option("--skip", m.skip,
             "leave out so many transactions at the beginning, such as those that load");
  sub.option("--picture", arguments.picture, "draw the tables to this .svg file");
  sub.runs(run);
}

}  // namespace perdure::tool
