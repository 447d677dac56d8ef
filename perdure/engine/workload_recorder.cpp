// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/workload_recorder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "perdure/base/checksum.hpp"
#include "perdure/engine/workload_trace.hpp"
#include "perdure/pool/heap.hpp"

namespace perdure::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t default_limit = 64 << 20;
constexpr std::size_t chunk_words = 32 << 10;  // 256 KiB
constexpr auto longest_unwritten = std::chrono::milliseconds(100);

std::uint64_t limit_from_environment() {
  const char* const text = std::getenv("PERDURE_TRACE_MAX");
  if (text == nullptr || *text == 0) return default_limit;
  std::uint64_t bytes = 0;
  const char* const end = text + std::strlen(text);
  if (const auto read = std::from_chars(text, end, bytes); read.ec != std::errc() || read.ptr != end || bytes == 0)
    throw error(failure(Code::invalid, "", std::string("PERDURE_TRACE_MAX '") + text + "'", "a number of bytes", "unset it for 64 MiB"));
  return bytes;
}

// The n-th pool that this process records to a path: n.
unsigned take_number(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, unsigned> taken;
  const std::lock_guard lock(mutex);
  return ++taken[path];
}

bool write_whole(int fd, const void* data, std::size_t n, off_t at) noexcept {
  const auto* from = static_cast<const char*>(data);
  while (n > 0) {
    const ssize_t wrote = ::pwrite(fd, from, n, at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    from += wrote;
    at += wrote;
    n -= static_cast<std::size_t>(wrote);
  }
  return true;
}

}  // namespace

/// The file and what all threads share.
class WorkloadRecorder {
 public:
  WorkloadRecorder(const std::string& path, pool::PoolFile& file, const Config& config) : file_(file) {
    const std::uint64_t limit = limit_from_environment();
    const unsigned n = take_number(path);
    const std::string name = n == 1 ? path : path + "." + std::to_string(n);
    fd_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);  // O_TRUNC only once it is ours
    if (fd_ < 0) throw error(system_failure(name, "open", errno, "PERDURE_TRACE and Options::trace name a file that can be written"));
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      ::close(fd_);
      throw error(failure(Code::busy, name, "a trace that another process is recording", "a file of this process's own",
                          "put %p in PERDURE_TRACE: the process's number"));
    }
    std::memcpy(header_.magic, trace_magic, sizeof header_.magic);
    header_.version = trace_version;
    config.instance.copy(header_.engine, sizeof header_.engine - 1);
    file.medium().kind().copy(header_.medium, sizeof header_.medium - 1);
    header_.durability = static_cast<std::uint32_t>(config.durability);
    header_.max_home_bytes = file.header().max_home_bytes;
    header_.home_bytes = file.home_bytes();
    header_.first_data = pool::first_chunk(header_.max_home_bytes) * pool::chunk_bytes;
    header_.root_offset = file.header().root_offset;
    header_.root_bytes = file.header().root_bytes;
    header_.limit_bytes = limit;
    if (::ftruncate(fd_, 0) != 0 || !write_header()) {
      const int err = errno;
      ::close(fd_);
      throw error(system_failure(name, "write", err, "PERDURE_TRACE and Options::trace name a file that can be written"));
    }
  }
  ~WorkloadRecorder() { ::close(fd_); }
  WorkloadRecorder(const WorkloadRecorder&) = delete;
  WorkloadRecorder& operator=(const WorkloadRecorder&) = delete;

  [[nodiscard]] bool on() const noexcept { return on_.load(std::memory_order_relaxed); }  // no partner: a flag
  [[nodiscard]] pool::PoolFile& file() noexcept { return file_; }
  /// Room for so many more bytes of ops; else the recording is over.
  [[nodiscard]] bool take_room(std::uint64_t bytes) noexcept {
    if (room_used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= header_.limit_bytes) return true;
    stop(TraceEnd::limit);
    return false;
  }
  [[nodiscard]] std::uint64_t limit() const noexcept { return header_.limit_bytes; }
  /// Causal order: a transaction draws it before its commit can be seen, so whoever has seen it draws a higher one.
  [[nodiscard]] std::uint64_t draw() noexcept { return sequence_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t number_thread() noexcept { return threads_.fetch_add(1, std::memory_order_relaxed); }

  void stop(TraceEnd why) noexcept {
    const std::lock_guard lock(mutex_);
    if (on_.exchange(false, std::memory_order_relaxed)) {
      header_.end = why;
      (void)write_header();
    }
  }
  void append(TraceChunk& chunk, const std::uint64_t* words) noexcept {
    if (in_child()) return;
    chunk.magic = chunk_magic;
    chunk.home_bytes = file_.home_bytes();
    chunk.elapsed_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - begun_).count());
    chunk.checksum = base::hash_bytes(words, chunk.words * 8, base::hash_bytes(&chunk, offsetof(TraceChunk, checksum), 0));
    bool wrote = false;
    {
      const std::lock_guard lock(mutex_);
      if (failed_) return;
      // The chunk's head comes last: a head is there with its words or not at all, also where write is cut in two by a kill.
      wrote =
          write_whole(fd_, words, chunk.words * 8, end_ + static_cast<off_t>(sizeof chunk)) && write_whole(fd_, &chunk, sizeof chunk, end_);
      if (wrote)
        end_ += static_cast<off_t>(sizeof chunk + chunk.words * 8);
      else
        failed_ = true, (void)!::ftruncate(fd_, end_);  // what is there stays readable
    }
    if (!wrote) stop(TraceEnd::failed);
  }
  void finish(TraceEnd why) noexcept {
    if (in_child()) return;
    const std::lock_guard lock(mutex_);
    if (on_.exchange(false, std::memory_order_relaxed)) header_.end = why;
    header_.threads = threads_.load(std::memory_order_relaxed);
    header_.home_bytes = file_.home_bytes();
    (void)write_header();
  }
  [[nodiscard]] bool in_child() const noexcept { return generation_ != base::fork_generation(); }

 private:
  bool write_header() noexcept {
    header_.checksum = base::hash_bytes(&header_, offsetof(TraceHeader, checksum), 0);
    return write_whole(fd_, &header_, sizeof header_, 0);
  }
  pool::PoolFile& file_;
  int fd_ = -1;
  const std::uint32_t generation_ = base::fork_generation();
  const Clock::time_point begun_ = Clock::now();
  std::atomic<bool> on_{true};
  std::atomic<std::uint64_t> room_used_{0}, sequence_{0};
  std::atomic<std::uint32_t> threads_{0};
  std::mutex mutex_;  // the file and what follows
  TraceHeader header_{};
  off_t end_ = sizeof(TraceHeader);
  bool failed_ = false;
};

namespace {

class RecordingContext final : public Any::Context {
 public:
  RecordingContext(Any::Context& inner, WorkloadRecorder& recorder) : inner_(inner), recorder_(recorder), view_(recorder.file().view()) {}
  [[nodiscard]] Any::Context& inner() noexcept { return inner_; }

  void begin(bool update) override {
    inner_.begin(update);
    update_ = update;
    recording_ = recorder_.on();  // for all of the transaction: direct() is asked at its beginning
    tx_.clear();
    note(TraceKind::begin, std::uint64_t{0}, std::uint64_t{0});
  }
  bool inside() const noexcept override { return inner_.inside(); }
  bool in_view() const noexcept override { return inner_.in_view(); }
  bool direct() const noexcept override { return !recording_ && inner_.direct(); }
  std::uint64_t read(const std::uint64_t* a) override {
    const std::uint64_t value = inner_.read(a);
    note_at(TraceKind::read, a);
    return value;
  }
  void write(std::uint64_t* a, std::uint64_t v) override {
    inner_.write(a, v);
    note_at(TraceKind::write, a);
  }
  void read_words(std::uint64_t* to, const std::uint64_t* a, std::uint64_t n) override {
    inner_.read_words(to, a, n);
    note_at(TraceKind::read_words, a, n);
  }
  void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) override {
    inner_.write_words(a, src, n);
    note_at(TraceKind::write_words, a, n);
  }
  std::byte* alloc(std::uint64_t bytes) override {
    std::byte* const block = inner_.alloc(bytes);
    note_at(TraceKind::alloc, block, bytes);
    return block;
  }
  void free(void* p) override {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - view_);
    std::uint64_t bytes = 0;
    if (recording_)
      if (const auto found = recorder_.file().heap().block_bytes(offset); found.ok()) bytes = *found;
    inner_.free(p);
    note_at(TraceKind::free, p, bytes);
  }
  std::uint64_t commit(Durability durability) override {
    if (!recording_) return inner_.commit(durability);
    const std::uint64_t sequence = recorder_.draw();
    const std::uint64_t id = inner_.commit(durability);
    keep(durability, sequence);
    return id;
  }
  void rollback() noexcept override {
    inner_.rollback();
    if (recording_) ++rollbacks_;
  }
  void backoff() noexcept override {
    retrying();
    inner_.backoff();
  }
  void retrying() noexcept {
    if (recording_) ++retries_;
  }
  bool mine(const tm::Conflict& c) const noexcept override { return inner_.mine(c); }
  bool mine(const NeedRoom& n) const noexcept override { return inner_.mine(n); }
  bool try_direct_view() noexcept override { return !recorder_.on() && inner_.try_direct_view(); }
  void leave_direct_view() noexcept override { inner_.leave_direct_view(); }
  std::uint64_t end_direct_view(bool bound) override { return inner_.end_direct_view(bound); }

  /// Writes what was kept. Any thread, beside the owner's transactions.
  void flush() noexcept {
    const std::lock_guard lock(mutex_);
    flush_locked();
  }

 private:
  void note_at(TraceKind kind, const void* at, std::uint64_t second = 0) {
    note(kind, static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - view_), second);
  }
  void note(TraceKind kind, std::uint64_t low, std::uint64_t second) {
    if (!recording_ || overflow_) return;
    try {
      tx_.push_back(trace_word(kind, low));
      if (has_second(kind)) tx_.push_back(second);
      overflow_ = tx_.size() * 8 > recorder_.limit();
    } catch (const std::bad_alloc&) {
      recorder_.stop(TraceEnd::failed);
      overflow_ = true;
    }
  }
  void keep(Durability durability, std::uint64_t sequence) noexcept {
    if (overflow_ || !recorder_.take_room(tx_.size() * 8)) {
      overflow_ = false;
      recorder_.stop(TraceEnd::limit);
      return;
    }
    tx_[0] = begin_word(update_, durability);
    tx_[1] = sequence;
    const std::lock_guard lock(mutex_);
    try {
      kept_.insert(kept_.end(), tx_.begin(), tx_.end());
    } catch (const std::bad_alloc&) {
      recorder_.stop(TraceEnd::failed);
      return;
    }
    ++kept_transactions_;
    const bool early = std::has_single_bit(++transactions_);
    if (early || kept_.size() >= chunk_words || Clock::now() - written_ >= longest_unwritten) flush_locked();
  }
  void flush_locked() noexcept {
    if (kept_transactions_ == 0 && rollbacks_ == told_rollbacks_) return;
    if (thread_ == no_thread) thread_ = recorder_.number_thread();
    TraceChunk chunk{};
    chunk.thread = thread_;
    chunk.words = kept_.size();
    chunk.transactions = kept_transactions_;
    // by the owner between transactions, or when no transaction runs: what is torn at exit() is a count
    chunk.retried = retries_ - told_retries_;
    chunk.rolled_back = rollbacks_ - told_rollbacks_ - chunk.retried;
    told_retries_ = retries_;
    told_rollbacks_ = rollbacks_;
    recorder_.append(chunk, kept_.data());
    kept_.clear();
    kept_transactions_ = 0;
    written_ = Clock::now();
  }

  static constexpr std::uint32_t no_thread = ~0U;
  Any::Context& inner_;
  WorkloadRecorder& recorder_;
  const std::byte* const view_;
  bool recording_ = false, update_ = false, overflow_ = false;
  std::vector<std::uint64_t> tx_;  // the transaction in progress
  std::uint64_t rollbacks_ = 0, retries_ = 0, told_rollbacks_ = 0, told_retries_ = 0;
  std::mutex mutex_;  // what follows
  std::vector<std::uint64_t> kept_;
  std::uint64_t kept_transactions_ = 0, transactions_ = 0;
  std::uint32_t thread_ = no_thread;
  Clock::time_point written_ = Clock::now();
};

class RecordedEngine;
/// Those that live, so that exit() writes what they have. Never destroyed: a pool may be a static object.
struct Live {
  std::mutex mutex;
  std::vector<RecordedEngine*> all;
};
Live& live() {
  static Live& one = *new Live;
  return one;
}

class RecordedEngine final : public Any::Behind {
 public:
  RecordedEngine(std::unique_ptr<Any::Behind> inner, std::shared_ptr<WorkloadRecorder> recorder)
      : recorder_(std::move(recorder)), inner_(std::move(inner)) {
    static const bool registered = std::atexit([] {
                                     const std::lock_guard lock(live().mutex);
                                     for (RecordedEngine* e : live().all) e->finish(TraceEnd::open);
                                   }) == 0;
    (void)registered;
    const std::lock_guard lock(live().mutex);
    live().all.push_back(this);
  }
  ~RecordedEngine() override {
    {
      const std::lock_guard lock(live().mutex);
      std::erase(live().all, this);
    }
    finish(TraceEnd::open);
  }

  Any::Context& context() override {
    return contexts_.get([this](int) { return std::make_unique<RecordingContext>(inner_->context(), *recorder_); });
  }
  void make_room(Any::Context& context, std::uint64_t bytes) override {
    auto& recording = static_cast<RecordingContext&>(context);
    recording.retrying();
    inner_->make_room(recording.inner(), bytes);
  }
  Status wait(std::uint64_t id) override { return inner_->wait(id); }
  std::uint64_t durable_id() const noexcept override { return inner_->durable_id(); }
  bool held() const noexcept override { return inner_->held(); }
  Status checkpoint() override { return inner_->checkpoint(); }
  Status close() override {
    Status s = inner_->close();
    finish(s.ok() ? TraceEnd::closed : TraceEnd::open);
    return s;
  }
  Stats stats() override { return inner_->stats(); }
  Core& core() noexcept override { return inner_->core(); }

 private:
  void finish(TraceEnd why) noexcept {
    if (recorder_->in_child()) return;  // a forked child's copy: the file is the parent's
    contexts_.for_each([](RecordingContext& c) { c.flush(); });
    recorder_->finish(why);
  }
  std::shared_ptr<WorkloadRecorder> recorder_;
  std::unique_ptr<Any::Behind> inner_;
  Contexts<RecordingContext> contexts_;
};

}  // namespace

std::string workload_trace_path(const Config& config) {
  std::string path = config.trace;
  if (path.empty())
    if (const char* const text = std::getenv("PERDURE_TRACE"); text != nullptr) path = text;
  for (std::size_t at = 0; (at = path.find("%p", at)) != std::string::npos;) path.replace(at, 2, std::to_string(::getpid()));
  return path;
}

std::shared_ptr<WorkloadRecorder> make_workload_recorder(const std::string& path, pool::PoolFile& file, const Config& config) {
  return std::make_shared<WorkloadRecorder>(path, file, config);
}

std::unique_ptr<Any::Behind> record_workload(std::unique_ptr<Any::Behind> behind, std::shared_ptr<WorkloadRecorder> recorder) {
  return std::make_unique<RecordedEngine>(std::move(behind), std::move(recorder));
}

}  // namespace perdure::engine
