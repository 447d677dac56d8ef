// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/dynamic_engine.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "perdure/base/at_fork.hpp"
#include "perdure/engine/dynamic_engine_over.hpp"
#include "perdure/engine/follow/reader_engine.hpp"
#include "perdure/engine/registry.hpp"
#include "perdure/engine/workload_recorder.hpp"

namespace perdure::engine {
namespace {

// Entries never move and never change, so a thread that has read `size` may read all below it.
struct Registry {
  static constexpr std::size_t most = 128;
  std::array<EngineInfo, most> entries{};
  std::array<DynamicEngine::Make, most> makers{};
  std::atomic<std::size_t> size{0};
  std::mutex mutex;

  Registry() noexcept {
    each_entry(product_engines(),
               [this](const EngineInfo& e, DynamicEngine::Make make) { add(e, make); });
  }
  void add(const EngineInfo& entry, DynamicEngine::Make make) noexcept {
    const std::lock_guard lock(mutex);
    const std::size_t n = size.load(std::memory_order_relaxed);  // changed under the mutex alone
    for (std::size_t i = 0; i < n; ++i)
      if (entries[i].name == entry.name) return;
    if (n == most) std::abort();  // a programming error: raise `most`
    entries[n] = entry;
    entries[n].dynamic = true;
    makers[n] = make;
    size.store(n + 1, std::memory_order_release);  // pairs with the acquire in registered()
  }
};

Registry& registry() {
  static Registry& engines = *new Registry;  // never destroyed: pools may outlive statics
  return engines;
}
[[maybe_unused]] const int held = base::hold_over_fork<registry>();

template <class Is>
const EngineInfo* first(Is&& is) {
  const auto entries = registered();
  const auto found = std::find_if(entries.begin(), entries.end(), is);
  return found == entries.end() ? nullptr : &*found;
}

std::unique_ptr<DynamicEngine::Implementation> make_named(pool::OpenPool& file,
                                                          const Config& config,
                                                          const Recovery& recovery) {
  const EngineInfo* const entry = find_instance(config.instance);
  if (entry == nullptr)
    throw error(failure(Code::invalid, "", "engine '" + std::string(config.instance) + "'",
                        "the name of a registered instance"));
  return registry().makers[static_cast<std::size_t>(entry - registry().entries.data())](
      file, config, recovery);
}

}  // namespace

DynamicEngine::DynamicEngine(pool::OpenPool& file, const Config& config, const Recovery& recovery) {
  if (config.follower != nullptr) {
    engine_ = follow::make_reader(file, config, recovery);
    return;
  }
  auto trace = TraceWriter::for_pool(file, config);  // this comes first, because it may fail
  engine_ = make_named(file, config, recovery);
  if (trace != nullptr) engine_ = record_workload(std::move(engine_), std::move(trace));
}

std::uint64_t DynamicEngine::Implementation::run(bool update, Durability durability, Body body,
                                                 void* arg) {
  return engine::run(*this, update, durability,
                     [&](Transaction& transaction) { body(transaction, arg); });
}

DynamicTransaction* DynamicEngine::Implementation::begin_direct_view() {
  Transaction& own = transaction();
  return own.try_direct_view() ? &own : nullptr;
}

std::uint64_t DynamicEngine::Implementation::end_direct_view(DynamicTransaction& transaction,
                                                             bool bound) {
  return static_cast<Transaction&>(transaction).end_direct_view(bound);
}

void DynamicEngine::Implementation::leave_direct_view(DynamicTransaction& transaction) noexcept {
  static_cast<Transaction&>(transaction).leave_direct_view();
}

void cannot_emit() {
  throw error(failure(Code::unsupported, "", "emit() in a pool whose engine keeps no events",
                      "an engine that does: shadow, shadow/stm, shadow/global_lock, shadow/none",
                      "open the pool with one of them if it is of their family"));
}

void register_engine(const EngineInfo& entry, DynamicEngine::Make make) noexcept {
  registry().add(entry, make);
}

std::span<const EngineInfo> registered() {
  // Acquire: pairs with the release in Registry::add().
  return {registry().entries.data(), registry().size.load(std::memory_order_acquire)};
}

const EngineInfo* find_instance(std::string_view name) {
  return first([name](const EngineInfo& e) { return e.name == name; });
}

const EngineInfo* find_family(std::string_view family) {
  return first([family](const EngineInfo& e) { return e.family == family; });
}

}  // namespace perdure::engine

namespace perdure {

std::span<const engine::EngineInfo> any_engine::entries() { return engine::registered(); }

}  // namespace perdure
