// SPDX-License-Identifier: BSD-3-Clause
#include "plain/binding.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "perdure/base/at_fork.hpp"
#include "perdure/pool/directory.hpp"

namespace perdure::plain {
namespace {

struct Bound {
  std::mutex mutex;
  std::vector<std::weak_ptr<Binding>> all;
  std::atomic<std::size_t> size{0};       // of `all`: a hint
  std::atomic<std::uint64_t> changes{1};  // as well
};
Bound& bound() {
  static Bound& pools = *new Bound;  // never destroyed: threads may outlive statics
  return pools;
}
[[maybe_unused]] const int held = base::hold_over_fork<bound>();

std::vector<std::shared_ptr<Binding>> alive() {
  const std::lock_guard lock(bound().mutex);
  std::vector<std::shared_ptr<Binding>> found;
  for (const auto& one : bound().all)
    if (auto binding = one.lock(); binding != nullptr && !binding->ended())
      found.push_back(std::move(binding));
  return found;
}

}  // namespace

Binding::Binding(engine::DynamicRunner& runner, pool::OpenPool& file, Durability durability)
    : engine_(static_cast<engine::DynamicEngine::Implementation&>(runner)),
      file_(file),
      path_(file.path()),
      durability_(durability),
      first_(reinterpret_cast<std::uintptr_t>(file.view())) {
  const pool::Header header = file.header_now();
  bytes_ = std::max(pool::Directory(header).max_data_bytes(), file.data_bytes());
  objects_ = pool::first_chunk(header) * pool::chunk_bytes;
}

void Binding::end() noexcept {
  ended_.store(true, std::memory_order_relaxed);
  bound().changes.fetch_add(1, std::memory_order_relaxed);
}

std::shared_ptr<Binding> make_binding(engine::DynamicRunner& runner, pool::OpenPool& file,
                                      Durability durability) {
  auto binding = std::make_shared<Binding>(runner, file, durability);
  if (file.read_only() || binding->engine().follower() != nullptr)
    throw error(failure(Code::read_only, file.path(), "blocks on a pool that is open for reading",
                        "one that is open for writing", "read it by Pool::view()"));
  return binding;
}

std::shared_ptr<Binding> bind(engine::DynamicRunner& runner, pool::OpenPool& file,
                              Durability durability) {
  auto binding = make_binding(runner, file, durability);
  const std::lock_guard lock(bound().mutex);
  for (const auto& one : bound().all)
    if (auto known = one.lock(); known != nullptr && !known->ended() && &known->file() == &file)
      return known;
  std::erase_if(bound().all, [](const auto& one) { return one.expired(); });
  bound().all.push_back(binding);
  bound().size.store(bound().all.size(), std::memory_order_relaxed);
  bound().changes.fetch_add(1, std::memory_order_relaxed);
  return binding;
}

std::shared_ptr<Binding> only_binding() {
  const auto all = alive();
  return all.size() == 1 ? all.front() : nullptr;
}

std::size_t bindings() { return alive().size(); }

// Relaxed: a thread that has opened a pool, or knows of one, sees that there was a change.
std::uint64_t changes_of_bindings() noexcept {
  return bound().changes.load(std::memory_order_relaxed);
}

bool in_other_pool(const void* at, const Binding& than) noexcept {
  // Relaxed: a program that stores to a pool knows that it is open, by what opened it.
  if (bound().size.load(std::memory_order_relaxed) < 2) return false;
  const std::lock_guard lock(bound().mutex);
  for (const auto& one : bound().all)
    if (const auto binding = one.lock(); binding != nullptr && !binding->ended())
      if (binding.get() != &than &&
          reinterpret_cast<std::uintptr_t>(at) - binding->first() < binding->bytes())
        return true;
  return false;
}

}  // namespace perdure::plain
