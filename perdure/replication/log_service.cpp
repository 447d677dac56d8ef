// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/replication/log_service.hpp"

#include <thread>

namespace perdure::replication {
namespace {

Status confirms_nothing(const std::string& name) {
  return failure(Code::unsupported, name, "a log over which standbys can't say how far they are",
                 "one that carries it", "wait for `shipped` or `quorum`");
}

}  // namespace

Status LogService::confirm(const Confirmed&) { return confirms_nothing(name()); }
Result<std::vector<Confirmed>> LogService::confirmed() { return confirms_nothing(name()); }
bool LogService::wait(std::uint64_t, std::chrono::microseconds at_most) {
  std::this_thread::sleep_for(at_most);
  return false;
}

Result<bool> at_end(const LogEnds& ends, std::uint64_t from, const std::string& name) {
  if (from == ends.last + 1) return true;
  if (from < ends.first)
    return failure(Code::expired, name,
                   "no message " + std::to_string(from) + ": the log begins with " +
                       std::to_string(ends.first),
                   {}, "make this copy anew from a backup");
  if (from <= ends.last) return false;
  return failure(Code::not_found, name, "a log that ends with message " + std::to_string(ends.last),
                 "message " + std::to_string(from - 1) + ", which was there",
                 "the log has lost its end: keep this copy, and see what the others have");
}

}  // namespace perdure::replication
