// SPDX-License-Identifier: BSD-3-Clause
#include "tools/store_pool.hpp"
#include "perdure/api/compiled_pool.hpp"
#include "perdure/pool/open_pool.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <utility>

#include "perdure/api/pool.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/progress.hpp"
#include "tools/raw_pool.hpp"
#include "tools/store.hpp"

namespace perdure::tool {
namespace {

/// The engines with which this command can make and open pools: it has one thread, so one instance
/// of each: the default engine, compiled into its transactions, and all others.
using ToolEngines = engines<shadow, any_engine>;
using StoredPool = Pool<Store, ToolEngines>;

/// Opening reads the whole log: a command should start at once.
constexpr std::uint64_t default_log = 16 << 20;
/// A scan runs in steps, so that f runs outside a transaction.
constexpr std::size_t rows_a_view = 256;

struct Pending {
  Receipt<void> receipt;
  std::uint64_t rows, position;
};

/// Thrown inside append's lambda to roll the transaction back.
struct RepeatFound {
  Repeat repeat;
};

Ack ack_of(const PoolArguments& arguments) {
  if (arguments.ack == "local") return Ack::local;
  if (arguments.replicate.empty())
    throw UsageError("found --ack " + arguments.ack + " without --replicate, expected both");
  if (arguments.ack == "shipped") return Ack::shipped;
  if (arguments.ack == "quorum") return Ack::quorum;
  // standby:N
  return perdure::standby(
      static_cast<unsigned>(std::stoul(arguments.ack.substr(arguments.ack.find(':') + 1))));
}

Options options_for(const PoolArguments& arguments, StorePool::Access access,
                    Durability durability) {
  Options o;
  o.create = access == StorePool::Access::create;
  o.read_only = access == StorePool::Access::read;
  o.engine = arguments.engine;
  o.medium = arguments.medium;
  o.medium_options.direct = !arguments.no_direct;
  o.durability = durability;
  o.creation.threads = 1;  // the whole log is one ring: a row may be half of it
  o.archive.folder = arguments.archive;
  o.replicate.log = arguments.replicate;
  o.replicate.beat_every =
      std::chrono::milliseconds(static_cast<std::int64_t>(arguments.beat * 1000));
  // Other commands may read meanwhile, and a load can wait for them.
  o.readers.writer_patience = std::chrono::seconds(1);
  if (arguments.max_size != 0) o.creation.max_size = arguments.max_size;
  o.creation.log_size = arguments.log_size != 0 ? arguments.log_size : default_log;
  return o;
}

}  // namespace

struct StorePool::Impl {
  StoredPool pool;
  const Ack ack;
  std::deque<Pending> pending;
  // Beside a writer: the one state that this object shows.
  std::optional<Snapshot<Store>> state;

  Impl(StoredPool p, Ack level) : pool(std::move(p)), ack(level) {
    if (pool.file().following()) state.emplace(pool.snapshot());
  }
  // A transaction that has got as far as was asked for.
  template <class F>
  auto change(F&& f) {
    auto receipt = pool.update(durable, f);
    receipt.wait(ack);
    return std::move(receipt).value();
  }
  template <class F>
  auto look(F&& f) {
    return state ? state->checked_view(f) : pool.checked_view(f);
  }
};

StorePool::StorePool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StorePool::StorePool(StorePool&&) noexcept = default;
StorePool::~StorePool() = default;

bool is_store(const pool::Header& header) {
  return header.fingerprint == layout_fingerprint<Store>();
}

StorePool StorePool::open(const PoolArguments& arguments, Access access, Durability durability,
                          std::function<void(const RecoveryProgress&)> told) {
  const Ack ack = ack_of(arguments);
  Options options = options_for(arguments, access, durability);
  options.recovery.progress = told ? std::move(told) : show_recovery(arguments.path);
  auto pool = StoredPool::try_open(arguments.path, options);
  if (access == Access::read && pool.code() == Code::read_only) {
    // The pool was not closed in order: recover it, which writes.
    options.read_only = false;
    pool = StoredPool::try_open(arguments.path, options);
    if (pool.code() == Code::read_only)
      throw error(
          failure(Code::read_only, arguments.path,
                  "a pool that was not closed in order, and no permission to write it",
                  "a cleanly closed pool, or one that may be written: its log has to be applied",
                  "run `perdure recover` on it as a user that may write it, then read it"));
  }
  return StorePool(std::make_unique<Impl>(std::move(pool).value(), ack));
}

void StorePool::close() {
  impl_->state.reset();
  (void)impl_->pool.close();
}
std::optional<std::uint64_t> StorePool::state() const {
  return impl_->state ? std::optional(impl_->state->id()) : std::nullopt;
}

std::future<void> StorePool::back_up(const std::string& path) {
  return std::async(std::launch::async,
                    [snapshot = impl_->pool.snapshot(), path] { snapshot.copy_to(path); });
}

std::future<void> StorePool::back_up_to_archive() {
  return std::async(std::launch::async, [pool = &impl_->pool, snapshot = impl_->pool.snapshot()] {
    (void)pool->backup(snapshot);
  });
}

engine::Stats StorePool::stats() const { return impl_->pool.stats(); }

bool StorePool::created() const { return impl_->pool.file().created(); }

// ---- rows ---------------------------------------------------------------------------------------

std::optional<StoredRow> StorePool::get(std::string_view key) {
  return impl_->look([&](auto& tx, const Store& store) { return find_row(tx, store, key); });
}

bool StorePool::put(std::string_view key, std::string_view bytes) {
  return impl_->change([&](auto& tx, Store& store) { return put_row(tx, store, key, bytes); });
}

bool StorePool::del(std::string_view key) {
  return impl_->change([&](auto& tx, Store& store) { return delete_row(tx, store, key); });
}

std::uint64_t StorePool::size() {
  return impl_->look([](auto& tx, const Store& store) { return store.rows.size(tx); });
}

void StorePool::scan(std::string_view from, const std::function<bool(const StoredRow&)>& f) {
  std::string next(from);
  for (;;) {
    const auto rows = impl_->look([&](auto& tx, const Store& store) {
      std::vector<StoredRow> some;
      for (auto c = store.index.lower_bound(tx, next); c && some.size() < rows_a_view; c.next(tx)) {
        some.push_back(row_at(tx, store, c.value(tx)));
      }
      return some;
    });
    for (const StoredRow& row : rows) {
      if (!f(row)) return;
    }
    if (rows.size() < rows_a_view) return;
    next = rows.back().key + '\0';  // the smallest text above it
  }
}

void StorePool::each_row(const std::function<bool(const StoredRow&)>& f) {
  std::uint64_t next = 0;
  for (;;) {
    const auto rows = impl_->look([&](auto& tx, const Store& store) {
      std::vector<StoredRow> some;
      for (auto c = store.rows.lower_bound(tx, next); c && some.size() < rows_a_view; c.next(tx)) {
        some.push_back(checked_row(c.value(tx), c.key(tx)));
      }
      return some;
    });
    for (const StoredRow& row : rows) {
      if (!f(row)) return;
    }
    if (rows.size() < rows_a_view) return;
    next = rows.back().number + 1;
  }
}

// ---- loading ------------------------------------------------------------------------------------

SourceState StorePool::source() {
  return impl_->look([](auto& tx, const Store& store) { return read_source(tx, store.source); });
}

void StorePool::begin_source(const SourceState& state) {
  impl_->pool
      .update(durable, [&](auto& tx, Store& store) { write_source(tx, store.source, state); })
      .wait(impl_->ack);
}

std::optional<Repeat> StorePool::append(std::span<const BatchRow> batch) {
  try {
    std::uint64_t rows = 0;  // the lambda may run again, so it only assigns to this
    auto receipt = impl_->pool.update([&](auto& tx, Store& store) {
      for (std::size_t i = 0; i < batch.size(); ++i) {
        const BatchRow& row = batch[i];
        if (append_row(tx, store, row.key, row.bytes, row.line)) continue;
        throw RepeatFound{{i, find_row(tx, store, row.key)->line}};
      }
      rows = tx(store.source.rows) + batch.size();
      tx(store.source.rows) = rows;
      tx(store.source.position) = batch.back().end_position;
      tx(store.source.line) = batch.back().end_line;
    });
    impl_->pending.push_back({std::move(receipt).at(impl_->ack), rows, batch.back().end_position});
    return std::nullopt;
  } catch (const RepeatFound& found) {
    return found.repeat;
  }
}

void StorePool::finish_source(std::string_view epilogue, std::uint64_t position,
                              std::uint64_t line) {
  std::uint64_t rows = 0;
  auto receipt = impl_->pool.update([&](auto& tx, Store& store) {
    store.source.epilogue.assign(tx, epilogue);
    tx(store.source.position) = position;
    tx(store.source.line) = line;
    tx(store.source.complete) = 1;
    rows = tx(store.source.rows);
  });
  impl_->pending.push_back({std::move(receipt).at(impl_->ack), rows, position});
}

StorePool::Settled StorePool::settle(std::size_t in_flight) {
  Settled settled;
  auto& pending = impl_->pending;
  while (!pending.empty() && (pending.size() > in_flight || pending.front().receipt.reached())) {
    pending.front().receipt.wait();
    settled = {pending.front().rows, pending.front().position, true};
    pending.pop_front();
  }
  return settled;
}

// ---- looking ------------------------------------------------------------------------------------

Json StorePool::describe() {
  const SourceState s = source();
  Json j;
  j["rows"] = size();
  j["edits"] = s.edits;
  if (!s.begun) return j;
  set_bytes(j, "source", s.path);
  j["source_bytes"] = s.identity.size;
  j["source_hash"] = fmt::format("{:016x}", s.identity.hash);
  j["cut"] = Spec::from_json(s.spec).value().describe();
  j["complete"] = s.complete;
  j["rows_loaded"] = s.rows;
  j["position"] = s.position;
  j["line"] = s.line;
  return j;
}

Json StorePool::check(bool& problems) {
  const CheckReport report = impl_->state ? impl_->state->check() : impl_->pool.check();
  std::vector<std::string> found = report.problems;
  if (impl_->state)  // a check of the pool compares its pages itself
    for (const DamagedPage& page : impl_->pool.scrub().damaged)
      found.push_back(pool::text_of(page));
  if (found.empty()) {
    auto more = impl_->look([](auto& tx, const Store& store) { return audit_store(tx, store); });
    found.insert(found.end(), more.begin(), more.end());
  }
  Json j;
  j["owned_blocks"] = report.reachable;
  j["leaked_blocks"] = report.leaked;
  j["blocks_used_twice"] = report.used_twice;
  j["rows"] = found.empty() ? size() : 0;
  j["problems"] = found;
  problems = !found.empty();
  return j;
}

}  // namespace perdure::tool
