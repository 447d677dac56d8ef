// SPDX-License-Identifier: BSD-3-Clause
//
// LAW-10 for the words that say how a log is read: every bit of each of them is flipped, zero
// words included, in pools that were killed with work in the log. Recovery refuses the damage, with
// its place and nothing written, or ends as it does without the flip; and it accesses nothing
// outside log and data region. tests/conformance/laws_test.cpp does the same for the records.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "papers/rewind/aries_record.hpp"
#include "perdure/log/control_word.hpp"
#include "perdure/log/record.hpp"
#include "testing/survive.hpp"
#include "tests/conformance/configurations.hpp"
#include "tests/engine/suite.hpp"
#include "tests/faults/guarded_medium.hpp"

namespace perdure::test {
namespace {

using faults::GuardedMemory;

struct Root {
  p<std::uint64_t> count;
  std::array<p<std::uint64_t>, 24> word;
  ptr<std::uint64_t> block;
};

/// Transaction n, from 1.
template <class Tx>
void step(Tx& tx, Root& r, std::uint64_t n) {
  tx(r.count) = n;
  for (std::uint64_t i = 0; i < 6; ++i) tx(r.word[(n * 7 + i) % 24]) = base::mix(n + i);
  if (std::uint64_t* const old = tx(r.block); old != nullptr) tx.free(old);
  tx(r.block) = reinterpret_cast<std::uint64_t*>(tx.alloc(16 + n % 5 * 100));
}

Shape shape_of(const EngineInfo& e) {
  Shape s;
  s.threads = 1;
  s.ring_bytes = conformance::small_ring(e, false);
  s.data_bytes = s.max_data_bytes = 8 * pool::chunk_bytes;
  return s;
}

/// The images that kills leave: between two transactions, and in the middle of one, at each fence.
std::vector<std::vector<std::byte>> killed(const EngineInfo& e, const Shape& shape) {
  medium::RecordingMedium* raw = nullptr;
  auto made = medium::RecordingMedium::make(shape.medium()).value();
  raw = made.get();
  Options options = shape.options(e);
  options.creation.uuid_seed = 11;
  auto pool = AnyPool<Root>::try_open_on("recording", options, std::move(made), true).value();
  std::uint64_t n = 0;
  const auto go_on = [&] {
    pool.update(durable, [&, n = ++n](auto& tx, Root& r) { step(tx, r, n); });
  };
  for (int i = 0; i < 5; ++i) go_on();
  std::vector<std::vector<std::byte>> images{raw->current_image()}, at_fences;
  raw->set_fence_hooks([&] { at_fences.push_back(raw->current_image()); }, {});
  go_on();
  raw->set_fence_hooks({}, {});
  for (const std::size_t part : {1, 3, 6}) images.push_back(at_fences[at_fences.size() * part / 7]);
  return images;
}

struct Outcome {
  Status status;
  State state;
  std::uint64_t last_id = 0;
  std::string died;
};

Outcome recover(const EngineInfo& e, GuardedMemory& memory) {
  Outcome o;
  o.died = crash::survive([&] {
    pool::OpenFile how;
    how.path = "guarded";
    pool::Identity who;
    who.engine = "any";
    who.engine_any = who.layout_any = true;
    auto file = pool::OpenPool::open_on(memory.open(), false, how, who);
    if (!file) {
      o.status = file.status();
      return;
    }
    engine::Recovery report;
    o.status = e.recover(**file, report);
    o.last_id = report.last_id;
    if (!o.status.ok()) return;
    std::vector<std::string> problems;
    o.state = state_of(memory.data(), (*file)->header(), &problems);
    if (!problems.empty())
      o.status = failure(Code::invalid, "", "an unsound pool: " + problems.front());
  });
  return o;
}

class ControlWords : public EngineTest {
 protected:
  struct Tally {
    std::uint64_t refused = 0, same = 0;
  };
  /// Flips the bit and recovers. `must_open`: another copy has everything that the flip has
  /// damaged.
  void flip(GuardedMemory& memory, const Outcome& whole, std::uint64_t offset, unsigned bit,
            bool must_open, Tally& tally) const {
    memory.restore();
    memory.flip(offset, bit);
    const Outcome o = recover(GetParam(), memory);
    const auto where = [&] {
      return "bit " + std::to_string(bit) + " of the word at " + std::to_string(offset) + ": ";
    };
    ASSERT_EQ("", o.died) << where();
    ASSERT_EQ(0U, memory.outside()) << where() << "bytes outside log and data region";
    if (o.status.ok()) {
      ++tally.same;
      ASSERT_TRUE(o.state == whole.state) << where() << "recovered to something else";
      ASSERT_EQ(whole.last_id, o.last_id) << where();
      return;
    }
    ++tally.refused;
    ASSERT_FALSE(must_open) << where() << o.status.message();
    ASSERT_EQ(Code::corrupt, o.status.code()) << where() << o.status.message();
    ASSERT_NE(std::string::npos, o.status.message().find("log offset"))
        << where() << o.status.message();
    ASSERT_EQ(0U, memory.stores()) << where() << "refused, and written to: " << o.status.message();
  }
  void flip_all(GuardedMemory& memory, const Outcome& whole, std::uint64_t offset, bool must_open,
                Tally& tally) {
    for (auto bit = static_cast<unsigned>(offset / 8 % scale); bit < 64 && !HasFatalFailure();
         bit += scale)
      flip(memory, whole, offset, bit, must_open, tally);
  }
};
ENGINE_SUITE(ControlWords, durable_ones);

TEST_P(ControlWords, OfTheHeader) {
  const Shape shape = shape_of(GetParam());
  GuardedMemory memory(killed(GetParam(), shape).back(), shape.medium().log_bytes);
  const Outcome whole = recover(GetParam(), memory);
  ASSERT_TRUE(whole.status.ok()) << whole.status.message();
  Tally tally;
  for (const std::uint64_t copy : {pool::header_a, pool::header_b})
    for (std::uint64_t at = 0; at < sizeof(pool::Header) && !HasFatalFailure();
         at += at < offsetof(pool::Header, ring_head) + 16 ? 8 : 776)
      flip_all(memory, whole, copy + at, true, tally);
  EXPECT_GT(tally.same, 2U * 31 * 64 / scale);
}

TEST_P(ControlWords, OfTheLog) {
  const Shape shape = shape_of(GetParam());
  const std::uint64_t log_bytes = shape.medium().log_bytes;
  if (!is_rewind(GetParam()) && !is_blurred(GetParam()) && !is_softwrap(GetParam()))
    GTEST_SKIP() << "its log has records alone";
  Tally tally;
  for (const auto& image : killed(GetParam(), shape)) {
    GuardedMemory memory(image, log_bytes);
    const Outcome whole = recover(GetParam(), memory);
    ASSERT_TRUE(whole.status.ok()) << whole.status.message();
    pool::Header header;
    std::memcpy(&header, &image[pool::header_a], sizeof header);
    const std::uint64_t begin = pool::ring_offset(header, 0), end = begin + header.ring_bytes;
    for (std::uint64_t at = begin; at < begin + 64 && !HasFatalFailure(); at += 8)
      flip_all(memory, whole, at, false, tally);
    if (!is_rewind(GetParam())) continue;
    // A list's nodes, an index's, buckets: every line except for the records, which have a checksum
    // over the whole record.
    const std::uint64_t seed = log::ring_seed(header.uuid, header.epoch, 0);
    for (std::uint64_t line = begin + 64; line < end && !HasFatalFailure(); line += 64) {
      papers::rewind::AriesRecord record;
      std::memcpy(&record, &image[line], sizeof record);
      const bool sealed = record.whole(seed, line);
      bool empty = true;
      for (const std::uint64_t w : record.words) empty = empty && w == 0;
      for (std::uint64_t at = line; at < line + 64 && !HasFatalFailure(); at += 8)
        if (sealed || empty)
          flip(memory, whole, at, static_cast<unsigned>(at / 8 * 11 % 64), false, tally);
        else
          flip_all(memory, whole, at, false, tally);
    }
  }
  EXPECT_GT(tally.refused, 500U / scale);
  std::printf("  %llu flips refused, %llu without consequence\n",
              static_cast<unsigned long long>(tally.refused),
              static_cast<unsigned long long>(tally.same));
}

/// What an earlier build would have left in place of this log of REWIND's: bare words, and the seed
/// as a stamp.
void make_first_form(std::vector<std::byte>& image, const pool::Header& header) {
  const std::uint64_t begin = pool::ring_offset(header, 0),
                      seed = log::ring_seed(header.uuid, header.epoch, 0);
  for (std::uint64_t line = begin; line < begin + header.ring_bytes; line += 64) {
    papers::rewind::AriesRecord words;
    std::memcpy(&words, &image[line], sizeof words);
    if (words.whole(seed, line)) continue;
    bool cells = line != begin;
    for (const std::uint64_t w : words.words) {
      const std::uint64_t value = log::ControlWord::value(w);
      cells = cells && (w == 0 || value == 3 || (value % 64 == 2 && value > begin));
    }
    for (std::size_t i = 0; i < 8; ++i)
      if (log::ControlWord::whole(seed, line + i * 8, words.words[i]))
        words.words[i] = log::ControlWord::value(words.words[i]) & ~(cells ? 2ULL : 0ULL);
    if (line == begin) words.words[7] = seed;
    std::memcpy(&image[line], &words, sizeof words);
  }
}

// Pools of earlier builds: a flip in a bare word may go unnoticed, but the address that it leads to
// lies in the log, and a refused pool was not written to.
TEST_P(ControlWords, OfAListOfTheFirstForm) {
  if (!is_rewind(GetParam())) GTEST_SKIP() << "tests/log has the others";
  const Shape shape = shape_of(GetParam());
  std::vector<std::byte> image = killed(GetParam(), shape).front();
  pool::Header header;
  std::memcpy(&header, &image[pool::header_a], sizeof header);
  GuardedMemory checked(image, shape.medium().log_bytes);
  const Outcome as_checked = recover(GetParam(), checked);
  make_first_form(image, header);
  GuardedMemory memory(image, shape.medium().log_bytes);
  const Outcome whole = recover(GetParam(), memory);
  ASSERT_TRUE(whole.status.ok()) << whole.status.message();
  ASSERT_TRUE(whole.state == as_checked.state);
  ASSERT_EQ(as_checked.last_id, whole.last_id);
  std::uint64_t refused = 0, unseen = 0;
  const std::uint64_t begin = pool::ring_offset(header, 0);
  for (std::uint64_t at = begin; at < begin + header.ring_bytes; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, &image[at], 8);
    if (word == 0 && at >= begin + 64) continue;
    for (auto bit = static_cast<unsigned>(at / 8 % scale); bit < 64; bit += scale) {
      memory.restore();
      memory.flip(at, bit);
      const Outcome o = recover(GetParam(), memory);
      ASSERT_EQ("", o.died) << "bit " << bit << " of the word at " << at;
      ASSERT_EQ(0U, memory.outside()) << "bit " << bit << " of the word at " << at;
      if (o.status.code() != Code::corrupt) {
        ++unseen;
        continue;
      }
      ++refused;
      ASSERT_EQ(0U, memory.stores())
          << "bit " << bit << " of the word at " << at << ": " << o.status.message();
    }
  }
  EXPECT_GT(refused, 500U / scale);
  std::printf("  %llu flips refused, %llu not\n", static_cast<unsigned long long>(refused),
              static_cast<unsigned long long>(unseen));
}

}  // namespace
}  // namespace perdure::test
