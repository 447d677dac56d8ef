// SPDX-License-Identifier: BSD-3-Clause
//
// Pool::events: the events of a pool that this process has open. A stream may outlive its pool:
// what it asks of the pool goes through PoolEvents, which the pool's end closes.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "perdure/api/pool_base.hpp"
#include "perdure/backup/archive.hpp"
#include "perdure/backup/event_source.hpp"
#include "perdure/backup/places.hpp"
#include "perdure/base/descriptor.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/engine/engine_base.hpp"
#include "perdure/engine/follow/log_durable.hpp"
#include "perdure/engine/followed_log.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure {
namespace detail {

class PoolEvents {
 public:
  explicit PoolEvents(RunningEngine& running) : running_(&running) {}
  /// Calls f(running) if the pool is there, otherwise gone().
  template <class F, class Gone>
  auto with(F&& f, Gone&& gone) -> decltype(f(std::declval<RunningEngine&>())) {
    // In a forked child another thread of the parent's may have held the lock.
    if (process_ != ::getpid()) return closed();
    const std::lock_guard lock(mutex_);
    if (running_ == nullptr) return gone();
    if (Status s = base::ensure_thread_slot(); !s.ok()) return s;
    return f(*running_);
  }
  /// The pool ends: everything that it has made durable is so up to this id.
  void end(std::uint64_t durable) noexcept {
    const std::lock_guard lock(mutex_);
    running_ = nullptr;
    durable_ = durable;
  }
  /// After that.
  [[nodiscard]] std::uint64_t durable() const noexcept { return durable_; }
  static Status closed() { return failure(Code::closed, "", "events of a pool that was closed"); }

 private:
  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  RunningEngine* running_;
  std::uint64_t durable_ = 0;
};

namespace {

constexpr std::uint32_t not_open = ~engine::EngineBase::read_only_bit;

// It has a descriptor of its own, which stays what it is when the pool is closed: what the pool has
// emitted last is read from there.
class OwnLog final : public backup::EventLog {
 public:
  OwnLog(std::shared_ptr<PoolEvents> pool, const pool::OpenPool& file)
      : pool_(std::move(pool)), path_(file.path()), header_(file.header_now()) {
    const std::string name = "/proc/self/fd/" + std::to_string(file.fd());
    struct stat st = {};
    fd_ = file.fd() < 0 ? -1 : base::open_file(name.c_str(), O_RDONLY);
    if (fd_ >= 0 && ::fstat(fd_, &st) == 0 && S_ISREG(st.st_mode)) return;
    if (fd_ >= 0) ::close(fd_);
    throw error(failure(Code::unsupported, path_, "events of a pool that lies in no file",
                        "a pool in a regular file"));
  }
  ~OwnLog() override { ::close(fd_); }
  int fd() const override { return fd_; }
  const std::string& path() const override { return path_; }
  Result<pool::Header> header() const override {
    return pool_->with(
        [this](RunningEngine& running) -> Result<pool::Header> {
          pool::OpenPool& file = running.file();
          if (file.following()) return file.newest_header();
          // A close empties the log in the header, and leaves its bytes.
          if (const pool::Header now = file.header_now();
              (running.state() & not_open) == 0 && (now.clean != 1 || file.read_only()))
            header_ = now;
          return header_;
        },
        [this]() -> Result<pool::Header> { return header_; });
  }
  Result<std::uint64_t> durable() override {
    return pool_->with(
        [](RunningEngine& running) -> Result<std::uint64_t> {
          if (running.file().following()) return backup::durable_of(running.file());
          if (running.file().read_only()) return running.file().header().checkpoint_id;
          if (engine::FollowedLog* const log = running.followed_log();
              log != nullptr && (running.state() & not_open) == 0)
            return log->followable_id();
          return running.durable_now();
        },
        [this]() -> Result<std::uint64_t> { return pool_->durable(); });
  }
  Result<std::uint64_t> newest() override {
    return pool_->with(
        [](RunningEngine& running) -> Result<std::uint64_t> {
          if (running.file().following()) return backup::durable_of(running.file());
          return running.stats().last_id;
        },
        []() -> Result<std::uint64_t> { return PoolEvents::closed(); });
  }
  Status over() override {
    return pool_->with(
        [](RunningEngine& running) {
          return (running.state() & not_open) == 0 ? Status() : PoolEvents::closed();
        },
        [] { return PoolEvents::closed(); });
  }
  Status make_durable(const std::vector<engine::follow::LogReader::Place>& places) override {
    if (!failed_.ok()) return failed_;
    return failed_ = pool_->with(
               [&](RunningEngine& running) {
                 return engine::follow::make_log_durable(running.file(), places);
               },
               [] { return PoolEvents::closed(); });
  }

 private:
  const std::shared_ptr<PoolEvents> pool_;
  const std::string path_;
  mutable pool::Header header_;  // the last one while the pool was open
  int fd_ = -1;
  Status failed_;
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
    store = backup::open_place(options.archive, false).value();
  else if (backup::Archive* const archive = running_->archive(); archive != nullptr)
    store = archive->store();
  return EventStream(std::make_unique<EventStream::Source>(
      std::make_unique<detail::OwnLog>(events_, file()), std::move(store), options));
}

Following PoolBase::follow(const EventOptions& options, Following::Call f) {
  return {events(options), std::move(f)};
}

void PoolBase::end_events() noexcept {
  if (events_ != nullptr) events_->end(running_->durable_now());
  events_ = nullptr;
}

}  // namespace perdure
