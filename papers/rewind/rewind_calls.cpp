// SPDX-License-Identifier: BSD-3-Clause
#include "papers/rewind/rewind_calls.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "papers/rewind/instances.hpp"
#include "perdure/api/pool.hpp"
#include "perdure/api/running.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/pool/allocation.hpp"

namespace perdure::papers::rewind {
namespace {

using Running = detail::Running<rewind_none>;
using Transaction = Running::Engine::Transaction;

constexpr unsigned slot_bits = 12, place_bits = 20;
static_assert(base::max_threads <= 1 << slot_bits);

/// The compositions as open_pool chooses among them: the first, for a new pool, is Optimized, whose
/// records are put in the log one by one.
std::vector<engine::EngineInfo> compositions() {
  std::vector<engine::EngineInfo> all;
  engine::add_entries<rewind_none>(all);
  std::stable_partition(all.begin(), all.end(), [](const engine::EngineInfo& e) {
    return e.family == "rewind-1l-nfp-optimized";
  });
  return all;
}

detail::Opened open(const std::string& path, Options options, const detail::RootType& root,
                    std::unique_ptr<medium::Medium> medium) {
  options.isolation = Isolation::caller;
  if (!options.engine.empty() && !options.engine.ends_with("/none")) options.engine += "/none";
  const bool fresh = medium != nullptr;
  const auto all = compositions();
  return detail::open_pool(path, options, all, root, std::move(medium), fresh).value();
}

error not_running(TransactionId tID) {
  return error(failure(
      Code::invalid, "",
      "transaction " + std::to_string(tID) + ", which is not running, or is another thread's",
      "an ID that getNextID() gave to this thread, before its commit or rollback"));
}

}  // namespace

struct RewindCalls::State {
  explicit State(detail::Opened opened) : running(std::move(opened)) {}

  /// A thread's transactions. An ID consists of the number of transactions that the thread had
  /// begun, the place, and the thread's slot.
  struct alignas(128) Own {
    struct One {
      std::unique_ptr<Transaction> transaction;
      TransactionId id = 0;
    };
    std::vector<One> all;
    std::vector<std::size_t> idle;
    std::uint64_t begun = 0;
  };

  Own& own() { return threads[static_cast<std::size_t>(base::thread_slot())]; }
  Own::One& one(TransactionId tID) {
    Own& mine = own();
    const std::uint64_t place = tID >> slot_bits & ((1 << place_bits) - 1);
    if (tID == 0 || place >= mine.all.size() || mine.all[place].id != tID) throw not_running(tID);
    return mine.all[place];
  }
  void ended(Own::One& one) {
    own().idle.push_back(static_cast<std::size_t>(&one - own().all.data()));
    one.id = 0;
  }
  std::uint64_t* word(std::uint64_t* address) {
    const auto offset = reinterpret_cast<std::uintptr_t>(address) -
                        reinterpret_cast<std::uintptr_t>(running.file().view());
    const pool::Header& header = running.file().header();
    if (!pool::possible_words(offset, 1, header.data_bytes, header))
      throw error(failure(Code::invalid, running.file().path(),
                          "an address that is no word of the pool",
                          "one in root(), or in an allocated block"));
    return address;
  }
  /// Calls `f`, which returns whether there was log space, and makes some until there is. Throws
  /// error(full) where the disk has no space for more of the log.
  template <class F>
  void with_log_space(Transaction& transaction, F&& f) {
    for (int left = 3; !f(); --left) {
      if (left == 0)
        throw error(failure(Code::full, running.file().path(),
                            "a log that running transactions fill", "log space for one more record",
                            "commit or roll back, or make the pool with a larger log_size"));
      engine::make_log_space(*running.engine, transaction, {AriesRecord::bytes});
    }
  }

  Running running;
  std::array<Own, base::max_threads> threads;
};

RewindCalls::RewindCalls(const std::string& path, const Options& options,
                         const detail::RootType& root, std::unique_ptr<medium::Medium> medium)
    : state_(std::make_unique<State>(open(path, options, root, std::move(medium)))) {}

RewindCalls::~RewindCalls() {
  // A forked child's copy is never destroyed.
  if (state_->running.inherited()) (void)state_.release();
  // A thread without a thread slot can roll nothing back: the next opening recovers.
  if (state_ == nullptr || state_->running.engine->core().state() != 0 ||
      !base::ensure_thread_slot().ok())
    return;
  for (auto& own : state_->threads)
    for (auto& one : own.all)
      if (one.id != 0) one.transaction->rollback();
  try {
    (void)state_->running.close();
  } catch (...) {  // the next opening recovers
  }
}

void* RewindCalls::root_address() const noexcept {
  return state_->running.file().view() + state_->running.file().root_offset();
}

TransactionId RewindCalls::getNextID() {
  State::Own& own = state_->own();
  if (own.idle.empty()) {
    // Reserved first: ended() then never allocates. What is in `all` is in `idle` or runs.
    own.idle.reserve(own.all.size() + 1);
    own.all.push_back(
        {std::make_unique<Transaction>(*state_->running.engine, base::thread_slot()), 0});
    own.idle.push_back(own.all.size() - 1);
  }
  const std::size_t place = own.idle.back();
  own.all[place].transaction->begin(true);
  own.idle.pop_back();
  return own.all[place].id = (++own.begun << place_bits | place) << slot_bits |
                             static_cast<std::uint64_t>(base::thread_slot());
}

void RewindCalls::log_word(TransactionId tID, const LoggedWord& update, std::uint64_t old_value) {
  auto& one = state_->one(tID);
  const std::uint64_t found = *state_->word(update.address);
  if (found != old_value)
    throw error(failure(
        Code::invalid, state_->running.file().path(), "a word of value " + std::to_string(found),
        "the old value " + std::to_string(old_value), "call log() before the store"));
  state_->with_log_space(*one.transaction,
                         [&] { return one.transaction->log(update.address, update.new_value); });
  one.transaction->end_group();
}

void RewindCalls::group(TransactionId tID, std::initializer_list<LoggedWord> updates) {
  auto& one = state_->one(tID);
  for (const LoggedWord& u : updates) {
    (void)state_->word(u.address);
    state_->with_log_space(*one.transaction,
                           [&] { return one.transaction->log(u.address, u.new_value); });
  }
  one.transaction->end_group();
}

void RewindCalls::commit(TransactionId tID) {
  auto& one = state_->one(tID);
  state_->with_log_space(*one.transaction, [&] {
    try {
      one.transaction->commit(Durability::durable);
      return true;
    } catch (const engine::LogFull&) {
      one.transaction->room_made();
      return false;
    }
  });
  state_->ended(one);
}

void RewindCalls::rollback(TransactionId tID) {
  auto& one = state_->one(tID);
  one.transaction->rollback();
  state_->ended(one);
  if (state_->running.engine->core().state() != 0) state_->running.engine->core().refuse();
}

void* RewindCalls::allocate(TransactionId tID, std::uint64_t bytes) {
  return state_->one(tID).transaction->alloc(bytes);
}

void RewindCalls::deallocate(TransactionId tID, void* block) {
  state_->one(tID).transaction->free(block);
}

void RewindCalls::checkpoint() { state_->running.checkpoint().or_throw(); }

pool::OpenPool& RewindCalls::file() noexcept { return state_->running.file(); }

engine::Stats RewindCalls::stats() { return state_->running.engine->stats(); }

void RewindCalls::close() {
  std::size_t left = 0;
  for (const auto& own : state_->threads) left += own.all.size() - own.idle.size();
  if (left != 0)
    throw error(failure(Code::invalid, state_->running.file().path(),
                        std::to_string(left) + " running transactions", "none",
                        "commit or roll back first"));
  state_->running.close().or_throw();
}

}  // namespace perdure::papers::rewind
