// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/shadow/open_snapshots.hpp"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace perdure::engine::shadow {

class OpenSnapshots::One final : public OpenSnapshot {
 public:
  explicit One(std::shared_ptr<OpenSnapshots> all) : all_(std::move(all)) {}
  ~One() override { all_->close(*this); }

  std::uint64_t id() const noexcept override { return id_; }
  bool expired() const noexcept override { return expired_.load(std::memory_order_acquire); }
  void enter() override {
    if (!all_->enter()) throw error(closed());
    try {
      const std::uint32_t state = all_->core_.state() & ~EngineBase::read_only_bit;
      if (state != 0) all_->core_.why().or_throw();
      if (expired()) throw error(why_expired());
    } catch (...) {
      all_->leave();
      throw;
    }
  }
  void leave() noexcept override { all_->leave(); }
  void must_be_sound() const override {
    if (all_->core_.poisoned()) all_->core_.refuse();
  }
  std::uint64_t read(const std::uint64_t* a) override {
    std::uint64_t word = 0;
    read_line(&word, a, 1);
    return word;
  }
  void read_words(std::uint64_t* to, const std::uint64_t* a, std::uint64_t n) override {
    while (n > 0) {
      const std::uint64_t left =
          Versions::line_words - reinterpret_cast<std::uintptr_t>(a) / 8 % Versions::line_words;
      const std::uint64_t now = std::min(n, left);
      read_line(to, a, now);
      to += now, a += now, n -= now;
    }
  }
  pool::HeapAudit audit(const std::function<void(const pool::HeapOp&)>& each_block) override;
  pool::OpenPool& file() noexcept override { return all_->core_.file; }
  [[nodiscard]] Status why_expired() const {
    if (all_->ended_.load(std::memory_order_acquire)) return closed();
    return failure(Code::expired, "", "a snapshot whose memory was needed", {},
                   "open a new one, or raise ShadowOptions::snapshot_memory");
  }

  std::uint64_t id_ = 0;  // constant when the snapshot is open; under the list's lock before
  std::atomic<bool> expired_{false};

 private:
  [[nodiscard]] static Status closed() {
    return failure(Code::closed, "", "a snapshot of a pool that was closed");
  }
  void read_line(std::uint64_t* to, const std::uint64_t* a, std::uint64_t n) {
    const Versions& versions = *all_->versions_;
    const auto offset =
        static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(a) -
                                   reinterpret_cast<const std::byte*>(versions.words(0)));
    if (__builtin_expect(offset >= versions.data_bytes(), 0)) {
      std::copy_n(a, n, to);  // memory that is not the pool's
      return;
    }
    versions.read(id_, offset, to, n, expired_);
    // mutant: snapshot-expired-after
    if (__builtin_expect(expired(), 0)) throw error(why_expired());  // SNAP-6
  }
  const std::shared_ptr<OpenSnapshots> all_;
};

// SNAP-7
pool::HeapAudit OpenSnapshots::One::audit(
    const std::function<void(const pool::HeapOp&)>& each_block) {
  std::unordered_map<std::uint64_t, pool::HeapOp> blocks;  // by offset
  const Versions& versions = *all_->versions_;
  pool::HeapAudit audit = pool::audit_heap_beside(
      file(), [&](std::uint64_t offset) { return versions.bits(id_, offset, expired_); },
      [&](const pool::HeapOp& block) { blocks.emplace(block.offset, block); });
  point();
  // pairs with the draw of an id
  const std::uint64_t last = all_->domain_.clock.load(std::memory_order_acquire);
  point();
  struct First {
    std::uint64_t stamp, number;
    pool::HeapOp op;
  };
  std::unordered_map<std::uint64_t, First> first;  // since the snapshot, by offset
  versions.each_op(
      id_, last, [&](std::uint64_t stamp, std::uint64_t number, const pool::HeapOp& op) {
        const auto [at, is_new] = first.try_emplace(op.offset, First{stamp, number, op});
        First& known = at->second;
        // mutant: snapshot-first-heap-op
        const bool earlier = std::tie(stamp, number) < std::tie(known.stamp, known.number);
        if (!is_new && earlier) known = {stamp, number, op};
      });
  if (expired()) throw error(why_expired());  // SNAP-6
  for (auto& [offset, since] : first) {
    blocks.erase(offset);
    if (since.op.set) continue;
    since.op.set = true;  // what the state had there, of the size that was freed
    blocks.emplace(offset, since.op);
  }
  audit.blocks = blocks.size();
  audit.bytes = 0;
  for (const auto& [offset, block] : blocks) {
    audit.bytes += pool::op_bytes(block);
    each_block(block);
  }
  return audit;
}

OpenSnapshots::OpenSnapshots(EngineBase& core, tm::Domain& domain, std::uint64_t memory,
                             Waits waits)
    : core_(core),
      domain_(domain),
      memory_(memory),
      waits_(std::move(waits)),
      process_(::getpid()) {}

OpenSnapshots::~OpenSnapshots() = default;

Result<std::shared_ptr<OpenSnapshot>> OpenSnapshots::open() {
  if ((core_.state() & ~EngineBase::read_only_bit) != 0) return core_.why();
  const auto one = std::make_shared<One>(shared_from_this());
  const std::lock_guard opening(opening_);
  if (versions_ == nullptr) {  // it becomes null under opening_, too
    auto made = std::make_unique<Versions>(
        core_.file.view(), pool::Directory(core_.file.header()).max_data_bytes(), memory_);
    const std::lock_guard lock(mutex_);
    versions_ = std::move(made);
    ++generation_;
  }
  // pairs with the draw of an id
  const auto clock = [this] { return domain_.clock.load(std::memory_order_acquire); };
  {
    const std::lock_guard lock(mutex_);
    all_.push_back(one.get());
    one->id_ = clock();  // a lower bound of S
    being_opened_ = one.get();
    set_mode();
  }
  // SNAP-5
  // mutant: snapshot-cut-waits
  waits_.for_updates();
  point();
  const std::uint64_t id = clock();
  point();
  {
    const std::lock_guard lock(mutex_);
    one->id_ = id;
    being_opened_ = nullptr;
    set_mode();
  }
  // mutant: snapshot-cut-waits-again
  waits_.for_updates();
  point();
  if (core_.poisoned()) return core_.why();  // what is in the state may be lost
  if (one->expired()) return one->why_expired();
  return std::shared_ptr<OpenSnapshot>(one);
}

bool OpenSnapshots::any() const noexcept {
  const std::lock_guard lock(mutex_);
  return oldest() != nullptr;
}

void OpenSnapshots::end() noexcept {
  {
    const std::lock_guard opening(opening_);
    const std::lock_guard lock(mutex_);
    for (One* const one : all_) one->expired_.store(true, std::memory_order_release);
    // Dekker's pattern with enter(): one of the two sees the other's store.
    ended_.store(true, std::memory_order_seq_cst);
    set_mode();
  }
  for (;;) {
    const std::uint32_t n = readers_.load(std::memory_order_seq_cst);  // pairs with leave(), too
    if (n == 0) return;
    readers_.wait(n, std::memory_order_acquire);
  }
}

bool OpenSnapshots::enter() noexcept {
  readers_.fetch_add(1, std::memory_order_seq_cst);  // pairs with end()
  if (!ended_.load(std::memory_order_seq_cst)) return true;
  leave();
  return false;
}

void OpenSnapshots::leave() noexcept {
  readers_.fetch_sub(1, std::memory_order_seq_cst);  // pairs with end()
  if (ended_.load(std::memory_order_seq_cst)) readers_.notify_all();
}

void OpenSnapshots::fill(Stats& stats) const noexcept {
  const std::lock_guard lock(mutex_);
  for (const One* const one : all_) stats.snapshots += one->expired() ? 0 : 1;
  stats.snapshots_expired = expirations_;
  if (versions_ != nullptr) stats.snapshot_bytes = versions_->bytes();
}

std::uint32_t OpenSnapshots::claim() noexcept {
  const std::lock_guard lock(mutex_);
  while (One* const one = oldest()) {
    if (const std::uint32_t chunk = versions_->claim(Versions::committed(one->id_));
        chunk != Versions::no_chunk)
      return chunk;
    expire(*one);
  }
  return Versions::no_chunk;
}

bool OpenSnapshots::serves(std::uint64_t mode) const noexcept {
  if (this->mode() == mode) return true;  // the newest one is the same
  const std::lock_guard lock(mutex_);
  // Whatever began to be opened later waits for the transaction, and is not open yet.
  return std::any_of(all_.begin(), all_.end(), [&](const One* one) {
    return !one->expired() && one != being_opened_ && one->id_ < mode;
  });
}

OpenSnapshots::One* OpenSnapshots::oldest() const noexcept {
  One* found = nullptr;
  for (One* const one : all_)
    if (!one->expired() && (found == nullptr || one->id_ < found->id_)) found = one;
  return found;
}

void OpenSnapshots::expire(One& one) noexcept {
  // Pairs with the acquire in expired(): what the caller stores next is not in the snapshot.
  one.expired_.store(true, std::memory_order_release);
  ++expirations_;
  set_mode();
}

// Called after a change of the list, under its lock.
void OpenSnapshots::set_mode() noexcept {
  std::uint64_t mode = 0;
  for (const One* const one : all_)
    if (!one->expired()) mode = std::max(mode, one == being_opened_ ? always : one->id_ + 1);
  mode_.store(mode, std::memory_order_release);  // pairs with mode()
}

void OpenSnapshots::close(One& one) noexcept {
  // In the child of a fork() another thread of the parent's may have held the lock.
  if (::getpid() != process_) return;
  {
    const std::lock_guard lock(mutex_);
    std::erase(all_, &one);
    if (being_opened_ == &one) being_opened_ = nullptr;
    set_mode();
    if (!all_.empty()) return;
  }
  give_memory_back();
}

// After the last snapshot, if no transaction is open that may still save. It does not wait for one,
// because its caller may hold what the transaction waits for: the memory is then the next
// snapshot's, or goes back with it.
void OpenSnapshots::give_memory_back() noexcept {
  if (!enter()) return;
  {
    const std::unique_lock opening(opening_, std::try_to_lock);
    const std::lock_guard lock(mutex_);
    // mutant: snapshot-memory-not-used
    if (opening.owns_lock() && all_.empty() && waits_.no_update()) versions_ = nullptr;
  }
  leave();
}

}  // namespace perdure::engine::shadow
