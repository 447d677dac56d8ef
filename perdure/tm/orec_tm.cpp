// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/tm/orec_tm.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <thread>

#include "perdure/base/checksum.hpp"

namespace perdure::tm {
namespace {

constexpr std::size_t table_bytes = sizeof(Orec) << OrecShared::table_bits;

void pause_cpu() noexcept { __builtin_ia32_pause(); }

bool direct_views_work() noexcept { return asymmetric_fence_works() || under_thread_sanitizer; }

}  // namespace

OrecShared::OrecShared(std::uint64_t start) : domain(start) {
  void* p = mmap(nullptr, table_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  madvise(p, table_bytes, MADV_HUGEPAGE);
  // Zero is version 0, free; atomics of this size have no other representation.
  orecs_ = static_cast<Orec*>(p);
}

OrecShared::~OrecShared() { munmap(static_cast<void*>(orecs_), table_bytes); }

void OrecShared::set_bias(int me, std::uint64_t wanted) {
  const std::lock_guard lock(change);
  // It is written only under `change`.
  const std::uint64_t before = bias.load(std::memory_order_relaxed);
  if (before == wanted) return;
  keep_others_out(me);
  (wanted == bias_none ? revocations : grants).fetch_add(1, std::memory_order_relaxed);
  bias.store(wanted, std::memory_order_release);  // pairs with the acquire in begin()
  if (!direct_views_work()) return;
  if (wanted == bias_shared)
    domain.give_grants(0, domain.used.load(std::memory_order_relaxed));
  else if (wanted != bias_none)
    domain.give_grants(me, me + 1);
}

void OrecShared::keep_others_out(int me) {
  bias.store(bias_changing, std::memory_order_relaxed);
  // mutant: grants-taken-back
  domain.take_grants();
  // This pairs with enter()'s light fence: a slot that is not seen active below will see
  // `changing`, and no grant.
  heavy_fence();
  domain.wait_for_others(me);
}

void OrecShared::grant_view(int me) {
  const std::lock_guard lock(change);
  if (bias.load(std::memory_order_relaxed) == bias_shared) domain.give_grants(me, me + 1);
}

void OrecShared::end_irrevocable() {
  bias.store(bias_none, std::memory_order_release);  // pairs with the acquire in begin()
  change.unlock();
}

OrecTransactionBase::OrecTransactionBase(OrecShared& shared, int slot)
    : shared_(shared),
      slot_(shared.domain.enter(slot)),
      me_(static_cast<std::uint64_t>(slot) + 1),
      mine_(static_cast<std::uint64_t>(slot) << 1 | 1),
      views_directly_(direct_views_work()),
      random_(base::mix(me_)) {
  reads_.reserve(1024);
  locks_.reserve(256);
}

Slot* OrecTransactionBase::biased_other(std::unique_lock<std::mutex>& lock) noexcept {
  const auto seen = [this]() -> Slot* {
    // It is written only under `change`.
    const std::uint64_t bias = shared_.bias.load(std::memory_order_relaxed);
    const bool other = bias != OrecShared::bias_none && bias < OrecShared::bias_shared;
    return other && bias != me_ ? &shared_.domain.slots[bias - 1] : nullptr;
  };
  if (seen() == nullptr || !lock.try_lock()) return nullptr;
  Slot* const biased = seen();
  if (biased == nullptr) lock.unlock();
  return biased;
}

void OrecTransactionBase::begin_slow(bool update, bool want_exclusive) {
  for (;;) {
    if (want_exclusive) {
      // Irrevocable: `change` is held until the transaction ends, so no thread can revoke, and no
      // other thread is inside.
      if (slot_.active.load(std::memory_order_relaxed) % 2 != 0) leave();
      shared_.change.lock();
      shared_.keep_others_out(static_cast<int>(me_) - 1);
      enter();
      holds_change_ = true;
      direct_ = true;
      return;
    }
    leave();
    const std::uint64_t seen = shared_.bias.load(std::memory_order_acquire);  // pairs with set_bias
    if (seen == OrecShared::bias_changing) {
      const std::lock_guard wait(shared_.change);
    } else if (seen != OrecShared::bias_none && seen != me_ &&
               !(seen == OrecShared::bias_shared && !update)) {
      shared_.set_bias(static_cast<int>(me_) - 1, OrecShared::bias_none);
      streak_ = 0;
    } else if (seen == OrecShared::bias_shared && lacks_grant()) {
      shared_.grant_view(static_cast<int>(me_) - 1);
    }
    enter();
    if (!update) is_view();
    const std::uint64_t bias = shared_.bias.load(std::memory_order_acquire);  // pairs with set_bias
    if (bias == me_ || (bias == OrecShared::bias_shared && !update)) {
      direct_ = true;
      return;
    }
    if (bias == OrecShared::bias_none) {
      direct_ = false;
      log_reads_ = update || failures_ != 0;
      snapshot_ = shared_.domain.clock.load(std::memory_order_acquire);  // pairs with draw_id
      return;
    }
  }
}

// BIAS-3: this happens at a begin, never at an end: it takes `change` and waits for transactions to
// end, and a thread that ends one may hold what those wait for (an engine's lock on a ring that
// threads share).
void OrecTransactionBase::begin_considering_bias(bool update) {
  leave();
  consider_bias();
  enter();
  begin_slow(update, false);
}

void OrecTransactionBase::consider_bias() {
  // Alone: no other slot has changed since the last look. Readers: no thread has committed since.
  std::uint64_t others = 0;
  bool inside = false;
  shared_.domain.for_others(static_cast<int>(me_) - 1, [&](const Slot& s) {
    const std::uint64_t active = s.active.load(std::memory_order_relaxed);
    others += active;
    inside |= active % 2 != 0;
  });
  const std::uint64_t clock = shared_.domain.clock.load(std::memory_order_relaxed);
  // This does not wait for another thread's long transaction.
  const bool alone = others == seen_others_ && !inside;
  const bool only_reads = clock == seen_clock_ && !streak_updates_;
  seen_others_ = others;
  seen_clock_ = clock;
  streak_ = 0;
  streak_updates_ = false;
  if (alone)
    shared_.set_bias(static_cast<int>(me_) - 1, me_);
  else if (only_reads)
    shared_.set_bias(static_cast<int>(me_) - 1, OrecShared::bias_shared);
}

bool OrecTransactionBase::valid(std::uint64_t snapshot) const noexcept {
  for (const Orec* o : reads_) {
    const std::uint64_t v = o->load(std::memory_order_acquire);  // pairs with release_locks()
    // Its version was checked when this thread took it.
    if (v == mine_) continue;
    if (orec::owned(v) || orec::version(v) > snapshot) return false;
  }
  return true;
}

// The frequent case saves no registers and calls nothing: the rest is read_orec_slow(), to which it
// jumps.
std::uint64_t OrecTransactionBase::read_orec(const std::uint64_t* a) {
  Orec& o = shared_.of(a);
  // pairs with release_locks() and rollback()
  const std::uint64_t v = o.load(std::memory_order_acquire);
  if (orec::owned(v)) return v == mine_ ? load_word(a) : read_orec_slow(a);
  const std::uint64_t word = load_word(a);  // acquire: the orec is read again after it
  if (__builtin_expect(o.load(std::memory_order_relaxed) != v || orec::version(v) > snapshot_, 0))
    return read_orec_slow(a);
  if (log_reads_ && (reads_.empty() || reads_.back() != &o)) {
    if (__builtin_expect(reads_.size() == reads_.capacity(), 0)) return read_orec_slow(a);
    reads_.push_back(&o);
  }
  return word;
}
std::uint64_t OrecTransactionBase::read_orec_slow(const std::uint64_t* a) {
  return read_orec_by(a, [a] { return load_word(a); });
}

void OrecTransactionBase::own_orec(const std::uint64_t* a) {
  Orec& o = shared_.of(a);
  std::uint64_t v = o.load(std::memory_order_relaxed);
  if (v == mine_) return;
  room_for_a_lock();
  // The acquire pairs with release_locks(): the last owner's words are seen.
  if (__builtin_expect(orec::owned(v) || orec::version(v) > snapshot_ ||
                           !o.compare_exchange_strong(v, mine_, std::memory_order_acq_rel),
                       0))
    return own_slow(o);
  locks_.push_back({&o, v});
}

void OrecTransactionBase::extend() {
  if (!log_reads_) conflict();
  // pairs with draw_id()
  const std::uint64_t now = shared_.domain.clock.load(std::memory_order_acquire);
  if (!valid(snapshot_)) conflict();
  snapshot_ = now;
}

std::uint64_t OrecTransactionBase::wait_unowned(Orec& o) {
  // This is longer than a commit with its fence, and shorter than a time slice: after it the owner
  // is likely to be descheduled, or to wait for this thread.
  for (int i = 0; i < 400; ++i) {
    pause_cpu();
    const std::uint64_t v = o.load(std::memory_order_acquire);  // pairs with release_locks()
    if (!orec::owned(v)) return v;
  }
  conflict();
}

void OrecTransactionBase::own_slow(Orec& o) {
  std::uint64_t v = o.load(std::memory_order_acquire);  // pairs with release_locks()
  for (;;) {
    if (orec::owned(v)) v = wait_unowned(o);
    if (orec::version(v) > snapshot_) {
      extend();
      v = o.load(std::memory_order_acquire);  // pairs with release_locks()
      continue;
    }
    if (o.compare_exchange_strong(v, mine_, std::memory_order_acq_rel)) {
      // The acquire pairs with release_locks().
      locks_.push_back({&o, v});
      return;
    }
  }
}

std::uint64_t OrecTransactionBase::draw_id() {
  if (doomed_) conflict();
  auto& clock = shared_.domain.clock;
  std::uint64_t now = clock.load(std::memory_order_acquire);  // pairs with other threads' draws
  for (;;) {
    if (now != snapshot_) {
      if (!valid(snapshot_)) conflict();
      snapshot_ = now;
    }
    // pairs with low_watermark()
    slot_.pending.store(now + 1, std::memory_order_release);
    // The release pairs with low_watermark().
    if (clock.compare_exchange_strong(now, now + 1, std::memory_order_acq_rel))
      return snapshot_ = now + 1;  // the next update begins there
    slot_.pending.store(no_id, std::memory_order_release);
  }
}

void OrecTransactionBase::rollback() noexcept {
  undo_.rollback();
  for (const Lock& l : locks_) {
    std::uint64_t v = l.before;
    if ((v >> 1 & orec::incarnations) != orec::incarnations) {
      v += 2;
    } else {
      // The incarnations of this version are used up: the clock's value is at least the version,
      // and no id is spent.
      v = orec::of_version(shared_.domain.clock.load(std::memory_order_acquire));
    }
    l.orec->store(v, std::memory_order_release);  // pairs with a reader's first load
  }
  locks_.clear();
  reads_.clear();
  doomed_ = false;
  // BESIDE-3: only this thread counts. The release pairs with copy_beside().
  slot_.rollbacks.store(slot_.rollbacks.load(std::memory_order_relaxed) + 1,
                        std::memory_order_release);
  slot_.pending.store(no_id, std::memory_order_release);  // pairs with low_watermark()
  leave();
  if (holds_change_) release_change();
}

void OrecTransactionBase::backoff() noexcept {
  ++failures_;
  random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
  const std::uint64_t limit = 32ULL << (failures_ < 10 ? failures_ : 10);
  const std::uint64_t n = (random_ >> 33) % limit;
  for (std::uint64_t i = 0; i < n; ++i) pause_cpu();
  if (failures_ > 3) std::this_thread::yield();
}

void OrecTransactionBase::copy_line(void* to, const void* from) noexcept {
  auto* const out = static_cast<std::uint64_t*>(to);
  const void* const in = from;
  if (direct_) {
    std::memcpy(out, in, 64);
    return;
  }
  Orec& o = shared_.of(from);
  for (;;) {
    // pairs with release_locks() and rollback()
    const std::uint64_t v = o.load(std::memory_order_acquire);
    if (orec::owned(v)) {
      // The owner is waited for, never skipped: it may have marked the line before the marks were
      // cleared. It gives the stripe up before it leaves.
      Slot& owner = shared_.domain.slots[v >> 1];
      // pairs with release_locks() and rollback()
      owner.waiters.wait([&o, v] { return o.load(std::memory_order_acquire) != v; });
      continue;
    }
    copy_words(out, in);
    if (o.load(std::memory_order_relaxed) == v) return;
  }
}

bool OrecTransactionBase::own_all(const void* from, std::size_t n) {
  const auto* const first = static_cast<const std::byte*>(from);
  locks_.reserve(n / 64 + 1);
  for (std::size_t at = 0; at < n; at += 64) {
    Orec& o = shared_.of(first + at);
    std::uint64_t v = o.load(std::memory_order_relaxed);
    // The acquire pairs with release_locks() and rollback(): the last owner's words and marks are
    // seen.
    if (orec::owned(v) || !o.compare_exchange_strong(v, mine_, std::memory_order_acq_rel)) {
      give_all_back();
      return false;
    }
    locks_.push_back({&o, v});
  }
  return true;
}

void OrecTransactionBase::give_all_back() noexcept {
  // The words are as they were, so no new incarnation is needed: a reader may take them from before
  // and from after. The release pairs with the next owner's acquire.
  for (const Lock& l : locks_) l.orec->store(l.before, std::memory_order_release);
  locks_.clear();
}

static_assert(TransactionalMemory<Stm> && TransactionalMemory<Biased>);

}  // namespace perdure::tm
