// SPDX-License-Identifier: BSD-3-Clause
//
// Stream: terms, what counts, what is acknowledged, and logs that lose or change messages: named,
// and nothing behind it is used.
#include "perdure/replication/stream.hpp"

#include <gtest/gtest.h>

#include "tests/replication/simulated_log.hpp"

namespace perdure::replication::test {
namespace {

constexpr std::uint8_t pool_uuid[16] = {1, 2, 3};

using Claim = Stream::Claim;
using State = Stream::State;

struct Reader {
  explicit Reader(std::shared_ptr<LogService> log, const StreamPlace& place = {})
      : stream(std::move(log), pool_uuid, place) {}
  Status read() { return stream.read(on_frame()); }
  Claim claim(std::string_view about = "a test", std::uint64_t instead_of = 0) {
    auto claimed = stream.claim(about, on_frame(), instead_of);
    EXPECT_TRUE(claimed.ok()) << claimed.status().message();
    return claimed.ok() ? *claimed : Claim::unknown;
  }
  Result<State> append(std::uint64_t id) {
    backup::FrameHeader h{};
    h.kind = backup::FrameKind::group;
    h.last = id;
    h.transactions = 1;
    return stream.append(h, &id, sizeof id);
  }
  Stream::OnFrame on_frame() {
    return [this](const backup::Frame& frame, const StreamPlace&) {
      if (frame.header.kind == backup::FrameKind::group)
        ids.push_back(frame.header.last);
      else
        abouts.emplace_back(reinterpret_cast<const char*>(frame.payload));
      return Status();
    };
  }
  Stream stream;
  std::vector<std::uint64_t> ids;
  std::vector<std::string> abouts;
};

using Ids = std::vector<std::uint64_t>;

TEST(Stream, APrimaryAppendsAndAReaderReads) {
  const auto log = std::make_shared<SimulatedLog>(1);
  Reader primary(log), reader(log);
  EXPECT_EQ(primary.claim("the first one"), Claim::primary);
  EXPECT_TRUE(primary.stream.primary());
  for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_EQ(primary.append(id).value(), State::in_log);
  EXPECT_TRUE(reader.read().ok());
  EXPECT_EQ(reader.ids, (Ids{1, 2, 3}));
  EXPECT_EQ(reader.abouts, std::vector<std::string>{"the first one"});
  EXPECT_EQ(reader.stream.place().sequence, 4U);
  EXPECT_EQ(reader.stream.place().term, 1U);
  EXPECT_EQ(reader.stream.place().end.chain, primary.stream.place().end.chain);
  // From a place on.
  Reader later(log, reader.stream.place());
  EXPECT_EQ(primary.append(9).value(), State::in_log);
  EXPECT_TRUE(later.read().ok());
  EXPECT_EQ(later.ids, Ids{9});
}

TEST(Stream, AClaimHasReadAllAndDeposes) {
  const auto log = std::make_shared<SimulatedLog>(1);
  Reader first(log), second(log);
  EXPECT_EQ(first.claim(), Claim::primary);
  EXPECT_EQ(first.append(1).value(), State::in_log);
  EXPECT_EQ(second.claim(), Claim::primary);
  EXPECT_EQ(second.ids, Ids{1});
  EXPECT_EQ(second.stream.place().term, 2U);
  EXPECT_EQ(first.append(2).value(), State::deposed);
  EXPECT_FALSE(first.stream.primary());
  EXPECT_FALSE(first.stream.under_way());
  EXPECT_EQ(second.append(3).value(), State::in_log);
  EXPECT_TRUE(first.read().ok());
  EXPECT_EQ(first.ids, Ids{3}) << "what it has appended itself is not read again";
  EXPECT_EQ(first.claim(), Claim::primary);
  EXPECT_EQ(first.stream.place().term, 3U);
}

TEST(Stream, OfTwoClaimsOneWins) {
  const auto log = std::make_shared<SimulatedLog>(1);
  // Both have read; the other one appends between this one's reading and its append.
  class Between final : public LogService {
   public:
    explicit Between(std::shared_ptr<SimulatedLog> log) : log_(std::move(log)) {}
    AppendAnswer append(std::uint64_t at, const void* bytes, std::uint64_t n) override {
      if (Reader* const one = std::exchange(other, nullptr)) {
        EXPECT_EQ(one->claim(), Claim::primary);
      }
      return log_->append(at, bytes, n);
    }
    Result<std::vector<Message>> read(std::uint64_t from, std::uint64_t bytes) override {
      return log_->read(from, bytes);
    }
    Result<LogEnds> ends() override { return log_->ends(); }
    Status trim(std::uint64_t below) override { return log_->trim(below); }
    Result<LogTraits> describe() override { return log_->describe(); }
    [[nodiscard]] const std::string& name() const noexcept override { return log_->name(); }
    Reader* other = nullptr;

   private:
    std::shared_ptr<SimulatedLog> log_;
  };
  const auto between = std::make_shared<Between>(log);
  Reader one(between), other(log);
  between->other = &other;
  EXPECT_EQ(one.claim(), Claim::lost);
  EXPECT_FALSE(one.stream.primary());
  EXPECT_EQ(other.append(1).value(), State::in_log);
}

// What a deposed writer without STREAM-1 could have left: a frame of an older term behind a TERM.
// A standby that takes over by itself does not depose another one that was faster.
TEST(Stream, AClaimMayBeInPlaceOfOneTermOnly) {
  const auto log = std::make_shared<SimulatedLog>(1);
  Reader first(log), second(log), third(log);
  ASSERT_EQ(first.claim(), Claim::primary);
  ASSERT_EQ(second.claim("the second", 1), Claim::primary);
  EXPECT_EQ(third.claim("the third", 1), Claim::lost);
  EXPECT_EQ(third.stream.place().term, 2U) << "it has read all";
  EXPECT_EQ(second.append(1).value(), State::in_log);
  EXPECT_EQ(third.claim("the third", 2), Claim::primary);
}

// A reader knows it from the last frame that it has read, also one that it had read before.
TEST(Stream, AReaderKnowsHowOftenTheWriterGivesASign) {
  const auto log = std::make_shared<SimulatedLog>(1);
  Reader writer(log), reader(log);
  writer.stream.say_beat(std::chrono::milliseconds(700));
  ASSERT_EQ(writer.claim(), Claim::primary);
  EXPECT_EQ(reader.stream.beat_ms(), 0U);
  EXPECT_TRUE(reader.read().ok());
  EXPECT_EQ(reader.stream.beat_ms(), 700U);
  writer.stream.say_beat(std::chrono::milliseconds(9));
  ASSERT_EQ(writer.append(1).value(), State::in_log);
  EXPECT_TRUE(reader.read().ok());
  EXPECT_EQ(reader.stream.beat_ms(), 9U);
  Reader again(log, reader.stream.place());
  EXPECT_TRUE(again.read().ok());
  EXPECT_EQ(again.stream.beat_ms(), 9U);
}

TEST(Stream, AFrameOfAnOlderTermIsVoid) {
  const auto log = std::make_shared<SimulatedLog>(1);
  Reader first(log), second(log), third(log);
  EXPECT_EQ(first.claim(), Claim::primary);
  EXPECT_EQ(first.append(1).value(), State::in_log);
  const StreamPlace before = first.stream.place();
  EXPECT_EQ(second.claim(), Claim::primary);
  std::vector<std::byte> late;
  backup::FrameHeader h{};
  h.kind = backup::FrameKind::group;
  std::copy(std::begin(pool_uuid), std::end(pool_uuid), h.uuid);
  h.term = 1;
  h.sequence = 4;
  h.last = 7;
  backup::HistoryEnd end = before.end;
  const std::uint64_t word = 7;
  backup::append_frame(late, h, &word, sizeof word, end);
  EXPECT_EQ(log->append(4, late.data(), late.size()).outcome, Append::done);
  EXPECT_EQ(second.append(2).value(), State::in_log) << "behind it";
  EXPECT_EQ(second.stream.voids(), 1U);
  EXPECT_TRUE(third.read().ok());
  EXPECT_EQ(third.ids, (Ids{1, 2}));
  EXPECT_EQ(third.stream.voids(), 1U);
}

TEST(Stream, AnAppendWithoutAnAnswerIsFoundOut) {
  Faults faults;
  faults.unanswered = 100;
  const auto log = std::make_shared<SimulatedLog>(1, faults);
  Reader one(log), reader(log);
  EXPECT_EQ(one.claim(), Claim::unknown);
  EXPECT_FALSE(one.stream.primary());
  EXPECT_EQ(one.claim(), Claim::unknown) << "another term";
  EXPECT_EQ(log->messages.size(), 2U);
  // Its own frames, made by hand for the second term.
  Stream writer(log, pool_uuid, {});
  EXPECT_TRUE(writer.read(reader.on_frame()).ok());
  EXPECT_EQ(writer.place().term, 2U);
  backup::FrameHeader h{};
  h.kind = backup::FrameKind::group;
  h.last = 5;
  const std::uint64_t word = 5;
  EXPECT_EQ(writer.append(h, &word, sizeof word).value(), State::under_way);
  EXPECT_TRUE(writer.under_way());
  EXPECT_FALSE(writer.why().ok());
  EXPECT_EQ(writer.settle().value(), State::in_log);
  EXPECT_FALSE(writer.under_way());
  EXPECT_EQ(log->messages.size(), 3U) << "once";
}

// A program that goes on without a claim, where another one is the primary.
TEST(Stream, AFrameOfTheSameTermThatAnotherOneMadeIsNamed) {
  const auto log = std::make_shared<SimulatedLog>(1);
  Reader primary(log), other(log);
  EXPECT_EQ(primary.claim(), Claim::primary);
  EXPECT_TRUE(other.read().ok());
  EXPECT_EQ(other.append(1).value(), State::in_log);
  const auto state = primary.append(2);
  EXPECT_EQ(state.code(), Code::corrupt);
  EXPECT_NE(state.status().message().find("did not make"), std::string::npos)
      << state.status().message();
  EXPECT_EQ(primary.stream.place().sequence, 1U);
}

class Damage : public ::testing::Test {
 protected:
  Damage() {
    Reader primary(log);
    EXPECT_EQ(primary.claim(), Claim::primary);
    for (std::uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(primary.append(id).value(), State::in_log);
    place = primary.stream.place();
  }
  /// A reader from the beginning must name message `at`, and get what is before it alone.
  void expect_named(std::uint64_t at, const char* what) {
    Reader reader(log);
    const Status s = reader.read();
    EXPECT_EQ(s.code(), Code::corrupt) << what << ": " << s.message();
    EXPECT_NE(s.message().find("message " + std::to_string(at)), std::string::npos) << s.message();
    EXPECT_EQ(reader.stream.place().sequence, at - 1) << what;
    EXPECT_EQ(reader.ids.size(), at < 2 ? 0 : at - 2) << what;
    EXPECT_FALSE(reader.read().ok()) << "it stays so";
    EXPECT_FALSE(reader.stream.claim("no", reader.on_frame()).ok()) << what;
  }
  const std::shared_ptr<SimulatedLog> log = std::make_shared<SimulatedLog>(1);
  StreamPlace place;
};

TEST_F(Damage, EachFlippedBitOfAGroupIsNamed) {
  for (std::size_t bit = 0; bit < log->messages[2].size() * 8; ++bit) {
    auto& byte = log->messages[2][bit / 8];
    const std::byte flip{static_cast<unsigned char>(1U << bit % 8)};
    byte ^= flip;
    Reader reader(log);
    const Status s = reader.read();
    // The term of a frame can look like an older one: then what follows does not continue it.
    EXPECT_FALSE(s.ok()) << "bit " << bit;
    EXPECT_EQ(reader.ids, Ids{1}) << "bit " << bit;
    byte ^= flip;
  }
}

TEST_F(Damage, AMessageThatIsMissingTwiceOrOutOfOrderIsNamed) {
  const auto whole = log->messages;
  log->messages.erase(log->messages.begin() + 2);
  expect_named(3, "missing");
  log->messages = whole;
  log->messages.insert(log->messages.begin() + 2, whole[1]);
  expect_named(3, "twice");
  log->messages = whole;
  std::swap(log->messages[2], log->messages[3]);
  expect_named(3, "swapped");
  log->messages = whole;
  log->messages[2].resize(40);
  expect_named(3, "cut short");
}

// It chains, and has a term that nobody has begun, or begins one that has begun already.
TEST_F(Damage, AFrameOfATermThatDoesNotFollowIsNamed) {
  const auto whole = log->messages;
  const struct {
    backup::FrameKind kind;
    std::uint64_t term;
  } frames[] = {{backup::FrameKind::group, 2}, {backup::FrameKind::term, 1}};
  for (const auto& [kind, term] : frames) {
    log->messages = whole;
    std::vector<std::byte> message;
    backup::FrameHeader h{};
    h.kind = kind;
    std::copy(std::begin(pool_uuid), std::end(pool_uuid), h.uuid);
    h.term = term;
    h.sequence = whole.size() + 1;
    h.last = place.end.last;
    backup::HistoryEnd end = place.end;
    backup::append_frame(message, h, nullptr, 0, end);
    log->messages.push_back(message);
    expect_named(whole.size() + 1, "a term that does not follow");
  }
}

TEST_F(Damage, AnotherPoolsLogIsNamed) {
  constexpr std::uint8_t another[16] = {9};
  Stream stream(log, another, {});
  const Status s = stream.read([](const backup::Frame&, const StreamPlace&) {
    ADD_FAILURE();
    return Status();
  });
  EXPECT_EQ(s.code(), Code::corrupt);
  EXPECT_NE(s.message().find("another pool"), std::string::npos) << s.message();
}

TEST_F(Damage, ALogThatForgotItsEndIsNamedByWhoReadIt) {
  log->messages.resize(3);
  Reader knows(log, place), reader(log);
  EXPECT_EQ(knows.read().code(), Code::not_found);
  EXPECT_FALSE(knows.stream.claim("no", knows.on_frame()).ok());
  // Another one goes on from what there is.
  EXPECT_EQ(reader.claim(), Claim::primary);
  EXPECT_EQ(reader.append(3).value(), State::in_log);
  EXPECT_EQ(reader.append(4).value(), State::in_log);
  EXPECT_EQ(reader.append(5).value(), State::in_log);
  EXPECT_EQ(knows.read().code(), Code::corrupt) << "what follows continues another history";
  EXPECT_TRUE(knows.ids.empty());
}

TEST_F(Damage, ALogThatComparesNothingIsNamed) {
  log->compares_nothing = true;
  Reader one(log), other(log);
  EXPECT_EQ(one.claim(), Claim::primary);
  EXPECT_EQ(other.claim(), Claim::primary);
  // The service says that it is done; a reader sees a frame for another place.
  (void)one.append(5);
  Reader reader(log);
  EXPECT_EQ(reader.read().code(), Code::corrupt);
  EXPECT_EQ(reader.ids, (Ids{1, 2, 3, 4}));
}

TEST_F(Damage, WhatWasTrimmedIsExpired) {
  EXPECT_TRUE(log->trim(3).ok());
  Reader reader(log), later(log, place);
  EXPECT_EQ(reader.read().code(), Code::expired);
  EXPECT_TRUE(later.read().ok());
}

// A log that has lost its end, and has as many messages again.
TEST(Stream, AnotherFrameAtItsPlaceIsNamed) {
  const auto log = std::make_shared<SimulatedLog>(1);
  Reader primary(log), reader(log);
  EXPECT_EQ(primary.claim(), Claim::primary);
  for (std::uint64_t id = 1; id <= 2; ++id) EXPECT_EQ(primary.append(id).value(), State::in_log);
  EXPECT_TRUE(reader.read().ok());
  log->messages.resize(2);
  Reader other(log);
  EXPECT_EQ(other.claim(), Claim::primary);
  EXPECT_EQ(log->messages.size(), 3U);
  EXPECT_EQ(Reader(log, reader.stream.place()).read().code(), Code::corrupt);
  EXPECT_TRUE(Reader(log, other.stream.place()).read().ok());
}

// STREAM-6: what is larger than a message.
TEST(Stream, LargeFramesGoInPiecesAndCountAsAWhole) {
  const auto log = std::make_shared<SimulatedLog>(1);
  log->largest = sizeof(backup::FrameHeader) + 64;
  Reader primary(log, {}), other(log, {});
  EXPECT_EQ(primary.claim("short"), Claim::primary);
  std::vector<std::uint64_t> words(8 * 5 + 3);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = i * i;
  backup::FrameHeader h{};
  h.kind = backup::FrameKind::group;
  h.last = 7;
  h.transactions = 1;
  EXPECT_EQ(primary.stream.append(h, words.data(), words.size() * 8).value(), State::in_log);
  EXPECT_EQ(log->messages.size(), 1U + 6U);
  EXPECT_EQ(primary.append(8).value(), State::in_log);
  std::vector<std::vector<std::uint64_t>> read;
  Stream reader(log, pool_uuid, {});
  const auto take = [&](const backup::Frame& frame, const StreamPlace& after) {
    if (frame.header.kind != backup::FrameKind::group) return Status();
    const auto* const first = reinterpret_cast<const std::uint64_t*>(frame.payload);
    read.emplace_back(first, first + frame.header.payload_bytes / 8);
    EXPECT_EQ(after.sequence, read.size() == 1 ? 7U : 8U);
    return Status();
  };
  EXPECT_TRUE(reader.read(take).ok());
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0], words);
  // A primary that is lost after some pieces.
  log->messages.resize(4);
  EXPECT_TRUE(other.read().ok());
  EXPECT_EQ(other.ids, Ids{});
  EXPECT_EQ(other.stream.place().sequence, 4U);
  EXPECT_EQ(other.stream.resume_place().sequence, 1U);
  EXPECT_EQ(other.claim("short"), Claim::primary);
  EXPECT_EQ(other.stream.resume_place().sequence, 5U);
  EXPECT_EQ(other.append(9).value(), State::in_log);
  Reader late(log);
  EXPECT_TRUE(late.read().ok());
  EXPECT_EQ(late.ids, Ids{9});
  // Pieces that are void are no part of later ones.
  h.last = 10;
  EXPECT_EQ(other.stream.append(h, words.data(), words.size() * 8).value(), State::in_log);
  read.clear();
  Stream again(log, pool_uuid, {});
  EXPECT_TRUE(again
                  .read([&](const backup::Frame& frame, const StreamPlace&) {
                    const auto* const first = reinterpret_cast<const std::uint64_t*>(frame.payload);
                    if (frame.header.kind == backup::FrameKind::group)
                      read.emplace_back(first, first + frame.header.payload_bytes / 8);
                    return Status();
                  })
                  .ok());
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[1], words);
  // A piece is missing.
  log->messages.erase(log->messages.begin() + 2);
  EXPECT_EQ(Reader(log).read().code(), Code::corrupt);
}

// The answers to pieces are lost, and so are pieces.
TEST(Stream, PiecesAreSettledOneByOne) {
  const auto log = std::make_shared<SimulatedLog>(11, Faults{20, 20, 20, 20, 20});
  log->largest = sizeof(backup::FrameHeader) + 64;
  Reader primary(log);
  while (!primary.stream.primary()) (void)primary.stream.claim("short", primary.on_frame());
  std::vector<std::uint64_t> words(8 * 40);
  Ids all;
  for (std::uint64_t id = 1; id <= 50; ++id) {
    backup::FrameHeader h{};
    h.kind = backup::FrameKind::group;
    h.last = id;
    h.transactions = 1;
    all.push_back(id);
    auto state = primary.stream.append(h, words.data(), (id % 40 + 1) * 64);
    while (*state == State::under_way) {
      state = primary.stream.settle();
      ASSERT_TRUE(state.ok()) << state.status().message();
    }
    ASSERT_EQ(*state, State::in_log);
  }
  const auto plain = std::make_shared<SimulatedLog>(1);
  plain->messages = log->messages;
  Reader reader(plain);
  EXPECT_TRUE(reader.read().ok());
  EXPECT_EQ(reader.ids, all);
}

}  // namespace
}  // namespace perdure::replication::test
