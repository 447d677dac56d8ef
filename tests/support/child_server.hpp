// SPDX-License-Identifier: BSD-3-Clause
//
// Servers that a test starts on loopback as child processes, which end with it.
// Thread safety: none.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace perdure::test {

/// n ports of loopback that were free a moment ago, all different.
std::vector<int> free_ports(std::size_t n);

class ChildServer {
 public:
  /// `command`: the program's path and its arguments. What it prints goes to the file `log`.
  ChildServer(std::vector<std::string> command, std::string log);
  ~ChildServer();  ///< kills it
  ChildServer(ChildServer&& other) noexcept;
  ChildServer& operator=(ChildServer&&) = delete;

  void start();
  void send(int signal);  ///< SIGKILL: and waits for its end

 private:
  std::vector<std::string> command_;
  std::string log_;
  pid_t process_ = 0;
};

/// The value of an environment variable with a program's path; throws where it is not set.
std::string program_of(const char* variable);

}  // namespace perdure::test
