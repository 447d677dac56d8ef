// SPDX-License-Identifier: BSD-3-Clause
//
// The reads and writes of a transaction, on every engine, compared with a plain model: bytes of
// every size and alignment, fields of every size, blocks, nesting, large write sets, exceptions.
#include "perdure/pool/heap.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

struct Blob {
  std::array<std::byte, 64> before;
  std::array<std::byte, 8192> bytes;
  std::array<std::byte, 64> after;
};

class Bytes : public EngineTest {};
ENGINE_SUITE(Bytes, all_of_them);

TEST_P(Bytes, OfEverySizeAtEveryAlignment) {
  Shape setup;
  setup.ring_bytes = 1 << 20;
  auto rig = open_rig<Blob>(GetParam(), setup);
  std::vector<std::byte> model(8192), got(8192);
  std::mt19937_64 random(1);
  const auto fill = [&](std::byte* p, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) p[i] = static_cast<std::byte>(random());
  };
  for (std::size_t align = 0; align < 16; align += heavy(GetParam()) > 4 ? 3 : 1) {
    for (std::size_t n = 0; n <= 72; ++n) {
      const std::size_t at = 512 + random() % 60 * 64 + align;
      std::byte data[80];
      fill(data, n);
      rig.pool.update([&](auto& tx, Blob& root) {
        tx.write_bytes(root.bytes.data() + at, data, n);
        tx.read_bytes(got.data(), root.bytes.data() + at, n);
      });
      std::memcpy(model.data() + at, data, n);
      ASSERT_EQ(0, std::memcmp(got.data(), data, n))
          << "read in the transaction, " << n << " bytes at " << at % 64;
      std::byte around[88];
      rig.pool.view([&](auto& tx, const Blob& root) {
        tx.read_bytes(around, root.bytes.data() + at - 8, n + 16);
      });
      ASSERT_EQ(0, std::memcmp(around, model.data() + at - 8, n + 16))
          << n << " bytes at " << at % 64;
    }
  }
  // Larger ones, beyond the buffer of 256 words.
  for (unsigned i = 0; i < 200 / scale / heavy(GetParam()); ++i) {
    const std::size_t n = random() % 5000, at = random() % (8192 - n);
    std::vector<std::byte> data(n);
    fill(data.data(), n);
    rig.pool.update(
        [&](auto& tx, Blob& root) { tx.write_bytes(root.bytes.data() + at, data.data(), n); });
    std::copy(data.begin(), data.end(), model.begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::byte edge[128];
  rig.pool.view([&](auto& tx, const Blob& root) {
    tx.read_bytes(got.data(), root.bytes.data(), 8192);
    tx.read_bytes(edge, root.before.data(), 64);
    tx.read_bytes(edge + 64, root.after.data(), 64);
  });
  EXPECT_EQ(model, got);
  EXPECT_TRUE(std::all_of(edge, edge + 128, [](std::byte b) { return b == std::byte{0}; }))
      << "written past an end";
  if (is_durable(GetParam())) {
    const auto image = rig.medium->durable_image();
    const Recovered r = recover(GetParam(), image, setup);
    ASSERT_TRUE(r.status.ok()) << r.status.message();
    EXPECT_EQ(0, std::memcmp(r.state.root.data() + offsetof(Blob, bytes), model.data(), 8192));
  }
}

struct Three {
  char c[3];
};
struct Wide {
  std::uint64_t w[5];
};
struct Fields {
  p<std::uint8_t> a{1};
  p<std::int16_t> b{-2};
  p<std::uint32_t> c{3};
  p<Three> d;
  p<bool> e{true};
  p<double> f{0.5};
  p<float> g{0.25F};
  p<Wide> h;
  p<std::uint8_t> i{9};
  ptr<Fields> self;
};

TEST_P(Bytes, FieldsOfEverySizeBesideEachOther) {
  auto rig = open_rig<Fields>(GetParam(), Shape());
  rig.pool.view([&](auto& tx, const Fields& r) {
    EXPECT_EQ(1, tx(r.a));
    EXPECT_EQ(-2, tx(r.b));
    EXPECT_EQ(3U, tx(r.c));
    EXPECT_TRUE(tx(r.e));
    EXPECT_EQ(0.5, tx(r.f));
    EXPECT_EQ(9, tx(r.i));
    EXPECT_EQ(nullptr, tx(r.self));
  });
  const auto receipt = rig.pool.update([&](auto& tx, Fields& r) {
    tx(r.a) = 200;
    tx(r.b) -= 5;
    ++tx(r.c);
    tx(r.d) = Three{{'x', 'y', 'z'}};
    tx(r.e) = false;
    tx(r.f) *= 3;
    tx(r.g) = 8;
    tx(r.h) = Wide{{1, 2, 3, 4, 5}};
    tx(r.self) = &r;
    EXPECT_EQ(201, ++tx(tx(r.self)->a));
    const std::uint8_t old = tx(r.i)++;
    return old;
  });
  EXPECT_EQ(9, receipt.value());
  rig.pool.view([&](auto& tx, const Fields& r) {
    EXPECT_EQ(201, tx(r.a));
    EXPECT_EQ(-7, tx(r.b));
    EXPECT_EQ(4U, tx(r.c));
    EXPECT_EQ('z', tx(r.d).c[2]);
    EXPECT_FALSE(tx(r.e));
    EXPECT_EQ(1.5, tx(r.f));
    EXPECT_EQ(8, tx(r.g));
    EXPECT_EQ(5U, tx(r.h).w[4]);
    EXPECT_EQ(10, tx(r.i));
    EXPECT_EQ(&r, tx(r.self));
  });
}

struct Many {
  std::array<p<std::uint64_t>, 4096> word;
};

/// The root object has chunks of its own.
Shape for_many(Shape setup = {}) {
  setup.data_bytes = 20 * pool::chunk_bytes;
  return setup;
}
Rig<Many> open_many(const EngineInfo& engine, const Shape& setup) {
  return open_rig<Many>(engine, for_many(setup));
}

struct Oops {};

TEST_P(Bytes, AThrowRollsEverythingBackAndPassesOn) {
  Shape setup;
  setup.ring_bytes = 1 << 20;
  auto rig = open_many(GetParam(), setup);
  rig.pool.update([&](auto& tx, Many& r) {
    for (std::uint64_t i = 0; i < 500; ++i) tx(r.word[i]) = i;
  });
  const std::uint64_t last = rig.pool.stats().last_id, used = rig.pool.stats().heap_used;
  for (int round = 0; round < 3; ++round) {
    EXPECT_THROW(rig.pool.update([&](auto& tx, Many& r) {
      for (std::uint64_t i = 0; i < 500; ++i) tx(r.word[i]) = 7;
      for (int b = 0; b < 20; ++b) (void)tx.alloc(100);
      throw Oops();
    }),
                 Oops);
    EXPECT_THROW(rig.pool.update([&](auto& tx, Many& r) {
      tx(r.word[3]) = 9;
      perdure::abort(tx);
    }),
                 aborted);
  }
  rig.pool.view([&](auto& tx, const Many& r) {
    for (std::uint64_t i = 0; i < 500; ++i) ASSERT_EQ(i, tx(r.word[i]));
  });
  EXPECT_EQ(last, rig.pool.stats().last_id) << "an abort drew an id";
  EXPECT_EQ(used, rig.pool.stats().heap_used);
  if (is_durable(GetParam())) {
    const Recovered r = recover(GetParam(), rig.medium->durable_image(), setup);
    ASSERT_TRUE(r.status.ok());
    EXPECT_TRUE(r.state.blocks.empty());
    std::uint64_t word;
    std::memcpy(&word, r.state.root.data() + 24, 8);
    EXPECT_EQ(3U, word);
  }
}

TEST_P(Bytes, ALargeWriteSetIsOneTransaction) {
  Shape setup;
  setup.ring_bytes = 4 << 20;
  auto rig = open_many(GetParam(), setup);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    rig.pool.update([&](auto& tx, Many& r) {
      for (std::uint64_t i = 0; i < 4096; ++i) tx(r.word[i]) = round * i;
      for (std::uint64_t i = 0; i < 4096; i += 7) tx(r.word[i]) += 1;
    });
    rig.pool.view([&](auto& tx, const Many& r) {
      for (std::uint64_t i = 0; i < 4096; ++i)
        ASSERT_EQ(round * i + (i % 7 == 0 ? 1 : 0), tx(r.word[i]));
    });
  }
}

TEST_P(Bytes, NestingIsFlat) {
  auto rig = open_many(GetParam(), Shape());
  auto& pool = rig.pool;
  const auto receipt = pool.update([&](auto& tx, Many& r) {
    tx(r.word[0]) = 1;
    const auto inner = pool.update([&](auto& in, Many& again) {
      EXPECT_EQ(&r, &again);
      EXPECT_EQ(1U, static_cast<std::uint64_t>(in(again.word[0]))) << "it is the same transaction";
      in(again.word[1]) = 2;
      return 5;
    });
    EXPECT_EQ(5, inner.value());
    EXPECT_EQ(0U, inner.id());
    EXPECT_FALSE(inner.durable());
    EXPECT_EQ(Code::invalid, inner.try_wait().code());
    EXPECT_EQ(2U, pool.view([&](auto& in, const Many& again) { return in(again.word[1]); }));
    return tx(r.word[1]) += 1;
  });
  EXPECT_EQ(3U, receipt.value());
  EXPECT_THROW(pool.update([&](auto& tx, Many& r) {
    tx(r.word[0]) = 10;
    pool.update([&](auto& in, Many& again) {
      in(again.word[1]) = 20;
      throw Oops();
    });
  }),
               Oops);
  pool.view([&](auto& tx, const Many& r) {
    EXPECT_EQ(1U, tx(r.word[0]));
    EXPECT_EQ(3U, tx(r.word[1]));
    EXPECT_EQ(3U, pool.view([](auto& in, const Many& again) { return in(again.word[1]); }));
    const auto refused = pool.try_update([](auto& in, Many& again) { in(again.word[0]) = 1; });
    EXPECT_EQ(Code::invalid, refused.code());
  });
  EXPECT_EQ(1U, pool.view([](auto& tx, const Many& r) { return tx(r.word[0]); }));
}

TEST_P(Bytes, APoolInsideAnothersTransaction) {
  auto one = open_many(GetParam(), Shape());
  auto two = open_many(GetParam(), Shape());
  one.pool.update([&](auto& tx, Many& r) { tx(r.word[0]) = 10; });
  one.pool.update([&](auto& tx, Many& r) {
    two.pool.update([&](auto& other, Many& s) {
      other(s.word[0]) += 4;
      tx(r.word[0]) -= 4;
    });
  });
  EXPECT_EQ(6U, one.pool.view([](auto& tx, const Many& r) { return tx(r.word[0]); }));
  EXPECT_EQ(4U, two.pool.view([](auto& tx, const Many& r) { return tx(r.word[0]); }));
}

struct Slots {
  std::array<ptr<std::uint64_t>, 64> slot;
};

TEST_P(Bytes, BlocksComeAndGoWithTheirTransactions) {
  Shape setup;
  setup.ring_bytes = 1 << 20;
  auto rig = open_rig<Slots>(GetParam(), setup);
  auto& pool = rig.pool;
  std::map<std::size_t, std::pair<std::uint64_t, std::size_t>> model;  // slot -> first word, bytes
  std::mt19937_64 random(4);
  for (unsigned step = 0; step < 800 / scale; ++step) {
    auto next = model;
    const bool fail = random() % 5 == 0;
    const std::uint64_t choice = random();
    try {
      pool.update([&](auto& tx, Slots& r) {
        next = model;
        std::mt19937_64 inner(choice);
        for (std::uint64_t k = 0; k < 1 + choice % 6; ++k) {
          const std::size_t s = inner() % 64;
          if (next.count(s) != 0) {
            std::uint64_t* const block = tx(r.slot[s]);
            std::uint64_t first;
            tx.read_bytes(&first, block, 8);
            EXPECT_EQ(next[s].first, first);
            tx.free(block);
            tx(r.slot[s]) = nullptr;
            next.erase(s);
          } else {
            const std::size_t bytes = 8 + inner() % (inner() % 20 == 0 ? 5000 : 300);
            auto* const block = reinterpret_cast<std::uint64_t*>(tx.alloc(bytes));
            const std::uint64_t first = inner();
            tx.write_bytes(block, &first, 8);
            tx(r.slot[s]) = block;
            next[s] = {first, bytes};
            if (inner() % 6 == 0) {  // allocated and freed in one transaction
              tx.free(block);
              tx(r.slot[s]) = nullptr;
              next.erase(s);
              EXPECT_THROW(tx.free(block), error) << "freed twice";
            }
          }
        }
        if (fail) throw Oops();
      });
      model = next;
    } catch (const Oops&) {}
    if (step % 20 == 0) {
      const CheckReport check = pool.check();
      ASSERT_TRUE(check.ok()) << check.problems.front();
      ASSERT_EQ(model.size() + 1, check.blocks);
    }
  }
  EXPECT_GT(model.size(), 10U);
  for (int round = 0; round < 2; ++round) {
    // An aborted free has no effect: the same blocks may be freed again.
    try {
      pool.update([&](auto& tx, Slots& r) {
        for (const auto& [s, what] : model) tx.free(static_cast<std::uint64_t*>(tx(r.slot[s])));
        if (round == 0) throw Oops();
        for (const auto& [s, what] : model) tx(r.slot[s]) = nullptr;
      });
    } catch (const Oops&) {}
  }
  const CheckReport check = pool.check();
  EXPECT_TRUE(check.ok()) << check.problems.front();
  EXPECT_EQ(1U, check.blocks);
  EXPECT_THROW(pool.update([](auto& tx, Slots& r) { tx.free(&r); }), error) << "the root";
  EXPECT_THROW(pool.update([](auto& tx, Slots&) { tx.free(nullptr); }), error);
}

TEST_P(Bytes, AnUpdateThatChangesNothingIsARead) {
  auto rig = open_many(GetParam(), Shape());
  const auto nothing = rig.pool.update([](auto&, Many&) {});
  EXPECT_TRUE(nothing.try_wait().ok())
      << "on a pool without a transaction too: " << nothing.try_wait().message();
  rig.pool.update([](auto& tx, Many& r) { tx(r.word[0]) = 1; });
  const auto before = rig.pool.stats();
  rig.pool.update([](auto& tx, Many& r) { (void)static_cast<std::uint64_t>(tx(r.word[0])); })
      .wait();
  const auto after = rig.pool.stats();
  if (!has_timestamps(GetParam())) {  // a timestamp of its own, above those it has read
    EXPECT_EQ(before.last_id, after.last_id);
  }
  EXPECT_EQ(before.commits, after.commits);
  EXPECT_EQ(before.reads + 1, after.reads);
}

class Logged : public EngineTest {};
ENGINE_SUITE(Logged, durable_ones);

TEST_P(Logged, ATransactionThatCantEverFitIsTooBigAndRolledBack) {
  Shape shape;
  shape.ring_bytes = ring_of_at_least(GetParam(), 49152);  // 12 bytes for each word
  auto rig = open_many(GetParam(), shape);
  rig.pool.update([](auto& tx, Many& r) { tx(r.word[0]) = 1; });
  for (int round = 0; round < 20; ++round) {
    const auto result = rig.pool.try_update([](auto& tx, Many& r) {
      for (std::uint64_t i = 0; i < 4096; ++i) tx(r.word[i]) = 5;
    });
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(Code::too_big, result.code()) << result.status().message();
  }
  rig.pool.update([](auto& tx, Many& r) { tx(r.word[1]) = 2; });
  rig.pool.view([](auto& tx, const Many& r) {
    EXPECT_EQ(1U, tx(r.word[0]));
    EXPECT_EQ(2U, tx(r.word[1]));
    for (std::uint64_t i = 2; i < 4096; ++i) ASSERT_EQ(0U, tx(r.word[i]));
  });
}

TEST_P(Logged, AReadOnlyPoolIsViewedAndNotWritten) {
  const Shape setup = for_many();
  std::vector<std::byte> image;
  {
    auto rig = open_rig<Many>(GetParam(), setup);
    rig.pool.update([](auto& tx, Many& r) { tx(r.word[5]) = 55; });
    EXPECT_TRUE(rig.pool.close().clean);
    image = rig.medium->durable_image();
  }
  auto options = setup.medium();
  options.read_only = true;
  auto made = medium::RecordingMedium::make(options, image).value();
  auto* const raw = made.get();
  Options how = setup.options(GetParam());
  how.read_only = true;
  auto pool = AnyPool<Many>::try_open_on("recording", how, std::move(made), false).value();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(55U, pool.view([](auto& tx, const Many& r) { return tx(r.word[5]); }));
  EXPECT_EQ(55U, pool.view(durable, [](auto& tx, const Many& r) { return tx(r.word[5]); }));
  EXPECT_THROW(pool.view([](auto&, const Many&) { throw Oops(); }), Oops);
  EXPECT_EQ(Code::read_only, pool.try_update([](auto& tx, Many& r) { tx(r.word[5]) = 1; }).code());
  EXPECT_EQ(0U, raw->counters().writes());
  EXPECT_EQ(image, raw->current_image());
  pool.close();
}

}  // namespace
}  // namespace perdure::test
