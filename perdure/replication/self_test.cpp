// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/replication/self_test.hpp"

#include <sys/random.h>

#include <algorithm>
#include <span>
#include <thread>

#include "perdure/base/signals.hpp"

namespace perdure::replication {
namespace {

constexpr std::uint64_t rounds = 8;

}  // namespace

std::string random_name() {
  unsigned char bytes[16] = {};
  (void)!::getrandom(bytes, sizeof bytes, 0);
  std::string name;
  for (const unsigned char b : bytes) name += static_cast<char>('a' + b % 26);
  return name;
}

Status self_test(LogService& one, LogService& other) {
  const auto wrong = [&](std::uint64_t at, const std::string& found) {
    return failure(Code::incompatible, one.name(),
                   "two appends of message " + std::to_string(at) + ": " + found,
                   "one that succeeds, and one that is refused",
                   "this service, or its version, lets two writers win: use another one");
  };
  const std::string text[2] = {"one", "other"};
  const base::BlockedSignals blocked;  // the threads take no signals of the program
  for (std::uint64_t at = 1; at <= rounds; ++at) {
    AppendAnswer came[2];
    std::thread second([&] { came[1] = other.append(at, text[1].data(), text[1].size()); });
    came[0] = one.append(at, text[0].data(), text[0].size());
    second.join();
    for (const AppendAnswer& answer : came)
      if (answer.outcome == Append::unknown)
        return failure(Code::io, one.name(),
                       "no answer in a test of the log: " + answer.why.message(), {}, {});
    const bool first = came[0].outcome == Append::done;
    if (first == (came[1].outcome == Append::done))
      return wrong(at, first ? "both succeeded" : "both were refused");
    auto read = one.read(at, 1);
    if (!read) return read.status();
    const std::string& expected = text[first ? 0 : 1];
    if (read->size() != 1 ||
        !std::ranges::equal(read->front().bytes, std::as_bytes(std::span(expected))))
      return wrong(at, "the message is not that of the one that succeeded");
  }
  return {};
}

}  // namespace perdure::replication
