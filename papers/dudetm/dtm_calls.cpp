// SPDX-License-Identifier: BSD-3-Clause
#include "papers/dudetm/dtm_calls.hpp"

#include <utility>
#include <vector>

#include "papers/dudetm/instances.hpp"
#include "perdure/api/pool.hpp"
#include "perdure/api/running.hpp"

namespace perdure::papers::dudetm {

class DtmCalls::State {
 public:
  using Running = detail::Running<perdure::dudetm>;
  using Transaction = Running::Engine::Transaction;
  State(detail::Opened opened, Durability how) : running(std::move(opened)), durability(how) {}
  [[nodiscard]] Transaction& transaction() { return running.engine->transaction(); }
  [[nodiscard]] const std::string& path() { return running.file().path(); }
  Transaction& inside(const char* call) {
    Transaction& c = transaction();
    if (!c.inside())
      throw error(failure(Code::invalid, path(), std::string(call) + " outside a transaction",
                          "a dtmBegin() on this thread before it"));
    return c;
  }
  /// Calls f(c). An exception rolls the transaction back, unless it reports wrong use.
  template <class F>
  decltype(auto) guarded(Transaction& c, F&& f) {
    try {
      return f(c);
    } catch (const engine::LogFull& full) {
      c.rollback();
      engine::make_log_space(*running.engine, c, full.needed);
      c.let_pages_go();
      throw DtmConflict();
    } catch (const tm::Conflict&) {
      c.rollback();
      throw DtmConflict();
    } catch (const error& e) {
      if (e.code() != Code::invalid) c.rollback();
      running.engine->core().poison_with_medium();
      throw;
    } catch (...) {
      c.rollback();
      throw;
    }
  }

  Running running;
  const Durability durability;
};

namespace {

detail::Opened open(const std::string& path, const Options& options, const detail::RootType& root,
                    std::unique_ptr<medium::Medium> medium) {
  std::vector<engine::EngineInfo> variants;
  engine::add_entries<perdure::dudetm>(variants);
  const bool fresh = medium != nullptr;
  return detail::open_pool(path, options, variants, root, std::move(medium), fresh).value();
}

}  // namespace

DtmCalls::DtmCalls(const std::string& path, const Options& options, const detail::RootType& root,
                   std::unique_ptr<medium::Medium> medium)
    : state_(std::make_unique<State>(open(path, options, root, std::move(medium)),
                                     options.durability)) {}

DtmCalls::~DtmCalls() {
  // In the child of a fork() the pool's thread is the parent's.
  if (state_->running.inherited()) (void)state_.release();
  if (state_ == nullptr || state_->running.engine->core().state() != 0) return;
  try {
    if (state_->transaction().inside()) state_->transaction().rollback();
    (void)state_->running.close();
  } catch (...) {  // the next opening recovers the pool
  }
}

void* DtmCalls::root_address() const noexcept {
  pool::OpenPool& file = state_->running.file();
  return file.view() + file.root_offset();
}

void DtmCalls::dtmBegin() {
  State::Transaction& c = state_->transaction();
  if (c.inside())
    throw error(failure(Code::invalid, state_->path(), "dtmBegin() inside a transaction",
                        "none open on this thread"));
  c.begin(true);
}

std::uint64_t DtmCalls::dtmEnd() {
  return state_->guarded(state_->inside("dtmEnd()"),
                         [this](State::Transaction& c) { return c.commit(state_->durability); });
}

void DtmCalls::dtmAbort() { state_->inside("dtmAbort()").rollback(); }

void DtmCalls::must_be_in_pool(const void* address, std::size_t n) {
  const auto data = reinterpret_cast<std::uintptr_t>(file().view()),
             at = reinterpret_cast<std::uintptr_t>(address);
  if (at < data || at - data + n > file().data_bytes())
    throw error(failure(Code::invalid, state_->path(), "an address that is not in the pool",
                        "one in root(), or in an allocated block"));
}

void DtmCalls::read(void* to, const void* source, std::size_t n) {
  State::Transaction& c = state_->inside("dtmRead()");
  must_be_in_pool(source, n);
  state_->guarded(c, [&](State::Transaction& transaction) {
    ReadTx<State::Transaction>(transaction).read_bytes(to, source, n);
  });
}

void DtmCalls::write(void* destination, const void* from, std::size_t n) {
  State::Transaction& c = state_->inside("dtmWrite()");
  must_be_in_pool(destination, n);
  state_->guarded(c, [&](State::Transaction& transaction) {
    Tx<State::Transaction>(transaction).write_bytes(destination, from, n);
  });
}

void* DtmCalls::pmalloc(std::size_t bytes) {
  return state_->guarded(state_->inside("pmalloc()"),
                         [&](State::Transaction& c) { return c.alloc(bytes); });
}

void DtmCalls::pfree(void* block) {
  state_->guarded(state_->inside("pfree()"), [&](State::Transaction& c) { c.free(block); });
}

void DtmCalls::again() noexcept { state_->transaction().backoff(); }

std::uint64_t DtmCalls::durableId() { return state_->running.engine->durable_id(); }

void DtmCalls::wait(std::uint64_t id) {
  auto& engine = *state_->running.engine;
  if (engine.durable_id() < id)
    // No thread would end a wait for an id that was not drawn.
    if (const std::uint64_t last = engine.stats().last_id; last < id)
      throw error(failure(Code::invalid, file().path(),
                          "a wait for transaction " + std::to_string(id),
                          "one that was committed: up to " + std::to_string(last),
                          "pass the id that a commit returned"));
  state_->running.wait_durable(id).or_throw();
}

engine::Stats DtmCalls::stats() { return state_->running.engine->stats(); }

pool::OpenPool& DtmCalls::file() noexcept { return state_->running.file(); }

void DtmCalls::close() {
  if (state_->transaction().inside())
    throw error(failure(Code::invalid, state_->path(), "an open transaction", "none",
                        "end or abort it first"));
  state_->running.close().or_throw();
}

}  // namespace perdure::papers::dudetm
