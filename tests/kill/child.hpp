// SPDX-License-Identifier: BSD-3-Clause
//
// The process that is killed: opens the pool (recovering what the previous one left), compares it
// with the model, then works until it is killed.
//
// Tested laws: LAW-1 (the recovered transactions are closed: exactly the model's state after n <=
// done[t], the shared parts in the journal's order; with `prefix` no id below a recovered one is
// missing), LAW-2 (acked <= done), LAW-3 (nothing of a transaction that threw), LAW-4 (the sum of
// the accounts in every view), LAW-5 (the digest of a first recovery), LAW-6 (check(): no leak, no
// double use).
// Thread safety: run() starts its own threads.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "perdure/medium/file_handle.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/open_pool.hpp"
#include "tests/kill/killing_medium.hpp"
#include "tests/kill/shared.hpp"
#include "tests/kill/workload.hpp"

namespace perdure::kill {

using Engines = engines<any_engine>;

/// The task of one child.
struct Task {
  std::string path;
  Options options;
  Shape shape;
  std::uint64_t seed = 0;         ///< of this cycle: durabilities, when to check
  bool work = true;               ///< false: open, verify, wait to be killed
  std::uint64_t close_after = 0;  ///< transactions per thread, then close(); 0: never
  /// The call of the medium in which it kills itself, counted from the opening; 0: never.
  std::uint64_t kill_at = 0;
  std::uint64_t kill_at_work = 0;  ///< the same, counted from the first transaction
  std::uint64_t digest = 0;        ///< not 0: the result of a recovery of a copy of this pool
};

template <class Container>
class Child {
 public:
  using RootType = Root<Container>;
  using PoolType = Pool<RootType, Engines>;
  using ModelType = Model<Container>;

  Child(Shared& shared, const Task& task, ModelType model)
      : shared_(shared), task_(task), model_(std::move(model)) {}

  /// Does not return: exit status 0 after close(), 2 with the reason in the shared page.
  [[noreturn]] void run() {
    try {
      shared_.phase.store(opening);
      const bool closed_before = shared_.clean.exchange(0) != 0;
      PoolType pool = open();
      shared_.phase.store(opened);
      const Stats stats = pool.stats();
      if (closed_before && !stats.recovery.was_clean)
        bad("the pool was closed, and opening had to recover");
      shared_.records.fetch_add(stats.recovery.records);
      shared_.unclean.fetch_add(stats.recovery.was_clean ? 0 : 1);
      verify(pool);
      if (!shared_.error[0]) work(pool);
      if (!shared_.error[0]) {
        shared_.phase.store(closing);
        const CloseReport report = pool.close();
        if (!report.clean) bad("close() reports that the pool is not clean");
        shared_.clean.store(1);
        shared_.phase.store(closed);
      }
    } catch (const std::exception& e) {
      bad(std::string("in phase ") + phase_names[shared_.phase.load()] + ": " + e.what());
    }
    ::_exit(shared_.error[0] ? 2 : 0);
  }

  /// Computes the result of a recovery of the pool at task.path; the pool is left as a kill leaves
  /// it.
  [[noreturn]] void only_digest() {
    try {
      PoolType pool = PoolType::open(task_.path, task_.options);
      ModelType found;
      read(pool, found);
      shared_.digest.store(digest_of(found));
    } catch (const std::exception& e) {
      bad(std::string("recovering a copy: ") + e.what());
    }
    ::_exit(shared_.error[0] ? 2 : 0);
  }

 private:
  void bad(const std::string& text) {
    if (!shared_.error[0]) shared_.fail(text);
  }

  PoolType open() {
    if (task_.kill_at == 0 && task_.kill_at_work == 0)
      return PoolType::open(task_.path, task_.options);
    const medium::Descriptor fd(::open(task_.path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto found = pool::read_header(task_.path, fd.get());
    medium::OpenMedium how;
    how.path = task_.path;
    how.kind = task_.options.medium;
    how.log_bytes = found.value().header.log_bytes;
    how.data_bytes = found.value().header.data_bytes;
    how.max_data_bytes = found.value().header.max_data_bytes;
    auto killing = std::make_unique<KillingMedium>(medium::open_medium(how).value(), task_.kill_at);
    killing_ = killing.get();
    return PoolType::try_open_on(task_.path, task_.options, std::move(killing), false).value();
  }

  // --- comparing ---------------------------------------------------------------------------------

  static void read(PoolType& pool, ModelType& found) {
    pool.view([&](auto& tx, const RootType& root) {
      found = ModelType();
      found.ready = tx(root.ready) != 0;
      for (int t = 0; t < 2; ++t) found.done[t] = tx(root.done[t].n);
      for (int i = 0; i < accounts; ++i) found.account[i] = tx(root.account[i].balance);
      root.journal.for_each(tx, [&](std::uint64_t e) { found.journal.push_back(e); });
      contents(tx, root.data, found.data);
      contents(tx, root.common, found.common);
    });
  }
  template <class Tx>
  static void contents(Tx& tx, const Container& c, typename ModelType::Contents& to) {
    if constexpr (is_vector<Container>)
      c.for_each(tx, [&](const std::string& v) { to.push_back(v); });
    else
      c.for_each(tx, [&](std::uint64_t k, const std::string& v) { to.emplace(k, v); });
    if (to.size() != c.size(tx))
      throw error(Status(Code::corrupt, "size() is " + std::to_string(c.size(tx)) +
                                            ", but iteration meets " + std::to_string(to.size()) +
                                            " different elements"));
  }

  static std::uint64_t digest_of(const ModelType& m) {
    std::uint64_t h = 1;
    const auto add = [&](std::uint64_t v) { h = base::mix(h ^ v) + v; };
    const auto text = [&](const std::string& s) { add(base::hash_bytes(s.data(), s.size(), 7)); };
    add(m.ready), add(m.done[0]), add(m.done[1]);
    for (const auto a : m.account) add(static_cast<std::uint64_t>(a));
    for (const auto e : m.journal) add(e);
    for (const auto* c : {&m.data, &m.common}) {
      add(c->size());
      for (const auto& e : *c) {
        if constexpr (is_vector<Container>)
          text(e);
        else
          add(e.first), text(e.second);
      }
    }
    return h == 0 ? 1 : h;
  }

  void verify(PoolType& pool) {
    ModelType found;
    read(pool, found);
    const auto number = [](std::uint64_t n) { return std::to_string(n); };
    for (std::uint64_t t = 0; t < 2; ++t) {
      const std::uint64_t n = found.done[t], acked = shared_.acked[t].load(),
                          issued = shared_.issued[t].load();
      if (n < acked)
        return bad("LAW-2: thread " + number(t) + ": transaction " + number(acked) +
                   " was acknowledged as durable, the pool ends at " + number(n));
      if (n > issued)
        return bad("thread " + number(t) + ": the pool holds transaction " + number(n) +
                   ", but only " + number(issued) + " were begun");
      if (n != 0 && Plan(task_.shape, t, n).throws)
        return bad("LAW-3: thread " + number(t) + ": the pool holds transaction " + number(n) +
                   ", which was rolled back");
    }
    if (model_.ready && !found.ready) return bad("LAW-2: the set-up is lost");
    if (found.ready && !model_.ready) set_up(model_);
    const std::size_t before = model_.journal.size();
    if (!replay(found)) return;
    compare(found);
    if (shared_.error[0]) return;
    if (pool.header().order == pool::CommitOrder::pipelined) prefix(found);
    const std::uint64_t digest = digest_of(found);
    if (task_.digest != 0 && digest != task_.digest)
      return bad(
          "LAW-5: recovery after recoveries that were killed came to another state than recovery "
          "at "
          "once");
    const CheckReport report = pool.check();
    if (!report.ok())
      return bad("LAW-6: check(): " + number(report.problems.size()) +
                 " problems, the first: " + report.problems.front());
    if (report.blocks != report.reachable)
      return bad("LAW-6: check(): " + number(report.blocks) + " blocks are allocated, " +
                 number(report.reachable) + " owned");
    if (shared_.error[0]) return;

    for (std::size_t t = 0; t < 2; ++t) {
      shared_.recovered[t].store(found.done[t]);
      shared_.acked[t].store(found.done[t]);  // recovery has made it durable
      shared_.issued[t].store(found.done[t]);
      shared_.first[t].store(found.done[t] + 1);
    }
    for (std::size_t i = before; i < model_.journal.size(); ++i)
      shared_.journal[i - before].store(model_.journal[i]);
    shared_.journal_entries.store(model_.journal.size() - before);
    shared_.ready.store(found.ready);
    shared_.digest.store(digest);
    shared_.phase.store(verified);
  }

  // Brings the model to the state that the pool claims to have. Returns false, with the reason,
  // when the journal can't be right.
  bool replay(const ModelType& found) {
    const std::size_t old = model_.journal.size();
    if (found.journal.size() < old) return bad("the journal has lost entries"), false;
    for (std::size_t i = 0; i < old; ++i)
      if (found.journal[i] != model_.journal[i])
        return bad("the journal differs at entry " + std::to_string(i)), false;
    if (found.journal.size() - old > Shared::remembered)
      return bad("the journal grew by more than a session's"), false;
    std::vector<std::uint64_t> expected[2], met[2];
    for (std::uint64_t t = 0; t < 2; ++t) {
      for (std::uint64_t n = model_.done[t] + 1; n <= found.done[t]; ++n) {
        const Plan plan(task_.shape, t, n);
        if (plan.shares && !plan.throws) expected[t].push_back(n);
      }
    }
    for (std::size_t i = old; i < found.journal.size(); ++i)
      met[found.journal[i] >> 63].push_back(found.journal[i] & ~(std::uint64_t{1} << 63));
    for (std::uint64_t t = 0; t < 2; ++t)
      if (met[t] != expected[t])
        return bad("LAW-1: thread " + std::to_string(t) +
                   ": the journal's entries are not those of its transactions up to " +
                   std::to_string(found.done[t])),
               false;
    for (std::uint64_t t = 0; t < 2; ++t)
      for (std::uint64_t n = model_.done[t] + 1; n <= found.done[t]; ++n)
        play_own(task_.shape, t, n, model_);
    for (std::size_t i = old; i < found.journal.size(); ++i)
      play_shared(task_.shape, found.journal[i], model_);
    return true;
  }

  void compare(const ModelType& found) {
    for (int i = 0; i < accounts; ++i)
      if (found.account[i] != model_.account[i])
        return bad("LAW-1: account " + std::to_string(i) + " holds " +
                   std::to_string(found.account[i]) + ", expected " +
                   std::to_string(model_.account[i]));
    same(found.data, model_.data, "data");
    same(found.common, model_.common, "common");
  }
  void same(const typename ModelType::Contents& found, const typename ModelType::Contents& expected,
            const std::string& what) {
    if (found == expected) return;
    std::string text = "LAW-1: " + what + ": " + std::to_string(found.size()) +
                       " elements, expected " + std::to_string(expected.size());
    const auto show = [](const std::string& s) {
      return s.size() < 80 ? "'" + s + "'"
                           : "'" + s.substr(0, 40) + "...' of " + std::to_string(s.size());
    };
    if constexpr (is_vector<Container>) {
      for (std::size_t i = 0; i < found.size() && i < expected.size(); ++i)
        if (found[i] != expected[i])
          return bad(text + "; element " + std::to_string(i) + " is " + show(found[i]) +
                     ", expected " + show(expected[i]));
    } else {
      for (const auto& [k, v] : expected)
        if (const auto it = found.find(k); it == found.end() || it->second != v)
          return bad(text + "; key " + std::to_string(k) + " is " +
                     (it == found.end() ? "missing" : show(it->second)) + ", expected " + show(v));
    }
    bad(text);
  }

  // With `prefix`: every missing transaction has an id above all present ones.
  void prefix(const ModelType& found) {
    for (std::size_t t = 0; t < 2; ++t) {
      for (std::size_t u = 0; u < 2; ++u) {
        std::uint64_t next = found.done[u] + 1;
        while (Plan(task_.shape, u, next).throws) ++next;
        const std::uint64_t there = id_of(t, found.done[t]), missing = id_of(u, next);
        if (there != 0 && missing != 0 && missing < there)
          return bad("LAW-1: transaction " + std::to_string(missing) + " is missing, yet " +
                     std::to_string(there) + " was recovered (order: pipelined)");
      }
    }
  }
  std::uint64_t id_of(std::size_t t, std::uint64_t n) const {
    const std::uint64_t first = shared_.first[t].load(), last = shared_.issued[t].load();
    return n < first || n > last || n + Shared::remembered <= last
               ? 0
               : shared_.ids[t][n % Shared::remembered].load();
  }

  // --- working -----------------------------------------------------------------------------------

  void work(PoolType& pool) {
    if (!task_.work)
      for (;;) ::pause();
    if (!model_.ready)
      pool.update(durable, [](auto& tx, RootType& root) { set_up<Container>(tx, root); });
    for (auto& row : shared_.ids)
      for (auto& id : row) id.store(0, std::memory_order_relaxed);
    if (task_.kill_at_work != 0) killing_->arm(task_.kill_at_work);
    shared_.phase.store(working);
    const auto guarded = [&](std::uint64_t t) {
      try {
        thread(pool, t);
      } catch (const std::exception& e) {
        bad("thread " + std::to_string(t) + " at transaction " +
            std::to_string(shared_.issued[t].load()) + ": " + e.what());
        ::_exit(2);
      }
    };
    std::vector<std::thread> others;
    for (std::uint64_t t = 1; t < task_.shape.threads; ++t) others.emplace_back(guarded, t);
    guarded(0);
    for (auto& o : others) o.join();
  }

  void thread(PoolType& pool, std::uint64_t t) {
    Random r(task_.seed, t, 0, 9);
    std::deque<std::pair<std::uint64_t, ReceiptBase>> open;
    const auto ack = [&](std::uint64_t of, std::uint64_t n) {
      // A view of the other thread may acknowledge for this one.
      std::uint64_t seen = shared_.acked[of].load();
      while (seen < n && !shared_.acked[of].compare_exchange_weak(seen, n)) {}
    };
    std::uint64_t n = model_.done[t];
    for (std::uint64_t count = 0; task_.close_after == 0 || count < task_.close_after; ++count) {
      // It has enough to remember: the parent will kill the process.
      while (count == Shared::remembered - 1000) ::pause();
      shared_.ids[t][++n % Shared::remembered].store(0);
      shared_.issued[t].store(n);
      const std::uint64_t how = r.below(8);
      const Durability durability = how < 3 ? durable : how < 5 ? group : async;
      try {
        const Receipt<void> receipt = pool.update(durability, [&](auto& tx, RootType& root) {
          play<Container>(task_.shape, t, n, tx, root, [] { std::this_thread::yield(); });
        });
        shared_.ids[t][n % Shared::remembered].store(receipt.id());
        if (durability != async)
          ack(t, n);
        else
          open.emplace_back(n, receipt);
      } catch (const Thrown&) {}
      while (!open.empty() && (open.size() > 40 || open.front().second.durable())) {
        open.front().second.wait();
        ack(t, open.front().first);
        open.pop_front();
      }
      if (r.one_in(32)) look(pool, ack, r.one_in(2));
      if (t == 0 && r.one_in(16)) count_up(pool);
      if (r.one_in(400)) pool.checkpoint();
    }
  }

  void count_up(PoolType& pool) {
    const Stats s = pool.stats();
    shared_.checkpoints.fetch_add(s.checkpoints - checkpoints_);
    shared_.growths.fetch_add(s.data_bytes != data_bytes_ && data_bytes_ != 0 ? 1 : 0);
    checkpoints_ = s.checkpoints, data_bytes_ = s.data_bytes;
  }

  template <class Ack>
  void look(PoolType& pool, Ack& ack, bool wait) {
    std::uint64_t seen[2] = {0, 0};
    std::int64_t sum = 0;
    pool.view(wait ? durable : async, [&](auto& tx, const RootType& root) {
      sum = 0;
      for (const auto& a : root.account) sum += tx(a.balance);
      for (std::size_t t = 0; t < 2; ++t) seen[t] = tx(root.done[t].n);
    });
    if (sum != start_balance * accounts)
      throw error(Status(Code::corrupt,
                         "LAW-4: a view saw accounts of " + std::to_string(sum) + " in all"));
    // LAW-2: what a durable view saw is durable
    for (std::size_t t = 0; t < 2 && wait; ++t) ack(t, seen[t]);
  }

  Shared& shared_;
  const Task task_;
  ModelType model_;
  KillingMedium* killing_ = nullptr;
  std::uint64_t checkpoints_ = 0, data_bytes_ = 0;
};

}  // namespace perdure::kill
