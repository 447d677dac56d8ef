// SPDX-License-Identifier: BSD-3-Clause
#include "s3/bucket.hpp"

#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "perdure/backup/places.hpp"
#include "perdure/base/signals.hpp"
#include "perdure/replication/self_test.hpp"
#include "s3/client.hpp"
#include "s3/enable.h"
#include "s3/lock.hpp"

namespace perdure::s3 {
namespace {

constexpr std::size_t uploads_at_once = 8;
constexpr std::string_view scheme = "s3://";
constexpr const char* letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/";

class Bucket final : public backup::Store {
 public:
  Bucket(std::shared_ptr<Client> client, std::string prefix, std::string place)
      : client_(std::move(client)), prefix_(std::move(prefix)), place_(std::move(place)) {}

  Result<bool> put(const std::string& name, const void* bytes, std::uint64_t n) override {
    return put(name, bytes, n, false);
  }
  // `repeatable`: sent again after no answer, too. The result then does not say which attempt has
  // made it.
  Result<bool> put(const std::string& name, const void* bytes, std::uint64_t n, bool repeatable) {
    const Answer answer = client_->send({.method = "PUT",
                                         .key = prefix_ + name,
                                         .bytes = bytes,
                                         .n = n,
                                         .only_new = true,
                                         .repeatable = repeatable});
    if (answer.ok()) return true;
    if (answer.status == 412) return false;
    return failed(place_, "PUT of " + name, answer);
  }

  std::unique_ptr<Batch> batch() override { return std::make_unique<Uploads>(*this); }

  Result<std::vector<std::byte>> get(const std::string& name) override {
    const Answer answer = client_->send({.key = prefix_ + name});
    if (answer.status == 404 && answer.code() != "NoSuchBucket")
      return failure(Code::not_found, place_ + "/" + name, "no such object", "one of the archive",
                     "take it from another copy of the archive");
    if (!answer.ok()) return failed(place_, "GET of " + name, answer);
    const auto* const first = reinterpret_cast<const std::byte*>(answer.body.data());
    return std::vector<std::byte>(first, first + answer.body.size());
  }

  Result<bool> has(const std::string& name) override {
    const Answer answer = client_->send({.method = "HEAD", .key = prefix_ + name});
    if (answer.ok()) return true;
    if (answer.status == 404) return false;
    return failed(place_, "HEAD of " + name, answer);
  }

  Result<std::vector<std::string>> list(std::string_view from) override {
    auto names = list_names(*client_, prefix_, std::string(from), place_);
    if (names.ok())
      std::erase_if(*names, [](const std::string& name) {  // locks
        return name.starts_with('.') || name.find("/.") != std::string::npos;
      });
    return names;
  }

  Status remove(const std::string& name) override {
    const Answer answer = client_->send({.method = "DELETE", .key = prefix_ + name});
    return answer.ok() || answer.status == 404 ? Status()
                                               : failed(place_, "DELETE of " + name, answer);
  }

  Result<std::shared_ptr<void>> lock(Use use) override {
    return take_lock(client_, prefix_, place_, use);
  }

  [[nodiscard]] const std::string& name() const noexcept override { return place_; }

  /// Whether the store makes an object of a name once, and lists it.
  Status probe() {
    const std::string name = ".probe-" + replication::random_name();
    auto made = put(name, "1", 1, false);
    if (!made) return made.status();
    auto again = put(name, "2", 1, false);
    auto names = list_names(*client_, prefix_, name, place_);
    const Status removed = remove(name);
    if (!again) return again.status();
    if (!names) return names.status();
    if (!removed.ok()) return removed;
    if (*made && !*again && *names == std::vector{name}) return {};
    return failure(Code::unsupported, place_,
                   *again ? "a store that makes an object twice, in spite of If-None-Match"
                          : "a store that does not list what was made",
                   "one that keeps to the S3 protocol", "use a newer version, or another store");
  }

 private:
  // Several PUTs at a time: each waits for its answer.
  class Uploads final : public Batch {
   public:
    explicit Uploads(Bucket& bucket) : bucket_(bucket) {}
    ~Uploads() override {
      {
        const std::lock_guard lock(mutex_);
        waiting_.clear();
        ended_ = true;
      }
      changed_.notify_all();
      const bool here = ::getpid() == process_;  // a forked child has only their handles
      for (std::thread& t : threads_) here ? t.join() : t.detach();
    }
    Status put(const std::string& name, const void* bytes, std::uint64_t n) override {
      const auto* const first = static_cast<const std::byte*>(bytes);
      std::unique_lock lock(mutex_);
      if (threads_.size() < uploads_at_once) {
        threads_.reserve(uploads_at_once);
        const base::BlockedSignals blocked;
        threads_.emplace_back([this] { work(); });
      }
      changed_.wait(lock, [&] { return waiting_.size() < uploads_at_once || !failed_.ok(); });
      if (!failed_.ok()) return failed_;
      waiting_.emplace_back(name, std::vector<std::byte>(first, first + n));
      changed_.notify_all();
      return {};
    }
    Status flush() override {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return waiting_.empty() && under_way_ == 0; });
      return failed_;
    }

   private:
    void work() {
      std::unique_lock lock(mutex_);
      for (;;) {
        changed_.wait(lock, [&] { return ended_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        const auto [name, bytes] = std::move(waiting_.front());
        waiting_.pop_front();
        ++under_way_;
        lock.unlock();
        Status s;
        try {
          s = bucket_.put(name, bytes.data(), bytes.size(), true).status();
        } catch (const std::bad_alloc&) {
          s = failure(Code::out_of_memory, bucket_.place_, "no memory for a request");
        }
        lock.lock();
        --under_way_;
        if (!s.ok() && failed_.ok()) {
          failed_ = std::move(s);
          waiting_.clear();
        }
        changed_.notify_all();
      }
    }

    Bucket& bucket_;
    const pid_t process_ = ::getpid();
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::pair<std::string, std::vector<std::byte>>> waiting_;
    std::size_t under_way_ = 0;
    Status failed_;
    bool ended_ = false;
    std::vector<std::thread> threads_;
  };

  const std::shared_ptr<Client> client_;
  const std::string prefix_, place_;
};

std::string given_or(const std::string& given, std::initializer_list<const char*> variables) {
  if (!given.empty()) return given;
  for (const char* const name : variables)
    if (const char* const value = std::getenv(name); value != nullptr && *value != '\0')
      return value;
  return {};
}

}  // namespace

Result<std::shared_ptr<backup::Store>> open_bucket(const BucketOptions& options) {
  const auto wrong = [&](const std::string& found, const std::string& expected) {
    return failure(Code::invalid, options.place, found, expected, "see docs/s3.md");
  };
  std::string place = options.place;
  while (place.size() > scheme.size() && place.ends_with('/')) place.pop_back();
  if (!place.starts_with(scheme) || place.size() == scheme.size())
    return wrong("no place in a bucket", "s3://BUCKET or s3://BUCKET/FOLDER");
  const std::string inner = place.substr(scheme.size());
  const std::size_t slash = inner.find('/');
  const std::string bucket = inner.substr(0, slash);
  const std::string prefix = slash == std::string::npos ? "" : inner.substr(slash + 1) + "/";
  if (bucket.empty() || inner.find_first_not_of(letters) != std::string::npos ||
      inner.find("//") != std::string::npos)
    return wrong("a name with other letters", "a-z, A-Z, 0-9, '-', '.', '_', and '/' between them");
  Account account;
  account.patience = options.patience;
  account.region = given_or(options.region, {"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (account.region.empty()) account.region = "us-east-1";
  account.access_key = given_or(options.access_key, {"AWS_ACCESS_KEY_ID"});
  account.secret_key = given_or(options.secret_key, {"AWS_SECRET_ACCESS_KEY"});
  // A session's token belongs to its keys.
  account.session_token = options.access_key.empty()
                              ? given_or(options.session_token, {"AWS_SESSION_TOKEN"})
                              : options.session_token;
  if (account.access_key.empty() || account.secret_key.empty())
    return wrong("no key",
                 "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or BucketOptions with them");
  std::string endpoint = given_or(options.endpoint, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  while (endpoint.ends_with('/')) endpoint.pop_back();
  if (endpoint.empty())
    account.url = "https://" + bucket + ".s3." + account.region + ".amazonaws.com";
  else if (endpoint.starts_with("http://") || endpoint.starts_with("https://"))
    account.url = endpoint + "/" + bucket;
  else
    return wrong("the endpoint " + endpoint, "http://HOST:PORT or https://HOST");
  if (options.patience.count() <= 0) return wrong("no patience", "above 0 ms");
  auto store =
      std::make_shared<Bucket>(std::make_shared<Client>(std::move(account)), prefix, place);
  if (options.writes)
    if (Status s = store->probe(); !s.ok()) return s;
  return std::shared_ptr<backup::Store>(std::move(store));
}

void enable() {
  backup::register_places("s3", [](const std::string& place, bool create) {
    BucketOptions options;
    options.place = place;
    options.writes = create;
    return open_bucket(options);
  });
}

}  // namespace perdure::s3

int perdure_s3_enable(void) {
  try {
    perdure::s3::enable();
    return static_cast<int>(perdure::Code::ok);
  } catch (const std::bad_alloc&) {
    return static_cast<int>(perdure::Code::out_of_memory);
  }
}
