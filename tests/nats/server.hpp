// SPDX-License-Identifier: BSD-3-Clause
//
// NATS servers with JetStream on loopback, as child processes that end with the test.
// Thread safety: none.
#pragma once

#include <string>
#include <vector>

#include "tests/support/child_server.hpp"

namespace perdure::nats::test {

/// `n` servers, one cluster if n is above 1, each with a folder of its own. The user of their
/// system account is `system`, with the password `secret`; other clients need no name.
class Servers {
 public:
  /// `always`: they sync each message before they answer.
  explicit Servers(int n, bool always = true);
  ~Servers();  ///< kills them and removes their folders
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  void start(int i) { servers_[static_cast<std::size_t>(i)].start(); }
  /// SIGKILL: and waits for its end.
  void send(int i, int signal) { servers_[static_cast<std::size_t>(i)].send(signal); }
  /// nats://127.0.0.1:PORT of all, with commas between them.
  [[nodiscard]] const std::string& urls() const { return urls_; }
  /// nats://127.0.0.1:PORT of one.
  [[nodiscard]] std::string url(int i) const;
  /// nats://HOST:PORT,HOST:PORT/STREAM: what ReplicateOptions::log is given.
  [[nodiscard]] std::string log(const std::string& stream) const;

 private:
  std::string folder_, urls_;
  std::vector<int> ports_;
  std::vector<perdure::test::ChildServer> servers_;
};

}  // namespace perdure::nats::test
