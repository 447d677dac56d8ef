// SPDX-License-Identifier: BSD-3-Clause
//
// LAW-7, LAW-9 and LAW-10 on every durable engine of the registry, in every configuration of a
// pool. docs/testing.md says which tests show the others.
#include "testing/faulty_medium.hpp"
#include "tests/conformance/configurations.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

using conformance::Configuration;
using conformance::configurations;

struct Root {
  p<std::uint64_t> count;
  std::array<p<std::uint64_t>, 24> word;
  ptr<std::uint64_t> block;
};

/// Transaction n, from 1: the contents of the pool after it follow from n alone.
template <class Tx>
void step(Tx& tx, Root& r, std::uint64_t n) {
  tx(r.count) = n;
  tx(r.word[n % 24]) = base::mix(n);
  tx(r.word[(n * 7) % 24]) = base::mix(n + 1);
  if (std::uint64_t* const old = tx(r.block); old != nullptr) tx.free(old);
  tx(r.block) = reinterpret_cast<std::uint64_t*>(tx.alloc(16 + n % 5 * 100));
}

Shape shape_of(const EngineInfo& e, const Configuration& configuration, std::uint64_t records) {
  Shape s;
  s.durability = configuration.durability;
  s.like_a_file = configuration.like_a_file;
  // undo logs one line per record, and a record on a file takes a block.
  const std::uint64_t each = (is_undo(e) ? 8 : 1) * (configuration.like_a_file ? 4096 : 640);
  s.ring_bytes =
      ring_of_at_least(e, std::max<std::uint64_t>((records * each + 4095) / 4096 * 4096, 8192));
  s.data_bytes = s.max_data_bytes = 8 * pool::chunk_bytes;
  return s;
}

/// A pool's root after 0, 1, ..., n transactions, and the contents of its medium, without the
/// contents of blocks that were never written.
struct History {
  std::vector<std::vector<std::byte>> roots, images;
};
History history(Rig<Root>& rig, const Configuration& configuration, std::uint64_t n) {
  History all;
  const auto note = [&] {
    rig.pool.view(durable, [&](auto& tx, const Root& r) {
      std::vector<std::uint64_t> words{tx(r.count)};
      for (const auto& w : r.word) words.push_back(tx(w));
      words.push_back(reinterpret_cast<std::uintptr_t>(static_cast<std::uint64_t*>(tx(r.block))));
      all.roots.emplace_back(words.size() * 8);
      std::memcpy(all.roots.back().data(), words.data(), words.size() * 8);
    });
    all.images.push_back(rig.medium->current_image());
  };
  note();
  for (std::uint64_t i = 1; i <= n; ++i) {
    rig.pool.update(configuration.durability, [&](auto& tx, Root& r) { step(tx, r, i); });
    note();
  }
  return all;
}

class Laws : public EngineTest {};
ENGINE_SUITE(Laws, durable_ones);

// LAW-7: a full log makes transactions wait, and is truncated by checkpoints; it never exceeds its
// bound, however long it is written to.
TEST_P(Laws, ALogHasABound) {
  for (const Configuration& configuration : configurations) {
    const Shape shape = shape_of(GetParam(), configuration, 12);
    auto rig = open_rig<Root>(GetParam(), shape);
    std::uint64_t most = 0, steps = 0;
    const std::uint64_t checkpoints = clears_at_commit(GetParam()) ? 0 : 3;
    while (steps < 500 / scale || (rig.pool.stats().checkpoints < checkpoints && steps < 100'000)) {
      ++steps;
      rig.pool.update([&](auto& tx, Root& r) { step(tx, r, steps); });
      most = std::max(most, rig.pool.stats().log_used);
    }
    EXPECT_LE(most, rig.pool.stats().log_capacity) << configuration.name;
    EXPECT_GE(rig.pool.stats().checkpoints, checkpoints)
        << configuration.name << ": the log was never full, nothing was tested";
    EXPECT_EQ(steps,
              rig.pool.view([](auto& tx, const Root& r) -> std::uint64_t { return tx(r.count); }));
    rig.pool.close();
    const Recovered r = recover(GetParam(), rig.medium->durable_image(), shape);
    EXPECT_TRUE(r.status.ok() && r.problems.empty()) << configuration.name;
  }
}

// LAW-9: from the n-th fence on the medium fails, for every n: nothing more is acknowledged, and
// what was acknowledged is present when the pool is opened again.
TEST_P(Laws, AFailedMediumAcknowledgesNothing) {
  for (const Configuration& configuration : configurations) {
    unsigned fired = 0;
    for (std::uint64_t n = 1; n < 200; n += n < 20 ? 1 : 7 * scale) {
      const Shape shape = shape_of(GetParam(), configuration, 12);
      auto recording = medium::RecordingMedium::make(shape.medium()).value();
      medium::RecordingMedium* const raw = recording.get();
      auto faulty = std::make_unique<medium::FaultyMedium>(std::move(recording));
      medium::FaultyMedium* const faults = faulty.get();
      auto pool = AnyPool<Root>::try_open_on("recording", shape.options(GetParam()),
                                             std::move(faulty), true)
                      .value();
      faults->fail(medium::FaultyMedium::Call::fence, n, EIO, true);
      std::uint64_t told = 0, begun = 0;
      Code code = Code::ok;
      while (code == Code::ok && begun < 60) {
        ++begun;
        auto result = pool.try_update([&](auto& tx, Root& r) { step(tx, r, begun); });
        code = result.code();
        if (code == Code::ok && begun % 3 == 0 && !configuration.waits())
          code = result.value().try_wait().code();
        if (code == Code::ok && (configuration.waits() || begun % 3 == 0)) told = begun;
      }
      if (code == Code::ok) {
        EXPECT_GT(n, 20U) << configuration.name;
        continue;
      }
      ++fired;
      EXPECT_EQ(Code::poisoned, code) << configuration.name << ", fence " << n;
      EXPECT_EQ(Code::poisoned,
                pool.try_update([&](auto& tx, Root& r) { step(tx, r, 999); }).code());
      EXPECT_THROW(pool.update(async, [&](auto& tx, Root& r) { step(tx, r, 999); }), error);
      EXPECT_THROW(pool.view([](auto& tx, const Root& r) -> std::uint64_t { return tx(r.count); }),
                   error);
      EXPECT_THROW(pool.checkpoint(), error);
      EXPECT_THROW(pool.close(), error);
      for (const auto& image : {raw->durable_image(), raw->current_image()}) {
        const Recovered r = recover(GetParam(), image, shape);
        ASSERT_TRUE(r.status.ok())
            << configuration.name << ", fence " << n << ": " << r.status.message();
        EXPECT_TRUE(r.problems.empty()) << r.problems.front();
        std::uint64_t count = 0;
        std::memcpy(&count, r.state.root.data(), 8);
        EXPECT_GE(count, told) << configuration.name << ", fence " << n;
        EXPECT_LE(count, begun) << configuration.name << ", fence " << n;
      }
      if (HasFailure()) return;
    }
    EXPECT_GT(fired, 10U) << configuration.name;
  }
}

/// Whether each word of `root` equals that of `before` or that of `after`.
bool is_mixture(const std::vector<std::byte>& root, const std::vector<std::byte>& before,
                const std::vector<std::byte>& after) {
  for (std::size_t i = 0; i < root.size(); i += 8) {
    if (std::memcmp(&root[i], &before[i], 8) != 0 && std::memcmp(&root[i], &after[i], 8) != 0)
      return false;
  }
  return true;
}

// LAW-10: a flipped bit in any word of the log is reported as damage; or the log is cut, if the bit
// lies in what the last transaction wrote, because a torn write may have done that, too; or nothing
// happens, if nothing live lies there. If the data region may already have had words of the last
// record by then, it keeps them (docs/format.md, Records).
TEST_P(Laws, DamageIsNamedNeverSkipped) {
  for (const Configuration& configuration : configurations) {
    const std::uint64_t steps = 6;
    const Shape shape = shape_of(GetParam(), configuration, steps * 4);
    auto rig = open_rig<Root>(GetParam(), shape);
    const auto [states, images] = history(rig, configuration, steps);
    std::vector<std::byte> image = images.back();
    const std::vector<std::byte>& before = images[steps - 1];
    ASSERT_EQ(before.size(), image.size());
    const std::uint64_t end = shape.medium().log_bytes;
    unsigned named = 0, cut = 0;
    for (std::uint64_t at = pool::first_ring; at < end; at += 8) {
      std::uint64_t word;
      std::memcpy(&word, image.data() + at, 8);
      // Of padding, and of what was never written, only a sample is tested.
      if (word == 0 && at / 8 % (64 * scale) != 0) continue;
      const bool of_the_last =
          std::memcmp(before.data() + at / 64 * 64, image.data() + at / 64 * 64, 64) != 0;
      if (!of_the_last && at / 8 % scale != 0) continue;
      const std::byte whole = image[at];
      image[at] ^= static_cast<std::byte>(1U << at / 8 % 8);
      const Recovered r = recover(GetParam(), image, shape);
      image[at] = whole;
      if (!r.status.ok()) {
        EXPECT_EQ(Code::corrupt, r.status.code()) << r.status.message();
        ++named;
        continue;
      }
      EXPECT_TRUE(r.problems.empty()) << configuration.name << ": " << r.problems.front();
      const std::vector<std::byte> root(
          r.state.root.begin(),
          r.state.root.begin() + static_cast<std::ptrdiff_t>(states.back().size()));
      if (root == states.back()) continue;
      ++cut;
      const std::vector<std::byte>& previous = states[steps - 1];
      EXPECT_TRUE(of_the_last && (stores_last_record_at_once(GetParam())
                                      ? is_mixture(root, previous, states.back())
                                      : root == previous))
          << configuration.name << ": the word at " << at << " is damaged, and nobody says so";
    }
    if (is_blurred(GetParam())) {
      // A bit of the last transaction alone is taken for a torn write.
      EXPECT_GT(named, 20U / scale) << configuration.name;
    } else if (is_rewind(GetParam())) {
      // A list says what its log contains: damage is never taken for a torn write.
      EXPECT_GT(named, 5U / scale) << configuration.name;
      EXPECT_EQ(cut, 0U) << configuration.name;
    } else if (!is_dudetm(GetParam())) {  // dudetm may have truncated its log already
      EXPECT_GT(named, 20U / scale) << configuration.name;
      EXPECT_GT(cut, 0U) << configuration.name;
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace perdure::test
