// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/engine_base.hpp"

#include <algorithm>
#include <optional>

#include "perdure/base/at_fork.hpp"
#include "perdure/engine/show_stats.hpp"

namespace perdure::engine {
namespace {

struct Live {
  std::mutex mutex;
  std::vector<EngineBase*> cores;
};
Live& live() {
  static Live* const all = new Live;
  return *all;
}
const int held = base::hold_over_fork<live>();

Status failed_earlier(const pool::OpenPool& file, std::string_view how) noexcept {
  return failure(Code::poisoned, file.path(), how, {},
                 "close the pool and open it again: what was acknowledged is kept");
}

std::string name_of(const pool::Header& h) {
  return {h.engine, strnlen(h.engine, sizeof h.engine)};
}

}  // namespace

EngineBase::EngineBase(pool::OpenPool& f, const Config& c, const Recovery& r)
    : file(f),
      medium(f.medium()),
      config(c),
      recovery(r),
      page_(f.header().uuid, f.read_only() ? std::string() : f.path(), name_of(f.header())) {
  if (file.read_only()) state_.fetch_or(read_only_bit, std::memory_order_relaxed);
  const std::lock_guard lock(live().mutex);
  live().cores.push_back(this);
}

EngineBase::~EngineBase() {
  const std::lock_guard lock(live().mutex);
  std::erase(live().cores, this);
}

// The child has one thread, and the list is consistent: no lock is needed.
void EngineBase::in_forked_child() {
  for (EngineBase* core : live().cores) core->refusing(forked_bit);
}
const int EngineBase::marked_ = ::pthread_atfork(nullptr, nullptr, &EngineBase::in_forked_child);

void EngineBase::refusing(std::uint32_t bit) noexcept {
  state_.fetch_or(bit, std::memory_order_release);  // pairs with why()
  // mutant: refusing-takes-grants-back
  if (domain_ != nullptr) domain_->refuse_grants();
}

void EngineBase::poison(const Status& status) noexcept {
  const std::lock_guard lock(mutex_);
  refusing(poisoned_bit);  // first: lack of memory is no reason to continue
  if (!failure_.ok() || status.ok()) return;
  try {
    // A medium that had failed before says so itself.
    failure_ = failed_earlier(file, status.code() == Code::poisoned
                                        ? status.message()
                                        : "the medium failed earlier (" + status.message() + ")");
  } catch (const std::bad_alloc&) {  // why() says it without the medium's words
  }
}

void EngineBase::depose(const Status& why) noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = why;
  refusing(poisoned_bit);
}

bool EngineBase::poison_with_medium() noexcept {
  try {
    const Status failed = medium.usable();
    if (failed.ok()) return false;
    poison(failed);
  } catch (const std::bad_alloc&) {  // usable() lacks the memory for its message only
    poison({});
  }
  return true;
}

void EngineBase::lost(std::uint64_t id, const Status& status) noexcept {
  std::uint64_t first = first_lost();
  while (id < first && !first_lost_.compare_exchange_weak(first, id, std::memory_order_relaxed)) {}
  poison(status);
}

Status EngineBase::why() const noexcept {
  // Pairs with the release in poison().
  const std::uint32_t state = state_.load(std::memory_order_acquire);
  if (state & forked_bit)
    return failure(Code::closed, file.path(), "this handle was carried through fork()",
                   "a pool opened in this process",
                   "open it in the child after the parent closed it");
  if (state & poisoned_bit) {
    const std::lock_guard lock(mutex_);
    if (!failure_.ok()) return failure_;
    return failed_earlier(file, "the medium failed earlier");
  }
  if (state & closed_bit)
    return failure(Code::closed, file.path(), "the pool is closed", {}, "open it again");
  return {};
}

void EngineBase::refuse() const {
  why().or_throw();
  throw error(failure(Code::read_only, file.path(),
                      "a change was asked of a pool that is open for reading only", {},
                      "open it without read_only"));
}

void EngineBase::fill(Stats& stats) const {
  // A follower's header changes when it attaches anew. What is read of another one stays as it is,
  // while other threads change other fields.
  std::optional<pool::Header> copy;
  if (file.following()) copy = file.header_now();
  const pool::Header& header = copy ? *copy : file.header();
  stats.engine = name_of(header);
  for (const ThreadCounters& r : rows) {
    stats.commits += r.commits.load(std::memory_order_relaxed);
    stats.reads += r.reads.load(std::memory_order_relaxed);
    stats.aborts += r.aborts.load(std::memory_order_relaxed);
    stats.log_bytes += r.log_bytes.load(std::memory_order_relaxed);
  }
  if (domain_ != nullptr) stats.reads += domain_->direct_views();
  stats.log_capacity = header.ring_bytes * header.ring_count;
  stats.heap_used = file.has_heap() ? file.heap().used_bytes() : header.heap_used;
  stats.data_bytes = file.data_bytes();
  stats.medium = medium.counters();
  stats.recovery = recovery;
}

void EngineBase::show(const Stats& s) noexcept { engine::show_stats(page_, s); }

void Refusal::keep() noexcept {
  // The first one: what follows it may be its consequence, as where a conflict was caught.
  if (what_ == nullptr) what_ = std::current_exception();
}

void Refusal::keep_of_free() noexcept {
  try {
    throw;
  } catch (const error& e) {
    if (e.code() != Code::invalid) keep();
  } catch (...) {
    keep();
  }
}

void Refusal::again() { std::rethrow_exception(std::exchange(what_, nullptr)); }

pool::HeapOp HeapOps::reserve(pool::Heap& heap, std::uint64_t bytes) {
  auto op = heap.reserve(bytes);
  op.status().or_throw();
  try {
    add(*op);
  } catch (...) {
    heap.release(*op);
    throw;
  }
  return *op;
}

Result<pool::HeapOp> HeapOps::prepare_free(pool::Heap& heap, std::uint64_t offset) {
  if (!ops_.empty()) {
    if (const pool::HeapOp* before = latest(offset)) {
      if (!before->set)
        return failure(Code::invalid, "",
                       "the block at data offset " + std::to_string(offset) +
                           " was freed twice in one transaction",
                       "one free");
      pool::HeapOp op = *before;
      op.set = false;
      return op;
    }
  }
  return heap.prepare_free(offset);
}

void HeapOps::index(const pool::HeapOp& op) {
  try {
    if (index_.empty())
      for (std::size_t i = 0; i + 1 < ops_.size(); ++i) index_[ops_[i].offset] = i;
    index_[op.offset] = ops_.size() - 1;
  } catch (...) {
    index_.clear();  // rebuilt with the next op; until then latest() searches
    ops_.pop_back();
    throw;
  }
}

void HeapOps::take_back_last(pool::Heap& heap) noexcept {
  heap.release(ops_.back());
  ops_.pop_back();
  index_.clear();
}

void HeapOps::forget_frees(pool::Heap& heap) noexcept {
  for (const auto& op : ops_)
    if (!op.set) heap.release(op);
}

// Call this after forget_frees: forgetting the free of a large block marks its chunks as taken,
// which must not happen after they are released.
void HeapOps::release(pool::Heap& heap) noexcept {
  for (const auto& op : ops_)
    if (op.set) heap.release(op);
  clear();
}

}  // namespace perdure::engine
