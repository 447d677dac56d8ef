// SPDX-License-Identifier: BSD-3-Clause
//
// The paper's calls over SoftWrAP, in both variants: Algorithm 2 with the crash explorer, nesting,
// objects, and wrong use.
#include "papers/softwrap/wrap_calls.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "examples/softwrap_region.hpp"
#include "tests/engine/recorded.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

using softwrap_region::Variables;
using softwrap_region::Wraps;

std::vector<EngineInfo> forms() {
  return engines_that([](const EngineInfo& e) { return is_softwrap(e) && !isolates(e); });
}

class WrapCalls : public EngineTest {
 protected:
  static constexpr std::uint64_t ring_bytes = 24576;
  static Options options(std::uint64_t log_bytes = ring_bytes) {
    Options o;
    o.engine = GetParam().name;
    o.creation.uuid_seed = 7;
    o.creation.threads = 1;
    o.creation.log_size = log_bytes;
    return o;
  }
  static std::unique_ptr<medium::CrashMedium> make_medium(std::uint64_t log_bytes = ring_bytes) {
    return Recorded::make_medium(log_bytes, 4 << 20);
  }
  template <class F>
  static Code code_of(F&& f) {
    try {
      f();
    } catch (const error& e) {
      return e.code();
    }
    return Code::ok;
  }
};
ENGINE_SUITE(WrapCalls, forms);

TEST_P(WrapCalls, EveryPowerCutLeavesARegionWholeOrNot) {
  for (const auto model : {crash::Model::px86, crash::Model::adversarial}) {
    auto made = make_medium();
    Recorded recorded(*made);
    {
      Wraps sw("crash", options(), std::move(made));
      recorded.made(sw.file().header());
      for (std::uint64_t step = 0; step < 20; ++step) {
        recorded.begin(step);
        softwrap_region::run(sw);
        recorded.done(step);
        if (step % 6 == 5) sw.checkpoint();
      }
      recorded.end();
    }
    const auto look = [&](auto&, const Variables& v, const crash::Crash& crash) {
      if (!crash.created) return crash::Verdict{};
      const auto x = static_cast<std::uint64_t>(v.x);
      if (x < crash.least || x > crash.most + 1)
        return crash::Verdict{"x is " + std::to_string(x), 0};
      if ((x == 0) != (v.p == nullptr)) return crash::Verdict{"an array without a region", 0};
      for (int i = 0; v.p != nullptr && i < Variables::elements; ++i)
        if (v.p[i] != static_cast<std::int32_t>(v.x) * i)
          return crash::Verdict{"element " + std::to_string(i) + " of another region", 0};
      return crash::Verdict{{}, x};
    };
    recorded.explore<Variables>(GetParam().recover, model, 3000 / scale, 500 / scale, look);
  }
}

TEST_P(WrapCalls, NestFlatAndAreUndoneAsOne) {
  Wraps sw("recording", options(), make_medium());
  Variables& v = sw.root();
  const auto before = sw.stats().commits;
  sw.wrapOpen();
  sw.wrapStore(&v.x, 1);
  sw.wrapOpen();
  sw.wrapStore(&v.x, sw.wrapLoad(&v.x) + 1);
  sw.wrapClose();
  EXPECT_EQ(before, sw.stats().commits) << "the inner one is the outer one's";
  EXPECT_EQ(2, sw.wrapLoad(&v.x));
  EXPECT_EQ(0, v.x) << "home has nothing of an open wrap";
  sw.wrapClose();
  EXPECT_EQ(before + 1, sw.stats().commits);
  sw.wrapOpen();
  sw.wrapOpen();
  sw.wrapStore(&v.x, 9);
  sw.wrapAbort();
  EXPECT_EQ(2, sw.wrapLoad(&v.x));
  EXPECT_EQ(Code::invalid, code_of([&] { sw.wrapClose(); })) << "the abort has ended both";
  sw.checkpoint();
  EXPECT_EQ(2, v.x);
  sw.close();
}

// Objects across pages, at any byte, that contain scalars or lie inside them.
TEST_P(WrapCalls, ReadAndWriteObjects) {
  Wraps sw("recording", options(1 << 17), make_medium(1 << 17));
  std::vector<unsigned char> model(6000), got(6000);
  sw.wrapOpen();
  auto* const object = static_cast<unsigned char*>(sw.pmalloc(model.size()));
  sw.wrapWrite(object, model.data(), model.size());
  sw.wrapStore(reinterpret_cast<unsigned char**>(&sw.root().p), object);
  sw.wrapClose();
  crash::Random random(2);
  for (int i = 0; i < 400; ++i) {
    sw.wrapOpen();
    std::vector<unsigned char> was = model;
    for (int k = 0; k < 3; ++k) {
      const std::size_t n = 1 + random() % (random() % 3 == 0 ? 2500 : 12),
                        at = random() % (model.size() - n);
      std::vector<unsigned char> part(n);
      for (auto& b : part) b = static_cast<unsigned char>(random());
      sw.wrapWrite(object + at, part.data(), n);
      std::memcpy(model.data() + at, part.data(), n);
    }
    const std::size_t n = 1 + random() % 5000, at = random() % (model.size() - n);
    sw.wrapRead(got.data(), object + at, n);
    ASSERT_EQ(0, std::memcmp(got.data(), model.data() + at, n));
    if (random() % 4 == 0) {
      sw.wrapAbort();
      model = was;
    } else {
      sw.wrapClose();
    }
    if (i % 50 == 49) sw.checkpoint();
    sw.wrapRead(got.data(), object, model.size());
    ASSERT_EQ(model, got) << i;
  }
  sw.checkpoint();
  EXPECT_EQ(0, std::memcmp(object, model.data(), model.size())) << "home";
  sw.close();
}

TEST_P(WrapCalls, SayWhatIsWrong) {
  Wraps sw("recording", options(), make_medium());
  std::int64_t elsewhere = 0;
  EXPECT_EQ(Code::invalid, code_of([&] { sw.wrapStore(&sw.root().x, 1); }));
  EXPECT_EQ(Code::invalid, code_of([&] { (void)sw.pmalloc(8); }));
  EXPECT_EQ(Code::invalid, code_of([&] { sw.pfree(&sw.root()); }));
  EXPECT_EQ(Code::invalid, code_of([&] { sw.wrapClose(); }));
  EXPECT_EQ(Code::invalid, code_of([&] { sw.wrapAbort(); }));
  sw.wrapOpen();
  EXPECT_EQ(Code::invalid, code_of([&] { sw.wrapStore(&elsewhere, 1); }));
  EXPECT_EQ(Code::invalid, code_of([&] { sw.pfree(&sw.root().x); }));
  EXPECT_EQ(Code::invalid, code_of([&] { sw.checkpoint(); }));
  EXPECT_EQ(Code::invalid, code_of([&] { sw.close(); }));
  sw.wrapStore(&sw.root().x, 7);  // it is still open
  sw.wrapClose();
  EXPECT_EQ(7, sw.wrapLoad(&sw.root().x));
}

// Any wrap can have half a bucket, however much others have used; a wrap that needs more than a
// bucket has is rolled back.
TEST_P(WrapCalls, FindRoom) {
  Wraps sw("recording", options(), make_medium());
  const std::size_t half = (aliases_for_all(GetParam()) ? ring_bytes / 3 : ring_bytes) / 2 - 500;
  std::vector<unsigned char> bytes(half, 1);
  sw.wrapOpen();
  auto* const object = static_cast<unsigned char*>(sw.pmalloc(2 * ring_bytes));
  sw.wrapClose();
  for (int i = 0; i < 30; ++i) {
    sw.wrapOpen();
    bytes[0] = static_cast<unsigned char>(i);
    sw.wrapWrite(object, bytes.data(), half);
    sw.wrapClose();
  }
  sw.wrapOpen();
  bytes.assign(2 * ring_bytes, 2);
  const Code code = code_of([&] {
    for (int i = 0; i < 10; ++i) sw.wrapWrite(object, bytes.data(), half);
  });
  EXPECT_TRUE(code == Code::busy || code == Code::too_big);
  EXPECT_EQ(Code::invalid, code_of([&] { sw.wrapClose(); })) << "it has been rolled back";
  EXPECT_EQ(29, sw.wrapLoad(object));
  EXPECT_EQ(1, sw.wrapLoad(object + 1));
  sw.close();
}

}  // namespace
}  // namespace perdure::test
