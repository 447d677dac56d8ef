// SPDX-License-Identifier: BSD-3-Clause
#include "testing/faulty_medium.hpp"

namespace perdure::medium {

// Relaxed everywhere here: a plan is made before the threads that it affects start, and counts
// order nothing.
constexpr auto relaxed = std::memory_order_relaxed;

FaultyMedium::FaultyMedium(std::unique_ptr<Medium> inner) : inner_(std::move(inner)) {
  path_ = inner_->path();
  log_ = const_cast<std::byte*>(inner_->at(0));
  data_ = const_cast<std::byte*>(inner_->data());
  log_bytes_ = inner_->log_bytes();
  data_bytes_.store(inner_->data_bytes(), relaxed);
  max_data_bytes_ = inner_->max_data_bytes();
  append_unit_ = inner_->append_unit();
  fence_is_sync_ = inner_->fence_is_sync();
  read_only_ = inner_->read_only();
  pages_ = inner_->pages();
}

void FaultyMedium::fail(Call call, std::uint64_t nth, int err, bool and_later) noexcept {
  Plan& p = plan(call);
  p.made.store(0, relaxed);
  p.err.store(err, relaxed);
  p.and_later.store(and_later, relaxed);
  p.nth.store(nth, relaxed);
}

std::uint64_t FaultyMedium::calls(Call call) const noexcept {
  return plans_[static_cast<std::size_t>(call)].made.load(relaxed);
}

int FaultyMedium::strike(Call call) noexcept {
  Plan& p = plan(call);
  const std::uint64_t made = p.made.fetch_add(1, relaxed) + 1;
  const std::uint64_t nth = p.nth.load(relaxed);
  const bool hit = made == nth || (made > nth && p.and_later.load(relaxed));
  return hit ? p.err.load(relaxed) : 0;
}

Status FaultyMedium::injected(const char* what, int err) const {
  return system_failure(path_, std::string("injected: ") + what, err, "reopen the pool to recover");
}

Status FaultyMedium::fence() noexcept {
  int err = strike(Call::fence);
  if (err == 0) err = lost_append_.load(relaxed);
  if (Status s = poison_.check(); !s.ok()) return s;
  if (err != 0) return poison_.fail(injected("fence", err));
  return inner_->fence();
}

Status FaultyMedium::flush_all() noexcept {
  const int err = strike(Call::flush_all);
  if (Status s = poison_.check(); !s.ok()) return s;
  if (err != 0) return poison_.fail(injected("flush_all", err));
  return inner_->flush_all();
}

Result<RingMap> FaultyMedium::map_ring(std::uint64_t offset, std::uint64_t bytes) {
  if (const int err = strike(Call::map_ring); err != 0) return injected("map_ring", err);
  return inner_->map_ring(offset, bytes);
}

void FaultyMedium::append(const RingMap& ring, std::uint64_t pos, const void* src,
                          std::size_t n) noexcept {
  if (const int err = strike(Call::append); err != 0) {
    lost_append_.store(err, relaxed);
    return;
  }
  inner_->append(ring, pos, src, n);
}

Status FaultyMedium::allocate(std::uint64_t offset, std::uint64_t n) {
  if (allocated(offset, n)) return {};
  const int err = strike(Call::allocate);
  if (Status s = poison_.check(); !s.ok()) return s;
  if (err != 0) return injected("allocate", err);
  return inner_->allocate(offset, n);
}

Status FaultyMedium::grow(std::uint64_t data_bytes) {
  const int err = strike(Call::grow);
  if (Status s = poison_.check(); !s.ok()) return s;
  if (err != 0) return injected("grow", err);
  Status s = inner_->grow(data_bytes);
  // pairs with the acquire in data_bytes()
  data_bytes_.store(inner_->data_bytes(), std::memory_order_release);
  return s;
}

Status FaultyMedium::map_view(std::byte* address, std::uint64_t data_offset, std::uint64_t n,
                              ViewKind kind) {
  if (const int err = strike(Call::map_view); err != 0) return injected("map_view", err);
  return inner_->map_view(address, data_offset, n, kind);
}

bool FaultyMedium::drop_copies(std::byte* address, std::uint64_t n) noexcept {
  return strike(Call::drop_copies) == 0 && inner_->drop_copies(address, n);
}

}  // namespace perdure::medium
