// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a program of operations on a pool of one engine and on its model.
// After each transaction pool and model must have done the same; a failed one must have changed
// nothing; the state of a closed, killed or powered-off pool after reopening must lie between the
// last acknowledged one and the last one.
// Thread safety: one thread.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "testing/crashtest.hpp"
#include "testing/recording_medium.hpp"
#include "tests/engine/families.hpp"
#include "tests/fuzz/ops_perform.hpp"

namespace perdure::fuzz {

/// The result of a program on an engine.
struct Run {
  std::string problem;  ///< empty: none
  /// The results of the commands: on two engines with equal results the contents are equal, too.
  std::string outcomes;
  Model end;
};

/// A user's exception.
struct Oops {};

class Player {
  using ThisPool = Pool<Root, engines<any_engine>>;

 public:
  /// `tamper`, if given, is called after each command: a test of the fuzzer changes the pool there.
  template <class Tamper>
  static Run play(const engine::EngineInfo& entry, const Program& program, Tamper&& tamper) {
    Player player(entry, program);
    try {
      player.open({});
      for (const Command& c : program.commands) {
        ++player.at_;
        player.step(c);
        if (auto* pool = player.pool_ ? &*player.pool_ : nullptr) tamper(*pool, c);
      }
      player.look("at the end");
      player.check();
      player.run_.end = player.states_.back();
      player.reopen(Command::Kind::close, 0);
    } catch (const std::exception& e) {
      player.run_.problem =
          std::string(entry.name) + ", command " + std::to_string(player.at_) + ": " + e.what();
    }
    return std::move(player.run_);
  }

 private:
  Player(const engine::EngineInfo& entry, const Program& program)
      : entry_(entry),
        keeps_(test::is_durable(entry)),
        program_(program),
        plan_(program.plan),
        states_(1) {
    // REWIND logs more than a record per word, and the same again for a rollback.
    plan_.ring_bytes = test::is_rewind(entry)
                           ? std::max<std::uint64_t>(plan_.ring_bytes * 4, 1 << 18)
                           : test::ring_of_at_least(entry, plan_.ring_bytes);
  }

  void step(const Command& c) {
    using Kind = Command::Kind;
    char outcome = '.';
    switch (c.kind) {
      case Kind::update: outcome = update(c); break;
      case Kind::view: look("in a view"); break;
      case Kind::durable_view:
        pool_->view(durable, [](auto&, const Root&) {});
        acknowledged();
        break;
      case Kind::checkpoint: pool_->checkpoint(); break;
      case Kind::check: check(); break;
      case Kind::misuse: misuse(); break;
      default: outcome = reopen(c.kind, c.how); break;
    }
    medium_->forget_events();
    run_.outcomes += outcome;
  }

  void open(const std::vector<std::byte>& image) {
    medium::RecordingOptions o;
    const medium::CrashOptions like = crashtest::detail::medium_of(plan_);
    o.log_bytes = like.log_bytes;
    o.data_bytes = image.empty() ? like.data_bytes : image.size() - like.log_bytes;
    o.max_data_bytes = like.max_data_bytes;
    o.sparse = like.sparse;
    o.append_unit = like.append_unit;
    o.fence_is_sync = like.fence_is_sync;
    auto made = medium::RecordingMedium::make(o, image).value();
    medium_ = made.get();
    pool_.emplace(ThisPool::try_open_on("ops", crashtest::detail::options_of(plan_, entry_),
                                        std::move(made), image.empty())
                      .value());
  }

  /// Runs one transaction, with everything that may happen to it.
  char update(const Command& c) {
    Model next;
    Counts counts;
    const auto body = [&](auto& typed, Root& root) {
      next = states_.back();  // it may run again
      counts = {};
      this->body(typed, root, next, counts, c);
    };
    const Durability own = plan_.durability;
    const Durability asked = c.ask == Ask::pools_own ? own
                             : c.ask == Ask::durable ? durable
                             : c.ask == Ask::group   ? group
                                                     : async;
    char outcome = 'u';
    try {
      const auto receipt =
          c.ask == Ask::pools_own ? pool_->update(body) : pool_->update(asked, body);
      allocated_ += counts.allocated;
      states_.push_back(std::move(next));
      if (c.ask == Ask::async_and_wait) {
        receipt.wait();
        if (keeps_) same(receipt.durable(), true, "a receipt that was waited for is not durable");
      }
      if (asked != async || receipt.durable()) acknowledged();
      same(c.ending == Ending::commit || c.ending == Ending::swallowed, true,
           "an exception did not leave update()");
      return outcome;
    } catch (const Oops&) {
      outcome = 'o';
      same(c.ending == Ending::user_exception, true, "an exception of another transaction");
    } catch (const aborted&) {
      outcome = 'a';
      same(c.ending == Ending::abort, true, "aborted, unasked");
    } catch (const error& e) {
      outcome = e.code() == Code::full ? 'f' : 't';
      if (e.code() != Code::full && e.code() != Code::too_big) throw;
      // Sure bounds: a word costs at most a line and its entry, when it is appended alone; a roomy
      // heap has ten times its first spans.
      const std::uint64_t each = plan_.like_a_file ? 4096 + 128 : 128;
      if (e.code() == Code::too_big &&
          (counts.words + counts.heap_ops) * each + 4096 < plan_.ring_bytes / 4)
        throw Difference("a small transaction is called too big: " + std::string(e.what()));
      if (e.code() == Code::full && program_.roomy && allocated_ + counts.allocated < (32 << 20))
        throw Difference("an all but empty heap is called full: " + std::string(e.what()));
    }
    allocated_ += counts.allocated;
    look("after a transaction that was rolled back");
    return outcome;
  }

  template <class Typed>
  void body(Typed& typed, Root& root, Model& next, Counts& counts, const Command& c) {
    WordsOf<Typed> words(typed, counts);
    const auto some = [&](std::size_t from, std::size_t to) {
      Changes tx(words);
      for (std::size_t i = from; i < to; ++i) perform(tx, root, next, c.ops[i]);
    };
    const std::size_t middle = c.ops.size() / 2;
    some(0, middle);
    if (c.ending == Ending::swallowed) {
      try {  // what it changed before stays: nesting is flat
        pool_->update([&](auto&, Root&) {
          some(middle, middle + 1);
          throw Oops();
        });
      } catch (const Oops&) {}
      some(middle + 1, c.ops.size());
    } else if (c.half == Half::nested_update) {
      const auto nested = pool_->update([&](auto&, Root&) { some(middle, c.ops.size()); });
      same(nested.try_wait().code(), Code::invalid,
           "a nested update()'s receipt could be waited for");
    } else {
      if (c.half == Half::nested_view_first) {
        const std::string wrong =
            pool_->view([&](auto& inner, const Root& r) { return compare(inner, r, next); });
        if (!wrong.empty()) throw Difference("a view inside its transaction: " + wrong);
      }
      some(middle, c.ops.size());
    }
    if (c.ending == Ending::user_exception) throw Oops();
    if (c.ending == Ending::abort) perdure::abort(typed);
  }

  template <class Typed>
  static std::string compare(Typed& typed, const Root& root, const Model& model) {
    Counts counts;
    WordsOf<Typed> words(typed, counts);
    Reads tx(words);
    return difference(tx, root, model);
  }
  std::string compared(const Model& model) {
    return pool_->view([&](auto& tx, const Root& root) { return compare(tx, root, model); });
  }
  void look(const char* when) {
    const std::string wrong = compared(states_.back());
    if (!wrong.empty()) throw Difference(std::string(when) + ": " + wrong);
  }

  /// Pool::check(), its walk compiled once.
  void check() {
    const std::byte* const data = pool_->file().view();
    OwnedBlocks owned = pool_->view([&](auto& typed, const Root& root) {
      Counts counts;
      WordsOf<std::remove_reference_t<decltype(typed)>> words(typed, counts);
      Reads tx(words);
      return owned_blocks(tx, root, data, pool_->file().data_bytes());
    });
    CheckReport report =
        detail::compare_heap(pool_->file(), data, std::move(owned.offsets), owned.whole);
    report.problems.insert(report.problems.end(), owned.problems.begin(), owned.problems.end());
    if (!report.ok()) throw Difference("check: " + report.problems.front());
  }

  /// Operations that must be refused, and change nothing.
  void misuse() {
    refused([&] { pool_->view([&](auto&, const Root&) { pool_->update([](auto&, Root&) {}); }); },
            "update() inside view()");
    refused([&] { pool_->update([&](auto&, Root&) { pool_->checkpoint(); }); },
            "checkpoint() inside a transaction");
    refused([&] { pool_->update([&](auto&, Root&) { pool_->close(); }); },
            "close() inside a transaction");
    look("after what was refused");
  }

  void acknowledged() { states_.erase(states_.begin(), states_.end() - 1); }

  /// Ends this pool and opens what is left of it; after that its durability may be another one.
  char reopen(Command::Kind how, std::uint8_t then) {
    std::vector<std::byte> image;
    if (how == Command::Kind::kill) image = medium_->current_image();
    if (how == Command::Kind::power_cut) image = medium_->durable_image();
    if (how == Command::Kind::close) {
      pool_->close();
      image = medium_->durable_image();
      acknowledged();
    }
    pool_.reset();
    static constexpr Durability durabilities[] = {durable, group, async};
    if (then >= 4) plan_.durability = durabilities[then % 3U];
    open(image);
    if (!keeps_) states_.assign(1, Model());
    std::string newest;
    std::size_t lost = 0;
    for (;; ++lost) {  // finds the state, of those that are possible
      const std::string wrong = compared(states_[states_.size() - 1 - lost]);
      if (wrong.empty()) break;
      if (lost == 0) newest = wrong;
      if (lost + 1 == states_.size())
        throw Difference("reopened, it is in none of " + std::to_string(lost + 1) +
                         " states: " + newest);
    }
    states_.resize(states_.size() - lost);
    acknowledged();
    check();
    return keeps_ ? static_cast<char>('0' + lost) : 'v';
  }

  const engine::EngineInfo& entry_;
  const bool keeps_;
  const Program& program_;
  crashtest::Plan plan_;
  // The possible states after a crash; the last one is the present state.
  std::deque<Model> states_;
  std::uint64_t allocated_ = 0, at_ = 0;
  Run run_;
  medium::RecordingMedium* medium_ = nullptr;
  std::optional<ThisPool> pool_;
};

}  // namespace perdure::fuzz
