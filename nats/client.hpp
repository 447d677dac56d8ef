// SPDX-License-Identifier: BSD-3-Clause
//
// Client: a connection to NATS servers, through libnats, which is loaded when the first one is
// made: a program that replicates nothing needs no such library. Only requests are made, so that no
// struct of libnats is known here, and any libnats 3 does.
// Thread safety: any thread may make all calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perdure/base/status.hpp"

namespace perdure::nats {

class Client {
 public:
  /// `servers`: nats://[USER:PASSWORD@]HOST[:PORT], several with commas between them. `patience`:
  /// how long a connection and an answer may take. Where the server of the connection ends, or
  /// answers nothing for twice as long, the client goes on with another one. Errors: `unsupported`
  /// without libnats, `io`.
  static Result<std::shared_ptr<Client>> connect(const std::string& servers,
                                                 std::chrono::milliseconds patience);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  struct Answer {
    std::string data;
    std::string status;          ///< the header of that name; empty: none
    std::uint64_t sequence = 0;  ///< the header Nats-Sequence: of a stream's message; 0: none
  };
  using Headers = std::vector<std::pair<std::string, std::string>>;
  /// Sends a message and waits for its answer. `io` where there is none: the message may have
  /// arrived, or may yet.
  Result<Answer> request(const std::string& subject, const void* bytes, std::uint64_t n,
                         const Headers& headers = {});
  /// Sends a message that has several answers, and calls f for each, until it returns false. `io`
  /// where the next one does not come.
  Status request_each(const std::string& subject, const void* bytes, std::uint64_t n,
                      const std::function<bool(Answer&&)>& f);
  /// Sends a message to those that listen at present, if any. `io` where there is no connection.
  Status publish(const std::string& subject, const std::string& text);
  /// Listens from now on. Thread safety: an object belongs to one thread at a time.
  class Subscription {
   public:
    ~Subscription();
    /// The next message; none: nullopt. Waits for one, for `at_most`, in whole milliseconds; may
    /// return earlier where there is no connection.
    std::optional<std::string> next(std::chrono::milliseconds at_most = {});

   private:
    friend class Client;
    explicit Subscription(void* subscription) : subscription_(subscription) {}
    void* const subscription_;
  };
  Result<std::unique_ptr<Subscription>> listen(const std::string& subject);
  /// The largest message that the server takes, in bytes.
  [[nodiscard]] std::uint64_t largest() const;

 private:
  struct Connection;
  [[nodiscard]] Status failed(const std::string& subject, int code) const;
  explicit Client(std::unique_ptr<Connection> connection);
  const std::unique_ptr<Connection> connection_;
};

}  // namespace perdure::nats
