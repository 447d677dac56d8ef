// SPDX-License-Identifier: BSD-3-Clause
//
// The replay's hot loop, compiled once for each engine: a pool opened with a list of one instance
// is the same code that a program which names its engine gets. One source per family of engines
// (engines_shadow.cpp and the others) includes this file and instantiates open_family, so that no
// source compiles for long.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/api/pool.hpp"
#include "tools/advise/engines.hpp"

namespace perdure::tool {
namespace replay_detail {

using Clock = std::chrono::steady_clock;

struct Root {
  ptr<p<std::uint64_t>> arena;
};

template <class Tx>
void replay(Tx& tx, const ReplayOp* op, const ReplayOp* const end, ReplayState& s) {
  std::byte** const base = s.base.data();
  std::uint64_t sum = 0;
  for (; op != end; ++op) {
    std::byte* const at = base[op->block] + std::uint64_t{op->word} * 8;
    switch (op->kind) {
      case ReplayKind::read:
        sum += tx.read(*reinterpret_cast<const p<std::uint64_t>*>(at));
        continue;
      case ReplayKind::read_words:
        for (std::uint64_t done = 0, n; done < op->n; done += n) {
          n = std::min<std::uint64_t>(op->n - done, s.words.size());
          tx.read_bytes(s.words.data(), at + done * 8, n * 8);
          sum += s.words[0];
        }
        continue;
      default: break;
    }
    if constexpr (!Tx::read_only) {
      switch (op->kind) {
        case ReplayKind::write:
          tx.write(*reinterpret_cast<p<std::uint64_t>*>(at), sum + op->word);
          break;
        case ReplayKind::write_words:
          for (std::uint64_t done = 0, n; done < op->n; done += n) {
            n = std::min<std::uint64_t>(op->n - done, s.words.size());
            tx.write_bytes(at + done * 8, s.words.data(), n * 8);
          }
          break;
        case ReplayKind::alloc: base[op->block] = tx.alloc(op->n); break;
        case ReplayKind::alloc_stray:
          s.strays.push_back(tx.alloc(op->n));
          s.stray_bytes += op->n;
          break;
        case ReplayKind::free: tx.free(base[op->block]); break;
        case ReplayKind::free_ready: tx.free(s.ready[op->block][--s.left[op->block]]); break;
        default: break;
      }
    }
  }
  s.sum += sum;
}

template <class Instance>
class Over final : public ReplayPool {
 public:
  Over(const std::string& path, const Options& options)
      : durability_(options.durability), pool_(OnePool::open(path, options)) {}

  std::byte* make_arena(std::uint64_t bytes) override {
    std::byte* arena = nullptr;
    change({}, {&arena, 1}, bytes, true);
    wait_durable();
    return arena;
  }

  void work(ReplayState& s, const std::atomic<bool>& stop) override {
    const auto& plan = s.plan;
    const bool waits = durability_ != Durability::async;
    while (!stop.load(std::memory_order_relaxed)) {  // pairs with nothing: a flag
      if (s.next == plan.transactions.size()) {
        s.next = 0;
        ++s.passes;
        for (const std::uint32_t b : plan.leftover) s.strays.push_back(s.base[b]);
        s.stray_bytes += plan.leftover.empty() ? 0 : plan.leftover_bytes;
        if (s.one_pass) return;
      }
      if (s.next == 0 && !s.supplied()) return;
      if (s.stray_bytes > s.stray_limit) return;
      const ReplayTransaction& t = plan.transactions[s.next];
      const ReplayOp* const first = plan.ops.data() + t.first;
      const ReplayOp* const end = first + t.count;
      if (!t.update) {
        const auto body = [&](auto& tx, const Root&) { replay(tx, first, end, s); };
        if (t.durable_view && waits)
          pool_.view(Durability::durable, body);
        else
          pool_.view(body);
      } else {
        const bool timed = --s.until == 0;
        const auto begun = timed ? Clock::now() : Clock::time_point();
        const std::size_t strays = s.strays.size();
        const std::uint64_t stray_bytes = s.stray_bytes;
        s.before = s.left;  // does not allocate: the size is the same
        pool_.update([&](auto& tx, Root&) {
          s.strays.resize(strays);
          s.stray_bytes = stray_bytes;
          std::copy(s.before.begin(), s.before.end(), s.left.begin());
          replay(tx, first, end, s);
        });
        if (timed) {
          s.microseconds.push_back(
              std::chrono::duration<float, std::micro>(Clock::now() - begun).count());
          s.until = s.stride;
        }
        ++s.updates;
      }
      ++s.transactions;
      ++s.next;
    }
  }

  void settle() override {
    if (durability_ == Durability::async) wait_durable();
  }

  void supply(ReplayState& s, std::uint64_t passes) override {
    constexpr std::size_t together = 32;
    while (!s.strays.empty()) {
      const std::size_t n = std::min(together, s.strays.size());
      change({s.strays.end() - static_cast<std::ptrdiff_t>(n), n}, {}, 0);
      s.strays.resize(s.strays.size() - n);
    }
    s.stray_bytes = 0;
    for (std::size_t r = 0; r < s.ready.size(); ++r) {
      auto& blocks = s.ready[r];
      const std::size_t want = s.plan.ready[r].each_pass * passes;
      blocks.resize(std::max(want, s.left[r]));
      while (s.left[r] < want) {
        const std::size_t n = std::min(together, want - s.left[r]);
        change({}, {blocks.data() + s.left[r], n}, s.plan.ready[r].bytes);
        s.left[r] += n;
      }
    }
    wait_durable();  // so that none of it remains for the measured part
  }

  Stats stats() override { return pool_.stats(); }
  std::string describe_medium() override { return pool_.file().medium().describe(); }

 private:
  using OnePool = Pool<Root, engines<Instance>>;

  // Everything that is not measured is one update and one view: each update or view that an engine
  // instantiates costs the compiler a fifth of a second.

  /// Runs one transaction, perhaps not yet durable: frees `old`, starting with its last, and
  /// allocates `fresh`, blocks of `bytes` bytes; `to_root`: the last of them becomes the root's.
  void change(std::span<std::byte* const> old, std::span<std::byte*> fresh, std::uint64_t bytes,
              bool to_root = false) {
    pool_.update(Durability::async, [&](auto& tx, Root& root) {
      for (std::size_t i = old.size(); i > 0; --i) tx.free(old[i - 1]);
      for (std::byte*& block : fresh) block = tx.alloc(bytes);
      if (to_root) tx(root.arena) = reinterpret_cast<p<std::uint64_t>*>(fresh.back());
    });
  }
  /// Waits for everything that this thread has committed.
  void wait_durable() {
    pool_.view(Durability::durable, [](auto&, const Root&) { return 0; });
  }

  const Durability durability_;
  OnePool pool_;
};

template <class Instance>
bool is_named(const std::string& engine) {
  return std::any_of(Instance::names.begin(), Instance::names.end(),
                     [&](const auto& n) { return n.name == engine; });
}

template <class... Instances>
std::unique_ptr<ReplayPool> open_one_of(engines<Instances...>, const std::string& path,
                                        const Options& options) {
  std::unique_ptr<ReplayPool> pool;
  ((is_named<Instances>(options.engine) &&
    (pool = std::make_unique<Over<Instances>>(path, options))) ||
   ...);
  return pool;
}

}  // namespace replay_detail

template <class Family>
std::unique_ptr<ReplayPool> open_family(const std::string& path, const Options& options) {
  return replay_detail::open_one_of(Family(), path, options);
}

}  // namespace perdure::tool
