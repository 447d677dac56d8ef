// SPDX-License-Identifier: BSD-3-Clause
//
// compat_pool: makes the pools of tests/compat, and checks kept ones with this build. compat.py
// calls it; use compat.py.
//
//   compat_pool list                        the names of all pools that it can make, one per line
//   compat_pool make NAME PATH              makes one at PATH; prints its line of the manifest
//                                           (JSON)
//   compat_pool check < LINES               each line: path, name, engine, order, grain of the log,
//                                           ended, version, survives, large,
//                                           transactions, digest, and the words of a refusal or
//                                           "-", separated by tabs. One process opens all of them
//                                           in turn.
#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/compat/spec.hpp"

namespace perdure::compat {
namespace {

int list() {
  for (const Spec& s : all_specs()) std::puts(s.name.c_str());
  return 0;
}

int make_one(std::string_view name, const std::string& path) {
  for (const Spec& s : all_specs()) {
    if (s.name != name) continue;
    make(s, path);
    return 0;
  }
  std::fprintf(stderr,
               "compat_pool: found the name '%s', expected one that `compat_pool list` prints\n",
               std::string(name).c_str());
  return 2;
}

int check_all() {
  int failures = 0;
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::string> part;
    std::istringstream in(line);
    for (std::string text; std::getline(in, text, '\t');) part.push_back(text);
    if (part.size() != 12) {
      std::fprintf(stderr, "compat_pool: found a line of %zu fields, expected 12\n", part.size());
      return 2;
    }
    Known k;
    k.name = part[1];
    k.engine = part[2];
    k.order = part[3];
    k.unit = static_cast<std::uint32_t>(std::stoul(part[4]));
    k.clean = part[5] == "closed";
    k.version = static_cast<std::uint32_t>(std::stoul(part[6]));
    k.survives = part[7] == "1";
    k.large = part[8] == "1";
    k.transactions = std::stoull(part[9]);
    k.digest = std::stoull(part[10], nullptr, 16);
    if (part[11] != "-") k.refused = part[11];
    const std::string why = check(k, part[0]);
    failures += why.empty() ? 0 : 1;
    std::printf("%s\t%s\n", k.name.c_str(), why.empty() ? "ok" : why.c_str());
    (void)std::fflush(stdout);
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace perdure::compat

int main(int argc, char** argv) {
  using namespace perdure::compat;
  const std::vector<std::string> args(argv + 1, argv + argc);
  try {
    if (args.size() == 1 && args[0] == "list") return list();
    if (args.size() == 3 && args[0] == "make") return make_one(args[1], args[2]);
    if (args.size() == 1 && args[0] == "check") return check_all();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "compat_pool: %s\n", e.what());
    return 1;
  }
  std::fputs("usage: compat_pool list | make NAME PATH | check < LINES\n", stderr);
  return 2;
}
