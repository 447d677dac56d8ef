// SPDX-License-Identifier: BSD-3-Clause
//
// EventStream, Following, and the streams that need no open pool. See events.hpp.
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "perdure/backup/event_source.hpp"
#include "perdure/backup/places.hpp"
#include "perdure/base/signals.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/engine/engine_info.hpp"
#include "perdure/engine/follow/can_follow.hpp"
#include "perdure/engine/follow/log_durable.hpp"
#include "perdure/pool/features.hpp"

namespace perdure {
namespace {

using pool::OpenPool;

bool keeps_events(const pool::Header& h) {
  return engine::follow::can_follow(engine::registered(), h);
}

// The log of a pool that another process may have open.
class OthersLog final : public backup::EventLog {
 public:
  explicit OthersLog(const std::string& path) {
    pool::OpenFile how;
    how.path = path;
    how.create = false;
    how.read_only = true;
    how.may_follow = keeps_events;
    pool::Identity who;
    who.engine_any = who.layout_any = true;
    file_ = OpenPool::open(how, who).value();
    if (!file_->following())
      throw error(failure(
          Code::unsupported, path,
          "events of a pool of engine '" + std::string(pool::engine_name(file_->header())) + "'",
          "one that keeps events: shadow"));
  }
  int fd() const override { return file_->fd(); }
  const std::string& path() const override { return file_->path(); }
  Result<pool::Header> header() const override {
    auto h = file_->newest_header();
    if (!h.ok()) return h;
    // Another program may have opened it meanwhile.
    if (Status s = pool::check_features(path(), *h, false); !s.ok()) return s;
    if (std::memcmp(h->uuid, file_->header().uuid, sizeof h->uuid) != 0 || !keeps_events(*h))
      return failure(Code::expired, path(), "a file that has become another pool",
                     "the pool that was opened", "open its events again");
    return h;
  }
  Result<std::uint64_t> durable() override {
    if (process_ != ::getpid())
      return failure(Code::closed, path(), "events that were carried through fork()",
                     "those opened in this process");
    if (!file_->is_at_path())
      return failure(Code::expired, path(), "a file that another one has replaced",
                     "the file that was opened", "open its events again");
    return backup::durable_of(*file_);
  }
  Result<std::uint64_t> newest() override {
    auto id = durable();
    const auto writer = file_->writer();
    if (!id.ok() || !writer.ok()) return id;
    // While it is opened, only recovery knows.
    return *writer == OpenPool::Writer::silent ? Result<std::uint64_t>(unknown) : id;
  }
  Status make_durable(const std::vector<engine::follow::LogReader::Place>& places) override {
    if (!failed_.ok()) return failed_;
    return failed_ = engine::follow::make_log_durable(*file_, places);
  }

 private:
  const pid_t process_ = ::getpid();
  std::unique_ptr<OpenPool> file_;
  Status failed_;
};

std::shared_ptr<backup::Store> archive_of(const EventOptions& options) {
  return options.archive.empty() ? nullptr : backup::open_place(options.archive, false).value();
}

}  // namespace

EventStream::EventStream(std::unique_ptr<Source> source) noexcept : source_(std::move(source)) {}
EventStream::EventStream(EventStream&&) noexcept = default;
EventStream& EventStream::operator=(EventStream&&) noexcept = default;
EventStream::~EventStream() = default;
bool EventStream::next(Event& event, std::chrono::milliseconds timeout) {
  return source_->next(event, timeout);
}
EventPosition EventStream::position() const noexcept { return source_->position(); }
void EventStream::acknowledge() { source_->acknowledge(); }

EventStream open_events(const std::string& path, const EventOptions& options) {
  base::ensure_thread_slot().or_throw();
  return EventStream(std::make_unique<EventStream::Source>(std::make_unique<OthersLog>(path),
                                                           archive_of(options), options));
}

EventStream open_archived_events(const EventOptions& options) {
  if (options.archive.empty())
    throw error(failure(Code::invalid, "", "open_archived_events() without an archive",
                        "EventOptions::archive", "name the folder"));
  return EventStream(std::make_unique<EventStream::Source>(nullptr, archive_of(options), options));
}

struct Following::Impl {
  EventStream stream;
  Call f;
  std::atomic<bool> stop{false};
  mutable std::mutex mutex;
  Status status;
  const pid_t process = ::getpid();
  std::thread thread;  // last: it uses the others

  Impl(EventStream s, Call call) : stream(std::move(s)), f(std::move(call)) {
    try {
      const base::BlockedSignals blocked;
      thread = std::thread([this] { run(); });
    } catch (const std::system_error& e) {
      throw error(failure(Code::too_many_threads, "",
                          std::string("no thread can be started: ") + e.what(), "one more"));
    }
  }
  ~Impl() {
    stop.store(true, std::memory_order_relaxed);
    if (thread.joinable()) thread.join();
  }
  // Whether the stream has a name; then it has kept its position.
  bool acknowledged() {
    try {
      stream.acknowledge();
      return true;
    } catch (const error& e) {
      if (e.code() != Code::invalid) throw;
      return false;
    }
  }
  void run() noexcept {
    Status ended;
    try {
      // This is the program's code, too: it may take a slot, as any thread does.
      std::optional<bool> named;
      for (Event event; !stop.load(std::memory_order_relaxed);) {
        if (!stream.next(event, std::chrono::milliseconds(20))) continue;
        if (!f(event)) break;
        if (!named)
          named = acknowledged();
        else if (*named)
          stream.acknowledge();
      }
    } catch (const error& e) {
      ended = e.status();
    } catch (const std::bad_alloc&) {
      ended = Status::without_memory(Code::out_of_memory);
    } catch (const std::exception& e) {
      ended = failure(Code::invalid, "", std::string("the call for an event threw: ") + e.what());
    } catch (...) {
      ended = failure(Code::invalid, "", "the call for an event threw something");
    }
    const std::lock_guard lock(mutex);
    status = std::move(ended);
  }
};

Following::Following(EventStream stream, Call f)
    : impl_(std::make_unique<Impl>(std::move(stream), std::move(f))) {}
Following::Following(Following&&) noexcept = default;
Following& Following::operator=(Following&&) noexcept = default;
Following::~Following() {
  // A forked child has no such thread.
  if (impl_ != nullptr && impl_->process != ::getpid()) (void)impl_.release();
}
Status Following::status() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->status;
}

}  // namespace perdure
