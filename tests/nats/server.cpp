// SPDX-License-Identifier: BSD-3-Clause
#include "tests/nats/server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace perdure::nats::test {
namespace {

// Ports that were free a moment ago.
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

}  // namespace

Servers::Servers(int n) : folder_(std::filesystem::temp_directory_path() / "perdure-nats-XXXXXX") {
  if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error(folder_ + ": mkdtemp");
  const auto count = static_cast<std::size_t>(n);
  const std::vector<int> ports = free_ports(2 * count);
  std::string routes;
  for (std::size_t i = 0; i < count; ++i)
    routes += (i == 0 ? "nats-route://127.0.0.1:" : ", nats-route://127.0.0.1:") +
              std::to_string(ports[count + i]);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = "server" + std::to_string(i), folder = folder_ + "/" + name;
    std::filesystem::create_directory(folder);
    servers_.push_back({folder + "/config"});
    std::ofstream config(servers_.back().config);
    config << "server_name: " << name << "\nlisten: 127.0.0.1:" << ports[i]
           << "\njetstream { store_dir: \"" << folder
           << "\", sync_interval: always, max_file: 1G }\n";
    if (count > 1)
      config << "cluster { name: perdure, listen: 127.0.0.1:" << ports[count + i] << ", routes: [ "
             << routes << " ] }\n";
    urls_ += (i == 0 ? "nats://127.0.0.1:" : ",nats://127.0.0.1:") + std::to_string(ports[i]);
  }
  for (int i = 0; i < n; ++i) start(i);
}

Servers::~Servers() {
  for (std::size_t i = 0; i < servers_.size(); ++i)
    if (servers_[i].process != 0) send(static_cast<int>(i), SIGKILL);
  std::filesystem::remove_all(folder_);
}

void Servers::start(int i) {
  Server& server = servers_[static_cast<std::size_t>(i)];
  const char* const program = ::getenv("PERDURE_NATS_SERVER");
  if (program == nullptr) throw std::runtime_error("PERDURE_NATS_SERVER is not set");
  const std::string log = server.config + ".log";
  const pid_t parent = ::getpid();
  server.process = ::fork();
  if (server.process != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(fd, 1);
  ::dup2(fd, 2);
  ::execl(program, program, "-c", server.config.c_str(), static_cast<char*>(nullptr));
  ::_exit(127);
}

void Servers::send(int i, int signal) {
  Server& server = servers_[static_cast<std::size_t>(i)];
  ::kill(server.process, signal);
  if (signal != SIGKILL) return;
  ::waitpid(server.process, nullptr, 0);
  server.process = 0;
}

}  // namespace perdure::nats::test
