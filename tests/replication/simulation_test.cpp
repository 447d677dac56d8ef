// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of one pool over a log that loses, delays and doubles appends and shows old states, while
// copies crash, claim and commit in a random order that a seed decides. A copy is a list of
// transactions here, all of them durable: those that it knows to be in the log, and its own after
// them.
//
// Holds: each transaction's frame counts once, in exactly the state in which the transaction ran; a
// new primary has exactly the log's history; what was acknowledged is in the history of all.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>

#include "perdure/replication/stream.hpp"
#include "tests/replication/simulated_log.hpp"

namespace perdure::replication::test {
namespace {

constexpr std::uint8_t pool_uuid[16] = {1, 2, 3};

struct Transaction {
  std::uint64_t id, value, state;  ///< `state`: the hash of the state in which it ran
};
using History = std::vector<Transaction>;

std::uint64_t state_of(const History& history) {
  std::uint64_t h = 0;
  for (const Transaction& t : history) h = (h ^ t.value) * 0x100000001b3ULL + t.id;
  return h;
}

// What counts, by the definition of STREAM-2 alone.
History history_of(const SimulatedLog& log) {
  History all;
  std::uint64_t term = 0;
  backup::HistoryEnd end;
  for (const auto& message : log.messages) {
    const auto frame = backup::read_frame(message.data(), message.size(), "all");
    const backup::FrameHeader& h = frame.value().header;
    const bool is_term = h.kind == backup::FrameKind::term;
    if (!backup::continues(*frame, end) || (is_term ? h.term <= term : h.term != term)) continue;
    term = h.term;
    end = {h.last, h.unix_ns, h.chain};
    if (is_term) continue;
    const auto* const first = reinterpret_cast<const Transaction*>(frame->payload);
    for (std::uint32_t i = 0; i < h.transactions; ++i) {
      all.emplace_back();
      std::memcpy(&all.back(), first + i, sizeof(Transaction));
    }
  }
  return all;
}

struct Counts {
  std::uint64_t acknowledged = 0, primaries = 0, deposed = 0, diverged = 0, crashes = 0;
};

class Copy {
 public:
  Copy(unsigned number, std::shared_ptr<LogService> log, Counts& counts)
      : number_(number), log_(std::move(log)), counts_(counts), stream_(make()) {}

  void read() {
    const Status s = stream_->read(on_frame());
    ASSERT_TRUE(s.ok()) << s.message();
  }

  void claim(const SimulatedLog& log) {
    const auto claimed = stream_->claim(std::string(1, me()), on_frame());
    ASSERT_TRUE(claimed.ok()) << claimed.status().message();
    under_way_ = 0;
    if (*claimed != Stream::Claim::primary) return;
    ++counts_.primaries;
    ASSERT_EQ(state_of(history_of(log)), state_of(known())) << "a primary with another history";
    durable_ = {stream_->place(), known_, true};  // STREAM-5
  }

  void commit(std::uint64_t value) {
    if (!stream_->primary()) return;
    local_.push_back({local_.empty() ? 1 : local_.back().id + 1, value, state_of(local_)});
  }

  void append(std::set<std::uint64_t>& acknowledged) {
    if (!stream_->primary()) return;
    if (stream_->under_way()) return look_at(stream_->settle(), acknowledged);
    under_way_ = local_.size() - known_;
    if (under_way_ == 0) return;
    backup::FrameHeader h{};
    h.kind = backup::FrameKind::group;
    h.last = local_.back().id;
    h.transactions = static_cast<std::uint32_t>(under_way_);
    look_at(stream_->append(h, &local_[known_], under_way_ * sizeof(Transaction)), acknowledged);
  }

  /// Its transactions are durable; its place may be an older one.
  void crash() {
    ++counts_.crashes;
    known_ = durable_.known;
    stream_ = make();
    under_way_ = 0;
  }
  void keep() { durable_ = {stream_->place(), known_, durable_.primary}; }
  [[nodiscard]] bool primary() const { return stream_->primary(); }

 private:
  [[nodiscard]] char me() const { return static_cast<char>('0' + number_); }
  [[nodiscard]] History known() const {
    return {local_.begin(), local_.begin() + static_cast<std::ptrdiff_t>(known_)};
  }
  std::unique_ptr<Stream> make() {
    return std::make_unique<Stream>(log_, pool_uuid, durable_.place);
  }

  Stream::OnFrame on_frame() {
    return [this](const backup::Frame& frame, const StreamPlace& after) {
      if (frame.header.kind == backup::FrameKind::term) {
        if (std::to_integer<char>(frame.payload[0]) == me()) return Status();
        if (durable_.primary && local_.size() > known_) {  // STREAM-5
          ++counts_.diverged;
          local_.resize(known_);
        }
        durable_ = {after, known_, false};
        return Status();
      }
      const auto* const all = reinterpret_cast<const Transaction*>(frame.payload);
      for (std::uint32_t i = 0; i < frame.header.transactions; ++i) {
        Transaction t{};
        std::memcpy(&t, all + i, sizeof t);
        EXPECT_EQ(t.state, state_of(known())) << "a transaction in a state in which it did not run";
        if (known_ < local_.size())
          EXPECT_EQ(local_[known_].value, t.value) << "what it has is not what the log has";
        else
          local_.push_back(t);
        ++known_;
      }
      return Status();
    };
  }

  void look_at(const Result<Stream::State>& state, std::set<std::uint64_t>& acknowledged) {
    ASSERT_TRUE(state.ok()) << state.status().message();
    if (*state == Stream::State::deposed) ++counts_.deposed;
    if (*state != Stream::State::in_log) return;
    for (; under_way_ > 0; --under_way_) {
      acknowledged.insert(local_[known_++].value);
      ++counts_.acknowledged;
    }
  }

  const unsigned number_;
  const std::shared_ptr<LogService> log_;
  Counts& counts_;
  History local_;          // what it has
  std::size_t known_ = 0;  // local_[0, known_) is known to be in the log
  struct Durable {
    StreamPlace place;
    std::size_t known = 0;
    bool primary = false;  // it was one, of the place's term
  } durable_;
  std::size_t under_way_ = 0;  // in the frame that is under way
  std::unique_ptr<Stream> stream_;
};

void simulate(std::uint64_t seed, Counts& counts) {
  std::mt19937_64 random(seed);
  const auto rate = [&] { return static_cast<unsigned>(random() % 3 == 0 ? random() % 40 : 0); };
  Faults faults;
  faults.lost = rate();
  faults.late = rate();
  faults.unanswered = rate();
  faults.doubled = rate();
  faults.stale = rate();
  const auto log = std::make_shared<SimulatedLog>(seed, faults);
  std::vector<std::unique_ptr<Copy>> copies;
  for (unsigned i = 0; i < 3; ++i) copies.push_back(std::make_unique<Copy>(i, log, counts));
  std::set<std::uint64_t> acknowledged;
  std::uint64_t value = 0;
  for (int step = 0; step < 300; ++step) {
    Copy& copy = *copies[random() % copies.size()];
    const std::uint64_t what = random() % 100;
    if (what < 3)
      copy.claim(*log);
    else if (what < 5)
      copy.crash();
    else if (what < 10)
      copy.keep();
    else if (what < 30 && !copy.primary())
      copy.read();
    else if (what < 60)
      copy.commit(++value);
    else
      copy.append(acknowledged);
    if (::testing::Test::HasFailure()) return;
  }
  const History all = history_of(*log);
  std::set<std::uint64_t> values;
  for (const Transaction& t : all)
    ASSERT_TRUE(values.insert(t.value).second) << "transaction " << t.value << " counts twice";
  for (const std::uint64_t v : acknowledged)
    ASSERT_TRUE(values.contains(v)) << "transaction " << v << " was acknowledged, and is lost";
}

TEST(Simulation, NothingThatWasAcknowledgedIsLostAndNothingCountsTwice) {
  Counts counts;
  constexpr std::uint64_t seeds = 2000;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    simulate(seed, counts);
    if (HasFailure()) return;
  }
  // Each kind of event has happened often.
  for (const std::uint64_t n :
       {counts.primaries, counts.deposed, counts.diverged, counts.crashes, counts.acknowledged})
    EXPECT_GT(n, seeds / 10);
  std::printf("%llu acknowledged, %llu primaries, %llu deposed, %llu diverged, %llu crashes\n",
              static_cast<unsigned long long>(counts.acknowledged),
              static_cast<unsigned long long>(counts.primaries),
              static_cast<unsigned long long>(counts.deposed),
              static_cast<unsigned long long>(counts.diverged),
              static_cast<unsigned long long>(counts.crashes));
}

}  // namespace
}  // namespace perdure::replication::test
