// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/api/erased.hpp"

namespace perdure {

Result<std::unique_ptr<ErasedPool>> ErasedPool::open(const std::string& path,
                                                     const Options& options, const Root& root) {
  try {
    std::unique_ptr<ErasedPool> pool(new ErasedPool());
    if (Status s = pool->open_registered(path, options, root, nullptr, false); !s.ok()) return s;
    pool->begin_archive();
    pool->keep();
    return pool;
  } catch (...) {
    return detail::opening_failed(path);
  }
}

void ErasedPool::view(Durability durability, Body body, void* arg) {
  const std::uint64_t seen = run(false, durability, body, arg);
  if (durability != Durability::async && seen != engine::joined) wait_for(seen);
}

Status ErasedPool::close() {
  if (engine::Snapshots* const all = running_->snapshots(); all != nullptr) all->end();
  return running_->close();
}

Result<std::shared_ptr<engine::OpenSnapshot>> ErasedPool::snapshot(Durability durability) {
  try {
    return open_snapshot(durability);
  } catch (const error& e) {
    return e.status();
  }
}

std::uint64_t ErasedPool::run(bool update, Durability durability, Body body, void* arg) {
  struct Call {
    Body body;
    void* arg;
  } call{body, arg};
  return runner_->run(
      update, durability,
      [](engine::DynamicTransaction& transaction, void* of) {
        const Call& inner = *static_cast<Call*>(of);
        ErasedTx erased(transaction);
        inner.body(erased, inner.arg);
      },
      &call);
}

}  // namespace perdure
