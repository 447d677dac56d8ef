// SPDX-License-Identifier: BSD-3-Clause
//
// A second process of a test, which does what the test tells it, one number at a time.
// Thread safety: one thread.
#pragma once

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <utility>

namespace perdure::test {

/// One end of the line between the two.
class Line {
 public:
  explicit Line(int fd) : fd_(fd) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { ::close(fd_); }
  void send(std::uint64_t number) { (void)!::write(fd_, &number, sizeof number); }
  /// Returns false when the other process has ended.
  bool receive(std::uint64_t& number) { return ::read(fd_, &number, sizeof number) == 8; }

 private:
  int fd_;
};

/// Runs `body(line)` in a child of this process. The destructor kills it.
class Process {
 public:
  explicit Process(const std::function<void(Line&)>& body) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) std::abort();
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      int status = 0;
      try {
        Line line(ends[1]);
        body(line);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "second process: %s\n", e.what());
        status = 1;
      }
      ::_exit(status);
    }
    ::close(ends[1]);
    line_ = new Line(ends[0]);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    kill(SIGKILL);
    (void)wait();
    delete line_;
  }
  /// Sends a number and returns the answer; `gone` if the process has ended.
  static constexpr std::uint64_t gone = ~std::uint64_t{0};
  std::uint64_t ask(std::uint64_t number) {
    std::uint64_t answer = gone;
    line_->send(number);
    return line_->receive(answer) ? answer : gone;
  }
  [[nodiscard]] Line& line() noexcept { return *line_; }
  void kill(int signal) const {
    if (pid_ > 0) ::kill(pid_, signal);
  }
  /// Waits for its end. Returns the exit status, or minus the signal.
  int wait() {
    if (pid_ <= 0) return status_;
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    pid_ = -1;
    return status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int status_ = -1;
  Line* line_ = nullptr;
};

}  // namespace perdure::test
