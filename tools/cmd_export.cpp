// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure export POOL [FILE]`: writes what was loaded, byte for byte (exporter.hpp). A file is
// written whole or not at all (output_file.hpp).
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/command.hpp"
#include "tools/exporter.hpp"
#include "tools/json.hpp"
#include "tools/output_file.hpp"

namespace perdure::tool {
namespace {

struct Arguments {
  PoolArguments pool;
  std::string file = "-";
} arguments;

int run(App& app) {
  if (app.json && arguments.file == "-")
    throw error(failure(Code::invalid, "", "--json with an export to standard output", "a FILE"));
  auto pool = StorePool::open(arguments.pool, StorePool::Access::read);
  const SourceState source = pool.source();
  OutputFile out(arguments.file, arguments.pool.path);
  Exporter exporter(source, [&](std::string_view bytes) { out.write(bytes); });
  std::uint64_t rows = 0;
  pool.each_row([&](const StoredRow& row) {
    exporter.row(row);
    ++rows;
    return true;
  });
  exporter.end();
  out.finish();
  if (source.begun && !source.complete) {
    fmt::print(stderr,
               "perdure: {}: the load of {} was cut at line {}; exported is what came before it\n",
               arguments.pool.path, source.path, source.line);
  }
  if (app.json)
    print_json({{"pool", arguments.pool.path},
                {"file", arguments.file},
                {"rows", rows},
                {"bytes", out.bytes()},
                {"complete", !source.begun || source.complete}});
  return exit_ok;
}

}  // namespace

void add_export(App& app) {
  auto sub = app.add("export", "write what was loaded, byte for byte",
                     "perdure export packages.perdure Packages.copy");
  arguments.pool.add_to(sub);
  sub.option("FILE", arguments.file, "where to; -: standard output").show_default();
  sub.runs(run);
}

}  // namespace perdure::tool
