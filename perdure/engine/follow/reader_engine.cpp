// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/follow/reader_engine.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <utility>

#include "perdure/engine/follow/follower.hpp"
#include "perdure/pool/heap.hpp"

namespace perdure::engine::follow {
namespace {

// Thrown by a read whose state is gone. The view begins again, over a newer one.
struct Overtaken {
  const void* whose;
};

// How often a view begins again before it gives up.
constexpr int most_tries = 10;

std::uint64_t load(const std::uint64_t* a) noexcept {
  return __atomic_load_n(a, __ATOMIC_RELAXED);  // right() orders it
}

class Reader;

class ReaderTransaction final : public DynamicEngine::Transaction {
 public:
  explicit ReaderTransaction(Reader& engine) noexcept : engine_(engine) {}

  void begin(bool update) override;
  bool inside() const noexcept override { return inside_; }
  bool in_view() const noexcept override { return true; }
  std::uint64_t read(const std::uint64_t* a) override;
  void read_words(std::uint64_t* to, const std::uint64_t* a, std::uint64_t n) override;
  void write(std::uint64_t*, std::uint64_t) override { refuse(); }
  void write_words(std::uint64_t*, const std::uint64_t*, std::uint64_t) override { refuse(); }
  std::byte* alloc(std::uint64_t) override { refuse(); }
  void free(void*) override { refuse(); }
  void keep_refusal() noexcept override { refusal_.keep(); }
  void emit(std::string_view, std::string_view, std::uint16_t) override { refuse(); }
  std::uint64_t commit(Durability) override;
  void rollback() noexcept override;
  void backoff() noexcept override {}
  std::uint64_t unseen_retries() const noexcept override { return 0; }
  Refusal& refusal() noexcept override { return refusal_; }
  bool mine(const tm::Conflict&) const noexcept override { return false; }
  bool mine(const LogFull&) const noexcept override { return false; }
  bool try_direct_view() noexcept override { return false; }
  void leave_direct_view() noexcept override {}
  std::uint64_t end_direct_view(bool) override { return 0; }

 private:
  [[noreturn]] void refuse() const;
  [[noreturn]] void overtaken();
  Reader& engine_;
  bool inside_ = false, overtaken_ = false;
  Refusal refusal_;
};

// A state that is held: views of the pool stay at it meanwhile. It may outlive the pool: `file_` is
// used between enter() and leave() only, for which the pool's end waits.
class HeldState final : public OpenSnapshot {
 public:
  HeldState(std::shared_ptr<Follower> follower, pool::OpenPool& file)
      : follower_(std::move(follower)), file_(file), generation_(follower_->hold(id_)) {}
  ~HeldState() override {
    if (own()) follower_->release(generation_);
  }

  std::uint64_t id() const noexcept override { return id_; }
  bool expired() const noexcept override { return !own() || !follower_->holds(generation_); }
  void enter() override {
    if (!own()) throw error(closed());
    if (follower_->enter_held(generation_)) return;
    throw error(follower_->ended() ? closed() : gone());
  }
  void leave() noexcept override { follower_->leave(); }
  std::uint64_t read(const std::uint64_t* a) override {
    const std::uint64_t word = load(a);
    if (__builtin_expect(!follower_->right(), 0)) throw error(gone());
    return word;
  }
  void read_words(std::uint64_t* to, const std::uint64_t* a, std::uint64_t n) override {
    for (std::uint64_t i = 0; i < n; ++i) to[i] = load(a + i);
    if (__builtin_expect(!follower_->right(), 0)) throw error(gone());
  }
  pool::HeapAudit audit(const std::function<void(const pool::HeapOp&)>& each_block) override {
    std::uint64_t blocks = 0, bytes = 0;
    pool::HeapAudit audit =
        pool::audit_heap_ops(file_.view(), file_.header(), [&](const pool::HeapOp& op) {
          ++blocks;
          bytes += pool::op_bytes(op);
          each_block(op);
        });
    audit.blocks = blocks;
    audit.bytes = bytes;
    must_be_sound();
    return audit;
  }
  pool::OpenPool& file() noexcept override { return file_; }
  void must_be_sound() const override {
    if (!follower_->right()) throw error(gone());
  }

 private:
  // In a forked child another thread of the parent's may have held the follower's locks.
  [[nodiscard]] bool own() const noexcept { return process_ == ::getpid(); }
  [[nodiscard]] static Status closed() {
    return failure(Code::closed, "", "a snapshot of a pool that was closed");
  }
  [[nodiscard]] static Status gone() {
    return failure(Code::expired, "", "a state that the pool's writer has overtaken", {},
                   "open a new snapshot; give the writer a larger "
                   "ReaderOptions::writer_patience if this happens often");
  }
  const pid_t process_ = ::getpid();
  const std::shared_ptr<Follower> follower_;
  pool::OpenPool& file_;
  std::uint64_t id_ = 0;
  const std::uint64_t generation_;
};

class Reader final : public DynamicEngine::Implementation, public Snapshots {
 public:
  Reader(pool::OpenPool& file, const Config& config, const Recovery& recovery)
      : core_(file, config, recovery), follower_(config.follower) {}
  ~Reader() override { stop(); }

  std::uint64_t run(bool update, Durability durability, Body body, void* arg) override {
    ReaderTransaction& own = this->own();
    if (own.inside()) {
      if (update) core_.refuse();
      body(own, arg);
      return joined;
    }
    for (int tries = 1;; ++tries) {
      own.begin(update);
      try {
        body(own, arg);
        if (__builtin_expect(own.refusal().kept(), 0)) own.refusal().again();
        return own.commit(durability);
      } catch (const Overtaken& overtaken) {
        own.rollback();
        if (overtaken.whose != this) throw;
        if (tries == most_tries)
          throw error(failure(
              Code::expired, core_.file.path(),
              "a view that the pool's writer has overtaken " + std::to_string(tries) + " times", {},
              "read less in one view, or raise ReaderOptions::writer_patience of the writer"));
      } catch (...) {
        own.rollback();
        throw;
      }
    }
  }

  DynamicEngine::Transaction& transaction() override { return own(); }
  void wait_for_log_space(DynamicEngine::Transaction&, LogSpace) override {}
  Status wait(std::uint64_t id) override {
    if ((core_.state() & ~EngineBase::read_only_bit) != 0) return core_.why();
    if (id <= follower_->id()) return {};
    return failure(Code::read_only, core_.file.path(),
                   "transaction " + std::to_string(id) + " to be waited for", "one that is shown",
                   "call wait_for_id()");
  }
  std::uint64_t durable_id() const noexcept override { return follower_->id(); }
  bool strict() const noexcept override { return false; }
  Status checkpoint() override {
    return failure(Code::read_only, core_.file.path(), "checkpoint() of a pool that is read only",
                   {}, "let the program call it that writes the pool");
  }
  Status close() override {
    core_.closed();
    stop();
    return {};
  }
  Stats stats() override {
    Stats s;
    core_.fill(s);
    s.last_id = s.durable_id = s.checkpoint_id = follower_->id();
    const FollowerStats f = follower_->stats();
    s.attached = f.attached, s.overtaken = f.overtaken;
    s.followed_records = f.records, s.private_bytes = f.private_bytes;
    s.snapshots = follower_->anything_held() ? 1 : 0;
    return s;
  }
  EngineBase& core() noexcept override { return core_; }
  Snapshots* snapshots() noexcept override { return this; }
  FollowedLog* followed_log() noexcept override { return nullptr; }
  Follower* follower() noexcept override { return follower_.get(); }

  // Snapshots
  Result<std::shared_ptr<OpenSnapshot>> open() override {
    if ((core_.state() & ~EngineBase::read_only_bit) != 0) return core_.why();
    try {
      return std::shared_ptr<OpenSnapshot>(std::make_shared<HeldState>(follower_, core_.file));
    } catch (const error& e) {
      return e.status();
    }
  }
  bool any() const noexcept override { return follower_->anything_held(); }
  void end() noexcept override { follower_->end(); }

 private:
  friend class ReaderTransaction;
  [[gnu::always_inline]] ReaderTransaction& own() {
    return transactions_.get([this](int) { return std::make_unique<ReaderTransaction>(*this); });
  }
  void stop() noexcept {
    if (!core_.forked()) follower_->stop();
  }

  EngineBase core_;
  const std::shared_ptr<Follower> follower_;
  Transactions<ReaderTransaction> transactions_;
};

void ReaderTransaction::begin(bool update) {
  if (update || (engine_.core_.state() & ~EngineBase::read_only_bit) != 0) engine_.core_.refuse();
  engine_.follower_->enter();
  inside_ = true;
  overtaken_ = false;
}

std::uint64_t ReaderTransaction::read(const std::uint64_t* a) {
  const std::uint64_t word = load(a);
  if (__builtin_expect(!engine_.follower_->right(), 0)) overtaken();
  return word;
}

void ReaderTransaction::read_words(std::uint64_t* to, const std::uint64_t* a, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) to[i] = load(a + i);
  if (__builtin_expect(!engine_.follower_->right(), 0)) overtaken();
}

void ReaderTransaction::overtaken() {
  overtaken_ = true;
  throw Overtaken{&engine_};
}

std::uint64_t ReaderTransaction::commit(Durability) {
  if (overtaken_) overtaken();  // the lambda has caught it
  const std::uint64_t id = engine_.follower_->id();
  rollback();
  ThreadCounters::add(engine_.core_.rows[static_cast<std::size_t>(base::thread_slot())].reads);
  return id;
}

void ReaderTransaction::rollback() noexcept {
  if (!inside_) return;
  inside_ = false;
  refusal_.forget();
  if (!engine_.core_.forked()) engine_.follower_->leave();
}

void ReaderTransaction::refuse() const { engine_.core_.refuse(); }

}  // namespace

std::unique_ptr<DynamicEngine::Implementation> make_reader(pool::OpenPool& file,
                                                           const Config& config,
                                                           const Recovery& recovery) {
  return std::make_unique<Reader>(file, config, recovery);
}

}  // namespace perdure::engine::follow
