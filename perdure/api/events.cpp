// SPDX-License-Identifier: BSD-3-Clause
//
// Pool::events: the events of a pool that this process has open. A stream may outlive its pool:
// what it asks of the pool goes through PoolEvents, which the pool's end closes.
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "perdure/api/pool_base.hpp"
#include "perdure/backup/archive.hpp"
#include "perdure/backup/event_source.hpp"
#include "perdure/base/descriptor.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/engine/followed_log.hpp"
#include "perdure/engine/follow/log_durable.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure {
namespace detail {

class PoolEvents {
 public:
  explicit PoolEvents(RunningEngine& running) : running_(&running) {}
  /// Calls f(running) if the pool is open; otherwise returns `closed`.
  template <class F>
  auto with(F&& f) -> decltype(f(std::declval<RunningEngine&>())) {
    const std::lock_guard lock(mutex_);
    if (running_ == nullptr) return failure(Code::closed, "", "events of a pool that was closed");
    if (Status s = base::ensure_thread_slot(); !s.ok()) return s;
    return f(*running_);
  }
  void end() noexcept {
    const std::lock_guard lock(mutex_);
    running_ = nullptr;
  }

 private:
  std::mutex mutex_;
  RunningEngine* running_;
};

namespace {

// A descriptor of its own, which stays what it is when the pool is closed.
class OwnLog final : public backup::EventLog {
 public:
  OwnLog(std::shared_ptr<PoolEvents> pool, const pool::OpenPool& file)
      : pool_(std::move(pool)), path_(file.path()) {
    const std::string name = "/proc/self/fd/" + std::to_string(file.fd());
    fd_ = file.fd() < 0 ? -1 : base::open_file(name.c_str(), O_RDONLY);
    if (fd_ < 0)
      throw error(failure(Code::unsupported, path_, "events of a pool that lies in no file",
                          "a pool file"));
  }
  ~OwnLog() override { ::close(fd_); }
  int fd() const override { return fd_; }
  const std::string& path() const override { return path_; }
  Result<pool::Header> header() const override {
    return pool_->with([](RunningEngine& running) -> Result<pool::Header> {
      pool::OpenPool& file = running.file();
      return file.following() ? file.newest_header() : Result<pool::Header>(file.header_now());
    });
  }
  Result<std::uint64_t> durable() override {
    return pool_->with([](RunningEngine& running) -> Result<std::uint64_t> {
      if (engine::FollowedLog* const log = running.followed_log(); log != nullptr) {
        if (running.state() != 0) return failure(Code::closed, "", "events of a pool that is closed");
        return log->followable_id();
      }
      return running.durable_now();  // of a pool that follows: what its views see
    });
  }
  Result<std::uint64_t> newest() override {
    return pool_->with([](RunningEngine& running) -> Result<std::uint64_t> {
      return running.stats().last_id;
    });
  }
  Status make_durable(const std::vector<engine::follow::LogReader::Place>&) override {
    return {};  // it never said `unknown`
  }

 private:
  const std::shared_ptr<PoolEvents> pool_;
  const std::string path_;
  int fd_ = -1;
};

}  // namespace
}  // namespace detail

EventStream PoolBase::events(const EventOptions& options) {
  running_->must_be_own();
  base::ensure_thread_slot().or_throw();
  if (running_->followed_log() == nullptr && running_->follower() == nullptr)
    throw error(failure(Code::unsupported, file().path(),
                        "events with engine '" + std::string(name_) + "'",
                        "an engine that keeps events: shadow, shadow/stm, shadow/global_lock",
                        "open the pool with one of them if it is of their family"));
  if (events_ == nullptr) events_ = std::make_shared<detail::PoolEvents>(*running_);
  std::shared_ptr<backup::Store> store;
  if (!options.archive.empty())
    store = backup::open_folder(options.archive, false).value();
  else if (backup::Archive* const archive = running_->archive(); archive != nullptr)
    store = archive->store();
  return EventStream(std::make_unique<EventStream::Source>(
      std::make_unique<detail::OwnLog>(events_, file()), std::move(store), options));
}

Following PoolBase::follow(const EventOptions& options, Following::Call f) {
  return {events(options), std::move(f)};
}

void PoolBase::end_events() noexcept {
  if (events_ != nullptr) events_->end();
  events_ = nullptr;
}

}  // namespace perdure
