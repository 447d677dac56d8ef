// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/child_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace perdure::test {

std::vector<int> free_ports(std::size_t n) {
  std::vector<int> sockets, ports;
  for (std::size_t i = 0; i < n; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0)
      throw std::runtime_error("no free port");
    sockets.push_back(fd);
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int fd : sockets) ::close(fd);
  return ports;
}

std::string program_of(const char* variable) {
  const char* const program = ::getenv(variable);
  if (program == nullptr) throw std::runtime_error(std::string(variable) + " is not set");
  return program;
}

ChildServer::ChildServer(std::vector<std::string> command, std::string log)
    : command_(std::move(command)), log_(std::move(log)) {}

ChildServer::ChildServer(ChildServer&& other) noexcept
    : command_(std::move(other.command_)),
      log_(std::move(other.log_)),
      process_(std::exchange(other.process_, 0)) {}

ChildServer::~ChildServer() {
  if (process_ != 0) send(SIGKILL);
}

void ChildServer::start() {
  std::vector<char*> arguments;
  for (std::string& word : command_) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int fd = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(fd, 1);
  ::dup2(fd, 2);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

void ChildServer::send(int signal) {
  ::kill(process_, signal);
  if (signal != SIGKILL) return;
  ::waitpid(process_, nullptr, 0);
  process_ = 0;
}

}  // namespace perdure::test
