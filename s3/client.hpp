// SPDX-License-Identifier: BSD-3-Clause
//
// Client: signed HTTP requests to one bucket (AWS Signature Version 4, which libcurl makes), and
// when an attempt is repeated.
// Thread safety: any thread may make all calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "perdure/base/status.hpp"

namespace perdure::s3 {

/// Where requests go, and who sends them.
struct Account {
  std::string url;  ///< of the bucket, without '/' at its end
  std::string region, access_key, secret_key, session_token;
  std::chrono::milliseconds patience{0};
};

/// What is asked. Its texts outlive the call.
struct Request {
  const char* method = "GET";
  std::string key = {};
  std::string query = {};       ///< its names in rising order, its values encoded
  const void* bytes = nullptr;  ///< of a PUT
  std::uint64_t n = 0;
  bool only_new = false;  ///< a PUT: If-None-Match: *
  /// Whether it may be carried out twice. A PUT that is may find its own object.
  bool repeatable = true;
};

struct Answer {
  long status = 0;  ///< HTTP's; 0: none came
  std::string body;
  std::string why;  ///< of status 0
  /// Whether the request may have been carried out.
  bool begun = true;

  [[nodiscard]] bool ok() const noexcept { return status >= 200 && status < 300; }
  /// "HTTP 403: AccessDenied: ...", for people.
  [[nodiscard]] std::string words() const;
  /// <Code> of the body; empty: it has none.
  [[nodiscard]] std::string code() const;
};

class Client {
 public:
  explicit Client(Account account) : account_(std::move(account)) {}
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Sends a request, again after errors that will pass, up to the account's patience. What may
  /// have been carried out is sent again only if it is repeatable.
  Answer send(const Request& request);

 private:
  Answer once(void* handle, const Request& request) const;
  void* take();
  void give(void* handle) noexcept;

  const Account account_;
  std::mutex mutex_;
  std::vector<void*> idle_;  // libcurl's handles, each with its connection
};

/// The names below `prefix` + `from`, without `prefix`, in rising order.
Result<std::vector<std::string>> list_names(Client& client, const std::string& prefix,
                                            const std::string& from, const std::string& place);

/// What an answer that is no success means. `what`: what was done.
Status failed(const std::string& place, const std::string& what, const Answer& answer);

}  // namespace perdure::s3
