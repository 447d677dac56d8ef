// SPDX-License-Identifier: BSD-3-Clause
//
// The papers' calls (perdure::paper) give the errors that they list and no others, whichever call
// below them fails; see call_errors_test.cpp. A step is a transaction by those calls: a failure
// within it leaves nothing of it.
#include <set>

#include "call_errors.hpp"
#include "papers/dudetm/dtm_calls.hpp"
#include "papers/rewind/rewind_calls.hpp"
#include "papers/softwrap/wrap_calls.hpp"

namespace perdure::faults {
namespace {

struct PaperRoot {
  static constexpr const char* layout_id = "paper errors/1";
  std::uint64_t count;
  std::uint64_t values[8];
  std::uint64_t block;
};
using Dtm = papers::dudetm::DudeTM<PaperRoot>;
using Rewind = papers::rewind::TransactionManager<PaperRoot>;
using Wrap = papers::softwrap::SoftWrAP<PaperRoot>;

std::uint64_t number_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
void* pointer_of(std::uint64_t n) { return reinterpret_cast<void*>(n); }

std::uint64_t read(Dtm& dtm) {
  return dtm.transaction([&] {
    dtm.dtmBegin();
    const std::uint64_t n = dtm.dtmRead(&dtm.root().count);
    for (const auto& v : dtm.root().values) EXPECT_EQ(dtm.dtmRead(&v), n * 3);
    dtm.dtmEnd();
    return n;
  });
}
void step(Dtm& dtm, std::uint64_t n) {
  dtm.transaction([&] {
    dtm.dtmBegin();
    PaperRoot& root = dtm.root();
    dtm.dtmWrite(&root.count, n);
    for (auto& v : root.values) dtm.dtmWrite(&v, n * 3);
    if (const std::uint64_t old = dtm.dtmRead(&root.block)) dtm.pfree(pointer_of(old));
    dtm.dtmWrite(&root.block, number_of(dtm.pmalloc(100 + n % 3 * 3'000'000)));
    dtm.dtmEnd();
  });
}

std::uint64_t read(Rewind& tm) {
  const std::uint64_t n = tm.root().count;
  for (const auto& v : tm.root().values) EXPECT_EQ(v, n * 3);
  return n;
}
// A failure leaves the transaction running: it is rolled back here, also with faults.
void step(Rewind& tm, std::uint64_t n) {
  const papers::rewind::TransactionId id = tm.getNextID();
  try {
    PaperRoot& root = tm.root();
    tm.log(id, &root.count, root.count, n);
    for (auto& v : root.values) tm.log(id, &v, v, n * 3);
    if (root.block != 0) tm.deallocate(id, pointer_of(root.block));
    tm.log(id, &root.block, root.block, number_of(tm.allocate(id, 100 + n % 3 * 3'000'000)));
    tm.commit(id);
  } catch (...) {
    try {
      tm.rollback(id);
    } catch (const error&) {  // poisoned, or the transaction has ended
    }
    throw;
  }
}

std::uint64_t read(Wrap& wrap) {
  const std::uint64_t n = wrap.wrapLoad(&wrap.root().count);
  for (const auto& v : wrap.root().values) EXPECT_EQ(wrap.wrapLoad(&v), n * 3);
  return n;
}
void step(Wrap& wrap, std::uint64_t n) {
  wrap.wrapOpen();
  PaperRoot& root = wrap.root();
  wrap.wrapStore(&root.count, n);
  for (auto& v : root.values) wrap.wrapStore(&v, n * 3);
  if (const std::uint64_t old = wrap.wrapLoad(&root.block)) wrap.pfree(pointer_of(old));
  wrap.wrapStore(&root.block, number_of(wrap.pmalloc(100 + n % 3 * 3'000'000)));
  wrap.wrapClose();
}

template <class Calls>
class PaperCallErrors : public ::testing::Test {
 protected:
  static Options small_options() {
    Options o;
    o.medium = "emulated";
    o.creation.max_size = 16 * MiB;
    o.creation.log_size = 1 * MiB;
    o.creation.threads = 1;
    return o;
  }
  static void expect_listed(const Answer& a, const std::set<Code>& codes) {
    if (a.ok()) return;
    EXPECT_TRUE(a.fired) << "failed without a fault: " << a.text;
    EXPECT_TRUE(a.bad_alloc || codes.contains(a.code)) << a.what << ": " << a.text;
  }
  // Opens the pool without faults: it has from `least` to `most` steps. Removes it.
  void expect_steps(std::uint64_t least, std::uint64_t most, const Answer& a) const {
    {
      Calls calls(path, options);
      const std::uint64_t n = read(calls);
      EXPECT_GE(n, least) << a.what << ": " << a.text << ": acknowledged, and lost";
      EXPECT_LE(n, most) << a.what << ": " << a.text;
      step(calls, n + 1);
      calls.close();
    }
    std::filesystem::remove(path);
    for (const auto& e : std::filesystem::directory_iterator(scratch.folder()))
      ADD_FAILURE() << a.what << ": " << a.text << ": left " << e.path();
  }
  std::unique_ptr<Calls> make(std::uint64_t steps) const {
    auto calls = std::make_unique<Calls>(path, options);
    for (std::uint64_t i = 1; i <= steps; ++i) step(*calls, i);
    return calls;
  }

  const Options options = small_options();
  Scratch scratch;
  const std::string path = scratch.path();
};
using All = ::testing::Types<Dtm, Rewind, Wrap>;
TYPED_TEST_SUITE(PaperCallErrors, All);

TYPED_TEST(PaperCallErrors, Open) {
  each_fault("the constructor", [&](const Fault& fault) {
    std::optional<TypeParam> calls;
    const Answer a =
        with_fault(fault, [&] { return calls.emplace(this->path, this->options), Status(); });
    this->expect_listed(a, {Code::io, Code::full, Code::out_of_memory, Code::too_many_threads});
    calls.reset();
    this->expect_steps(0, 0, a);
    return a.fired;
  });
}

TYPED_TEST(PaperCallErrors, Step) {
  for (const std::uint64_t n : {1, 2, 4})
    each_fault("a transaction", [&](const Fault& fault) {
      auto calls = this->make(n - 1);
      const Answer a = with_fault(fault, [&] { return step(*calls, n), Status(); });
      this->expect_listed(a,
                          {Code::io, Code::full, Code::out_of_memory, Code::poisoned, Code::busy});
      if (fault.nth % 2 == 0) {
        const Code closed = code_of([&] { calls->close(); });
        EXPECT_TRUE(closed == Code::ok || closed == Code::poisoned)
            << name(closed) << " after " << a.what << ": " << a.text;
      }
      calls.reset();
      this->expect_steps(a.ok() ? n : n - 1, a.ok() || a.code == Code::poisoned ? n : n - 1, a);
      return a.fired;
    });
}

TYPED_TEST(PaperCallErrors, CloseAndDestructor) {
  for (const bool destroyed : {false, true})
    each_fault(destroyed ? "the destructor" : "close", [&](const Fault& fault) {
      auto calls = this->make(5);
      const Answer a = with_fault(fault, [&] {
        if (!destroyed) calls->close();
        calls.reset();
        return Status();
      });
      this->expect_listed(a, {Code::io, Code::poisoned});
      EXPECT_TRUE(a.ok() || !destroyed);
      calls.reset();
      this->expect_steps(5, 5, a);
      return a.fired;
    });
}

}  // namespace
}  // namespace perdure::faults
