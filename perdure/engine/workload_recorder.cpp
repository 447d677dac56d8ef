// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/workload_recorder.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "perdure/base/at_fork.hpp"
#include "perdure/engine/workload_trace.hpp"
#include "perdure/pool/heap.hpp"

namespace perdure::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t chunk_words = 32 << 10;  // 256 KiB
constexpr auto longest_unwritten = std::chrono::milliseconds(100);

class RecordingTransaction final : public DynamicEngine::Transaction {
 public:
  RecordingTransaction(DynamicEngine::Transaction& inner, TraceWriter& writer)
      : inner_(inner), writer_(writer), view_(writer.file().view()) {}
  [[nodiscard]] DynamicEngine::Transaction& inner() noexcept { return inner_; }

  void begin(bool update) override {
    inner_.begin(update);
    update_ = update;
    recording_ = writer_.on();  // for the whole transaction: direct() is asked at its beginning
    direct_ = !recording_ && inner_.direct();
    tx_.clear();
    note(TraceKind::begin, std::uint64_t{0}, std::uint64_t{0});
  }
  bool inside() const noexcept override { return inner_.inside(); }
  bool in_view() const noexcept override { return inner_.in_view(); }
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
    // A trim clears the directory words of a span by such a free, which is not the program's.
    if (recording_ && writer_.file().heap().is_clearing(offset)) return inner_.free(p);
    if (recording_)
      if (const auto found = writer_.file().heap().block_bytes(offset); found.ok()) bytes = *found;
    inner_.free(p);
    note_at(TraceKind::free, p, bytes);
  }
  std::uint64_t commit(Durability durability) override {
    if (!recording_) return inner_.commit(durability);
    const std::uint64_t sequence = writer_.draw();
    const std::uint64_t id = inner_.commit(durability);
    keep(durability, sequence);
    return id;
  }
  void rollback() noexcept override {
    inner_.rollback();
    if (recording_) ThreadCounters::add(rollbacks_);
  }
  void backoff() noexcept override {
    retrying();
    inner_.backoff();
  }
  std::uint64_t unseen_retries() const noexcept override { return inner_.unseen_retries(); }
  void retrying() noexcept {
    if (recording_) ThreadCounters::add(retries_);
  }
  Refusal& refusal() noexcept override { return inner_.refusal(); }
  void keep_refusal() noexcept override { inner_.keep_refusal(); }
  void emit(std::string_view topic, std::string_view bytes, std::uint16_t schema) override {
    inner_.emit(topic, bytes, schema);
  }
  bool mine(const tm::Conflict& c) const noexcept override { return inner_.mine(c); }
  bool mine(const LogFull& full) const noexcept override { return inner_.mine(full); }
  bool try_direct_view() noexcept override {
    if (writer_.on() || !inner_.try_direct_view()) return false;
    direct_ = true;
    return true;
  }
  void leave_direct_view() noexcept override { inner_.leave_direct_view(); }
  std::uint64_t end_direct_view(bool bound) override { return inner_.end_direct_view(bound); }

  /// Writes the cached transactions. Any thread may call it while the owner runs transactions.
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
      overflow_ = tx_.size() * 8 > writer_.limit();
    } catch (const std::bad_alloc&) {
      writer_.stop(TraceEnd::failed);
      overflow_ = true;
    }
  }
  void keep(Durability durability, std::uint64_t sequence) noexcept {
    if (overflow_ || !writer_.take_room(tx_.size() * 8)) {
      overflow_ = false;
      writer_.stop(TraceEnd::limit);
      return;
    }
    tx_[0] = begin_word(update_, durability);
    tx_[1] = sequence;
    const std::lock_guard lock(mutex_);
    try {
      kept_.insert(kept_.end(), tx_.begin(), tx_.end());
    } catch (const std::bad_alloc&) {
      writer_.stop(TraceEnd::failed);
      return;
    }
    ++kept_transactions_;
    const bool early = std::has_single_bit(++transactions_);
    if (early || kept_.size() >= chunk_words || Clock::now() - written_ >= longest_unwritten)
      flush_locked();
  }
  void flush_locked() noexcept {
    // Relaxed without a partner: these are counts. The owner reads them at its commit; at exit()
    // another thread reads them, and may miss one.
    const std::uint64_t seen = retries_.load(std::memory_order_relaxed),
                        rollbacks = rollbacks_.load(std::memory_order_relaxed);
    const std::uint64_t unseen = inner_.unseen_retries();
    if (kept_transactions_ == 0 && rollbacks == told_rollbacks_ && unseen == told_unseen_) return;
    if (thread_ == no_thread) thread_ = writer_.number_thread();
    TraceChunk chunk{};
    chunk.thread = thread_;
    chunk.words = kept_.size();
    chunk.transactions = kept_transactions_;
    const std::uint64_t retries = seen - told_retries_;
    chunk.retried = retries + (unseen - told_unseen_);
    // Each retry that was seen is a rollback too.
    chunk.rolled_back = std::max(rollbacks - told_rollbacks_, retries) - retries;
    told_retries_ = seen;
    told_unseen_ = unseen;
    told_rollbacks_ = rollbacks;
    writer_.append(chunk, kept_.data());
    kept_.clear();
    kept_transactions_ = 0;
    written_ = Clock::now();
  }

  static constexpr std::uint32_t no_thread = ~0U;
  DynamicEngine::Transaction& inner_;
  TraceWriter& writer_;
  const std::byte* const view_;
  bool recording_ = false, update_ = false, overflow_ = false;
  std::vector<std::uint64_t> tx_;  // the transaction in progress
  std::atomic<std::uint64_t> rollbacks_{0}, retries_{0};
  std::mutex mutex_;  // guards the members below
  std::uint64_t told_rollbacks_ = 0, told_retries_ = 0, told_unseen_ = 0;
  std::vector<std::uint64_t> kept_;
  std::uint64_t kept_transactions_ = 0, transactions_ = 0;
  std::uint32_t thread_ = no_thread;
  Clock::time_point written_ = Clock::now();
};

class RecordedEngine;
/// The engines that exist, so that exit() writes what they have cached. It is never destroyed: a
/// pool may be a static object.
struct Live {
  std::mutex mutex;
  std::vector<RecordedEngine*> all;
};
Live& live() {
  static Live& one = *new Live;
  return one;
}
const int anew = base::anew_in_child<live>();  // only the parent ends its traces

class RecordedEngine final : public DynamicEngine::Implementation {
 public:
  RecordedEngine(std::unique_ptr<DynamicEngine::Implementation> inner,
                 std::unique_ptr<TraceWriter> writer)
      : writer_(std::move(writer)), inner_(std::move(inner)) {
    static constinit std::atomic_flag registered;
    if (!registered.test_and_set(std::memory_order_relaxed))  // no partner: one thread registers
      (void)std::atexit([] {
        const std::lock_guard lock(live().mutex);
        for (RecordedEngine* e : live().all) e->finish(TraceEnd::open);
      });
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

  DynamicEngine::Transaction& transaction() override {
    return transactions_.get([this](int) {
      return std::make_unique<RecordingTransaction>(inner_->transaction(), *writer_);
    });
  }
  void wait_for_log_space(DynamicEngine::Transaction& transaction, LogSpace needed) override {
    auto& recording = static_cast<RecordingTransaction&>(transaction);
    recording.retrying();
    inner_->wait_for_log_space(recording.inner(), needed);
  }
  Status wait(std::uint64_t id) override { return inner_->wait(id); }
  std::uint64_t durable_id() const noexcept override { return inner_->durable_id(); }
  bool strict() const noexcept override { return inner_->strict(); }
  Status checkpoint() override { return inner_->checkpoint(); }
  Status close() override {
    Status s = inner_->close();
    finish(s.ok() ? TraceEnd::closed : TraceEnd::open);
    return s;
  }
  Stats stats() override { return inner_->stats(); }
  EngineBase& core() noexcept override { return inner_->core(); }
  Snapshots* snapshots() noexcept override { return inner_->snapshots(); }
  FollowedLog* followed_log() noexcept override { return inner_->followed_log(); }

 private:
  void finish(TraceEnd why) noexcept {
    if (writer_->in_child()) return;  // a forked child's copy: the file is the parent's
    transactions_.for_each([](RecordingTransaction& c) { c.flush(); });
    writer_->finish(why);
  }
  std::unique_ptr<TraceWriter> writer_;
  std::unique_ptr<DynamicEngine::Implementation> inner_;
  Transactions<RecordingTransaction> transactions_;
};

}  // namespace

std::unique_ptr<DynamicEngine::Implementation> record_workload(
    std::unique_ptr<DynamicEngine::Implementation> behind, std::unique_ptr<TraceWriter> writer) {
  return std::make_unique<RecordedEngine>(std::move(behind), std::move(writer));
}

}  // namespace perdure::engine
