// SPDX-License-Identifier: BSD-3-Clause
//
// What is done with answers that a sound server gives seldom or never, of a server in this process:
// which requests are sent again, and which stores are refused.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "perdure/backup/places.hpp"
#include "s3/bucket.hpp"

namespace perdure::s3 {
namespace {

struct Asked {
  std::string method, path, headers, body;
};
struct Said {
  int status = 200;  // 0: the connection is closed without an answer
  std::string body;
};

// Answers one request a connection, in the order in which they come.
class FakeServer {
 public:
  explicit FakeServer(std::function<Said(const Asked&)> answer) : answer_(std::move(answer)) {
    ::setenv("no_proxy", "127.0.0.1", 1);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(0, ::bind(socket_, reinterpret_cast<sockaddr*>(&address), length));
    EXPECT_EQ(0, ::listen(socket_, 16));
    EXPECT_EQ(0, ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length));
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~FakeServer() {
    stop_ = true;
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  [[nodiscard]] BucketOptions options() const {
    BucketOptions o;
    o.place = "s3://bucket/folder";
    o.endpoint = "http://127.0.0.1:" + std::to_string(port_);
    o.access_key = "key";
    o.secret_key = "secret";
    o.patience = std::chrono::milliseconds(3000);
    return o;
  }
  // How often a method was asked for, of names without a dot before them.
  [[nodiscard]] int count(const std::string& method) {
    const std::lock_guard lock(mutex_);
    return counts_[method];
  }

 private:
  void run() {
    while (!stop_) {
      const int fd = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      serve(fd);
      ::close(fd);
    }
  }
  void serve(int fd) {
    std::string text;
    std::size_t end = std::string::npos, body = 0;
    char part[4096];
    while (end == std::string::npos || text.size() < end + 4 + body) {
      const ssize_t n = ::read(fd, part, sizeof part);
      if (n <= 0) return;
      text.append(part, static_cast<std::size_t>(n));
      if (end != std::string::npos) continue;
      end = text.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      if (const std::size_t at = text.find("Content-Length: "); at < end)
        body = std::stoul(text.substr(at + 16));
    }
    Asked asked;
    asked.method = text.substr(0, text.find(' '));
    asked.path = text.substr(asked.method.size() + 1);
    asked.path.resize(asked.path.find(' '));
    asked.headers = text.substr(0, end);
    asked.body = text.substr(end + 4);
    if (asked.path.find("/.") == std::string::npos) {
      const std::lock_guard lock(mutex_);
      ++counts_[asked.method];
    }
    const Said said = answer_(asked);
    if (said.status == 0) return;
    const std::string answer =
        "HTTP/1.1 " + std::to_string(said.status) +
        " It\r\nConnection: close\r\nContent-Length: " + std::to_string(said.body.size()) +
        "\r\n\r\n" + (asked.method == "HEAD" ? "" : said.body);
    (void)!::write(fd, answer.data(), answer.size());
  }

  const std::function<Said(const Asked&)> answer_;
  int socket_ = -1, port_ = 0;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::map<std::string, int> counts_;
  std::thread thread_;
};

// A sound store in memory, but for what `first` answers.
class Memory {
 public:
  explicit Memory(std::function<std::optional<Said>(const Asked&)> first)
      : first_(std::move(first)) {}
  Said operator()(const Asked& asked) {
    if (const auto said = first_(asked)) return *said;
    const std::string key = asked.path.substr(asked.path.find('/', 1) + 1);
    if (asked.method == "PUT") {
      const bool only_new = asked.headers.find("If-None-Match: *") != std::string::npos;
      if (only_new && objects_.contains(key)) return {412, ""};
      objects_[key] = asked.body;
      return {};
    }
    if (asked.method == "DELETE") return objects_.erase(key), Said{204, ""};
    if (key.starts_with("?")) {
      std::string prefix = asked.path.substr(asked.path.find("prefix=") + 7), all;
      prefix.replace(prefix.find("%2F"), 3, "/");
      for (const auto& [name, bytes] : objects_)
        if (name.starts_with(prefix)) all += "<Contents><Key>" + name + "</Key></Contents>";
      return {200, "<ListBucketResult>" + all + "</ListBucketResult>"};
    }
    if (!objects_.contains(key)) return {404, "<Error><Code>NoSuchKey</Code></Error>"};
    return {200, objects_[key]};
  }

 private:
  const std::function<std::optional<Said>(const Asked&)> first_;
  std::map<std::string, std::string> objects_;
};

bool is_about(const Asked& asked, const char* name) {
  return asked.path.ends_with("/" + std::string(name));
}

TEST(Answers, ASlowDownIsWaitedFor) {
  int left = 3;
  FakeServer server(Memory([&](const Asked& asked) -> std::optional<Said> {
    if (is_about(asked, "one") && asked.method == "PUT" && left-- > 0)
      return Said{503, "<Error><Code>SlowDown</Code></Error>"};
    return {};
  }));
  const auto store = open_bucket(server.options()).value();
  EXPECT_TRUE(store->put("one", "1", 1).value());
  EXPECT_EQ(4, server.count("PUT"));
}

// It may have been carried out: a second attempt would find its own object, and say that another
// one had made it.
TEST(Answers, APutWithoutAnAnswerIsNotRepeated) {
  FakeServer server(Memory([&](const Asked& asked) -> std::optional<Said> {
    if (is_about(asked, "one") && asked.method == "PUT") return Said{0, ""};
    return {};
  }));
  const auto store = open_bucket(server.options()).value();
  EXPECT_EQ(Code::io, store->put("one", "1", 1).code());
  EXPECT_EQ(1, server.count("PUT"));
}

TEST(Answers, ThoseOfABatchAndReadsAreRepeated) {
  int puts = 2, gets = 2;
  FakeServer server(Memory([&](const Asked& asked) -> std::optional<Said> {
    if (!is_about(asked, "one")) return {};
    if (asked.method == "PUT" && puts-- > 0) return Said{500, ""};
    if (asked.method == "GET" && gets-- > 0) return Said{0, ""};
    return {};
  }));
  const auto store = open_bucket(server.options()).value();
  const auto batch = store->batch();
  ASSERT_TRUE(batch->put("one", "1", 1).ok());
  EXPECT_TRUE(batch->flush().ok());
  EXPECT_EQ(1U, store->get("one").value().size());
  EXPECT_EQ(3, server.count("PUT"));
}

TEST(Answers, WhatABatchCannotMakeIsReported) {
  FakeServer server(Memory([&](const Asked& asked) -> std::optional<Said> {
    if (is_about(asked, "two") && asked.method == "PUT")
      return Said{403, "<Error><Code>AccessDenied</Code><Message>No.</Message></Error>"};
    return {};
  }));
  const auto store = open_bucket(server.options()).value();
  const auto batch = store->batch();
  ASSERT_TRUE(batch->put("one", "1", 1).ok());
  (void)batch->put("two", "2", 1);
  const Status s = batch->flush();
  EXPECT_EQ(Code::io, s.code());
  EXPECT_NE(std::string::npos, s.message().find("HTTP 403: AccessDenied: No."));
  EXPECT_EQ(Code::io, batch->put("three", "3", 1).code());
}

TEST(Answers, AStoreThatMakesAnObjectTwiceIsRefused) {
  FakeServer server(Memory([&](const Asked& asked) -> std::optional<Said> {
    return asked.method == "PUT" ? std::optional(Said{}) : std::nullopt;
  }));
  const auto opened = open_bucket(server.options());
  EXPECT_EQ(Code::unsupported, opened.code());
  EXPECT_NE(std::string::npos, opened.status().message().find("If-None-Match"));
}

TEST(Answers, AStoreThatListsLateIsRefused) {
  FakeServer server(Memory([&](const Asked& asked) -> std::optional<Said> {
    if (asked.path.find('?') == std::string::npos) return {};
    return Said{200, "<ListBucketResult></ListBucketResult>"};
  }));
  const auto opened = open_bucket(server.options());
  EXPECT_EQ(Code::unsupported, opened.code());
  EXPECT_NE(std::string::npos, opened.status().message().find("list"));
}

// For restore and verify: a key that can't write is enough.
TEST(Answers, WhoOnlyReadsWritesNothing) {
  FakeServer server(Memory([](const Asked& asked) -> std::optional<Said> {
    return asked.method == "GET" || asked.method == "HEAD" ? std::nullopt
                                                           : std::optional(Said{403, ""});
  }));
  BucketOptions o = server.options();
  EXPECT_EQ(Code::io, open_bucket(o).code());
  o.writes = false;
  EXPECT_FALSE(open_bucket(o).value()->has("one").value());
}

TEST(Answers, WhatIsNoStoreIsRefused) {
  FakeServer server([](const Asked& asked) {
    return asked.method == "PUT" ? Said{412, ""} : Said{200, "<html>Welcome"};
  });
  EXPECT_EQ(Code::io, open_bucket(server.options()).code());
}

TEST(Answers, NobodyListensThere) {
  BucketOptions o;
  {
    FakeServer server([](const Asked&) { return Said{}; });
    o = server.options();
  }
  o.patience = std::chrono::milliseconds(300);
  EXPECT_EQ(Code::io, open_bucket(o).code());
}

TEST(Answers, KeysAreNeeded) {
  for (const char* const name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}) ::unsetenv(name);
  enable();
  const auto opened = backup::open_place("s3://bucket/folder", true);
  EXPECT_EQ(Code::invalid, opened.code());
  EXPECT_NE(std::string::npos, opened.status().message().find("AWS_ACCESS_KEY_ID"));
}

}  // namespace
}  // namespace perdure::s3
