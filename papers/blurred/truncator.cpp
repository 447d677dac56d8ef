// SPDX-License-Identifier: BSD-3-Clause
#include "papers/blurred/truncator.hpp"

#include <utility>

namespace perdure::papers::blurred {

Truncator::Truncator(medium::Medium& medium, std::uint64_t x,
                     std::function<std::uint64_t()> low_watermark,
                     std::function<Status(std::uint64_t)> note_checkpoint_id)
    : medium_(medium),
      low_watermark_(std::move(low_watermark)),
      note_checkpoint_id_(std::move(note_checkpoint_id)),
      x_(x) {}

// Called under the mutex.
bool Truncator::start() noexcept {
  return !stopping_ && thread_.start([this] { work(); });
}

void Truncator::push(Node& one) noexcept {
  {
    const std::lock_guard lock(mutex_);
    queue_.splice(queue_.end(), one);
    if (!start()) return;  // wait() will do the round
  }
  wake_.notify_one();
}

Status Truncator::wait(std::uint64_t id) {
  std::unique_lock lock(mutex_);
  while (failure_.ok() && !stopping_ && checkpoint_id() < id) {
    wanted_ = true;
    if (!start() && !working_) round(lock);
    wake_.notify_one();
    // A transaction below `id` may still be pending, and no thread notifies this one when it ends.
    if (checkpoint_id() < id) done_.wait_for(lock, std::chrono::milliseconds(1));
  }
  return failure_;
}

void Truncator::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Truncator::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] {
      return stopping_ || !failure_.ok() || (!working_ && (wanted_ || !queue_.empty()));
    });
    if (stopping_ || !failure_.ok()) return;
    round(lock);
  }
}

// Flushes what the queue holds, and makes the checkpoint id X say so. One thread at a time runs it,
// under the mutex, which it releases meanwhile.
void Truncator::round(std::unique_lock<std::mutex>& lock) {
  working_ = true;
  wanted_ = false;
  const std::uint64_t low_watermark = low_watermark_();
  std::list<Lines> taken;
  taken.swap(queue_);
  lock.unlock();
  Status s;
  for (const Lines& lines : taken) {
    // mutant: bppm-async-flush
    for (const std::uint64_t line : lines)
      medium_.flush(medium_.log_bytes() + line, medium::line_bytes);
    // The data region has the transaction before X may cover it.
    if (s = medium_.fence(); !s.ok()) break;
  }
  if (s.ok() && low_watermark > checkpoint_id()) s = note_checkpoint_id_(low_watermark);
  lock.lock();
  working_ = false;
  if (s.ok()) {
    if (low_watermark > checkpoint_id())
      x_.store(low_watermark,
               std::memory_order_release);  // pairs with the acquire in checkpoint_id()
    rounds_.fetch_add(1, std::memory_order_relaxed);
  } else {
    failure_ = s;
  }
  // Wakes the thread, if another one did this round: what was queued meanwhile remains.
  wake_.notify_one();
  done_.notify_all();
}

}  // namespace perdure::papers::blurred
