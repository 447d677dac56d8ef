// SPDX-License-Identifier: BSD-3-Clause
// A stranger's program with a replicated log: without a name, it is told what is missing.
#include <cstdio>
#include <nats/nats_log.hpp>

int main() {
  const auto log = perdure::nats::open_log({.servers = "", .stream = ""});
  std::printf("refused: %s\n", log.status().message().c_str());
  return log.ok() ? 1 : 0;
}
