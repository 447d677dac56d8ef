// SPDX-License-Identifier: BSD-3-Clause
#include "tools/advise/record.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "perdure/base/descriptor.hpp"
#include "perdure/engine/workload_trace.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

/// Returns the program's wait status; throws if it could not be started.
int run_program(const std::vector<std::string>& program, const std::string& trace) {
  std::vector<char*> argv;
  for (const std::string& a : program) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  int told[2];  // carries the child's errno if exec fails
  if (base::open_pipe(told) != 0) throw error(system_failure(program[0], "pipe", errno));
  const pid_t child = ::fork();
  if (child < 0) throw error(system_failure(program[0], "fork", errno));
  if (child == 0) {
    ::setenv("PERDURE_TRACE", trace.c_str(), 1);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    std::signal(SIGPIPE, SIG_DFL);
    ::execvp(argv[0], argv.data());
    const int err = errno;
    (void)!::write(told[1], &err, sizeof err);
    ::_exit(127);
  }
  ::close(told[1]);
  int err = 0;
  const bool failed = ::read(told[0], &err, sizeof err) == sizeof err;
  ::close(told[0]);
  // The terminal sends the signal to both processes: it ends the program, and this process goes on.
  const auto before = std::signal(SIGINT, SIG_IGN);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  std::signal(SIGINT, before);
  if (failed)
    throw error(
        system_failure(program[0], "exec", err, "perdure advise [OPTIONS] -- PROGRAM ARGS..."));
  return status;
}

}  // namespace

TraceFolder::TraceFolder() {
  const char* const under = std::getenv("TMPDIR");
  path_ = std::string(under != nullptr && *under != 0 ? under : "/tmp") + "/perdure-advise-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr)
    throw error(
        system_failure(path_, "mkdtemp", errno, "TMPDIR names a directory that can be written"));
}

TraceFolder::~TraceFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string record(const std::vector<std::string>& program, const TraceFolder& folder) {
  const int status = run_program(program, folder.path() + "/%p.trace");
  // Servers are ended in this way.
  const bool stopped =
      WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM);
  if (WIFSIGNALED(status) && !stopped)
    throw error(failure(Code::invalid, program[0],
                        fmt::format("it was killed by signal {} ({})", WTERMSIG(status),
                                    ::strsignal(WTERMSIG(status))),
                        "a run that ends in order",
                        "mend it, or record it by hand and use --trace"));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    throw error(
        failure(Code::invalid, program[0], fmt::format("exit status {}", WEXITSTATUS(status)),
                "0: a run that ends in order",
                "mend its arguments, or record it by hand (PERDURE_TRACE=FILE) and use --trace"));
  std::string found;
  std::uint64_t most = 0, traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const auto trace = engine::read_workload_trace(entry.path());
    if (!trace.ok()) trace.status().or_throw();
    ++traces;
    if (trace->transactions > most) most = trace->transactions, found = entry.path();
  }
  constexpr std::string_view how =
      "open its pool as Pool<Root> without a list of engines, or through perdure.h "
      "(docs/advise.md)";
  if (traces == 0)
    throw error(
        failure(Code::not_found, program[0], "no pool that it opened was recorded", "one", how));
  if (found.empty())
    throw error(failure(Code::not_found, program[0],
                        "it opened a pool and committed no transaction", "some", "let it work"));
  if (traces > 1)
    fmt::print(stderr,
               "perdure: {} pools were recorded; going by the one with the most transactions, {}\n",
               traces, grouped(most));
  return found;
}

}  // namespace perdure::tool
