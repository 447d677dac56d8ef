// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/floors.hpp"

#include <algorithm>
#include <utility>

namespace perdure::log {

std::shared_ptr<Floors::Floor> Floors::add(std::string name, std::uint64_t id, FloorPolicy policy,
                                           std::chrono::milliseconds patience) {
  auto floor = std::make_shared<Floor>();
  floor->name = std::move(name);
  floor->policy = policy;
  floor->patience = patience;
  floor->id.store(id, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  floors_.push_back(floor);
  found();
  return floor;
}

void Floors::raise(Floor& floor, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  floor.id.store(std::max(id, floor.id.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  found();
}

void Floors::give_up(Floor& floor) {
  const std::lock_guard not_reading(floor.in_use);
  const std::lock_guard lock(mutex_);
  floor.given_up.store(true, std::memory_order_relaxed);
  found();
}

bool Floors::nap(std::chrono::microseconds nap, bool whole, std::optional<std::uint64_t> seen) {
  std::unique_lock lock(mutex_);
  const std::uint64_t wakes = seen.value_or(wakes_);
  asked_.wait_for(lock, nap, [&] { return (waiting_ != 0 && !whole) || wakes_ != wakes; });
  return waiting_ != 0;
}

void Floors::wake() {
  const std::lock_guard lock(mutex_);
  ++wakes_;
  asked_.notify_all();
}

std::uint64_t Floors::wakes() const {
  const std::lock_guard lock(mutex_);
  return wakes_;
}

std::uint64_t Floors::waits() const {
  const std::lock_guard lock(mutex_);
  return waits_;
}

// Under the lock.
void Floors::found() noexcept {
  std::uint64_t lowest = none;
  for (const auto& f : floors_)
    if (!f->given_up.load(std::memory_order_relaxed))
      lowest = std::min(lowest, f->id.load(std::memory_order_relaxed));
  lowest_.store(lowest, std::memory_order_release);  // pairs with lowest()
  moved_.notify_all();
}

// A writer has waited for so long: gives up the floors whose reader it no longer waits for.
void Floors::give_up_after(std::chrono::steady_clock::duration waited) {
  for (const auto& f : floors_) {
    // mutant: floor-patience
    if (f->policy != FloorPolicy::give_up || waited < f->patience ||
        f->id.load(std::memory_order_relaxed) != lowest())
      continue;
    // Its reader may be reading: then at the next look.
    const std::unique_lock not_reading(f->in_use, std::try_to_lock);
    if (not_reading.owns_lock()) f->given_up.store(true, std::memory_order_relaxed);
  }
  found();
}

}  // namespace perdure::log
