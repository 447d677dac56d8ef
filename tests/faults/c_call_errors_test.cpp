// SPDX-License-Identifier: BSD-3-Clause
//
// Every call of perdure.h returns the codes that it lists and no others, whichever call below it
// fails; see call_errors_test.cpp.
#include <set>

#include "call_errors.hpp"
#include "perdure/perdure.h"

namespace perdure::faults {
namespace {

struct CRoot {
  std::uint64_t count, values[8];
  void* block;
};

int c_step(perdure_tx* tx, void* arg) {
  auto* const root = static_cast<CRoot*>(perdure_root(tx));
  const std::uint64_t n = *static_cast<const std::uint64_t*>(arg);
  perdure_write_word(tx, &root->count, n);
  for (auto& v : root->values) perdure_write_word(tx, &v, n * 3);
  perdure_free(tx, perdure_read_pointer(tx, &root->block));
  void* const block = perdure_alloc(tx, 100 + n % 3 * 100'000);
  perdure_write_pointer(tx, &root->block, block);
  if (block != nullptr) perdure_write(tx, block, &n, sizeof n);
  return 0;
}
int c_read(perdure_tx* tx, void* arg) {
  const auto* const root = static_cast<const CRoot*>(perdure_root(tx));
  auto& n = *static_cast<std::uint64_t*>(arg);
  n = perdure_read_word(tx, &root->count);
  for (const auto& v : root->values)
    if (perdure_read_word(tx, &v) != n * 3 && perdure_status(tx) == PERDURE_OK)
      n = ~std::uint64_t{0};
  return 0;
}
Status status_of(int code) {
  if (code < 0) ADD_FAILURE() << "code " << code << ": " << perdure_message();
  return code == PERDURE_OK ? Status() : failure(static_cast<Code>(code), "", perdure_message());
}

class CCallErrors : public ::testing::TestWithParam<Case> {
 protected:
  int open(perdure_pool** pool) const {
    const Options& o = options;
    perdure_options c{};
    c.root_bytes = sizeof(CRoot);
    c.engine = o.engine.c_str();
    c.medium = o.medium.c_str();
    c.max_size = o.creation.max_size;
    c.log_size = o.creation.log_size;
    c.threads = 1;
    c.durability = o.durability == async ? PERDURE_ASYNC : PERDURE_DURABLE;
    return perdure_open(path.c_str(), &c, pool);
  }
  perdure_pool* make(std::uint64_t steps) const {
    perdure_pool* pool = nullptr;
    if (open(&pool) != PERDURE_OK) throw std::runtime_error(perdure_message());
    for (std::uint64_t i = 1; i <= steps; ++i)
      if (perdure_update(pool, PERDURE_DURABLE, c_step, &i, nullptr) != PERDURE_OK)
        throw std::runtime_error(perdure_message());
    return pool;
  }
  // Opens the pool without faults: it has from `least` to `most` steps. Removes it.
  void expect_steps(std::uint64_t least, std::uint64_t most, const Answer& a) const {
    perdure_pool* pool = nullptr;
    ASSERT_EQ(open(&pool), PERDURE_OK)
        << a.what << ": " << a.text << ", then " << perdure_message();
    std::uint64_t n = 0;
    EXPECT_EQ(perdure_view(pool, PERDURE_DEFAULT, c_read, &n), PERDURE_OK);
    EXPECT_GE(n, least) << a.what << ": " << a.text << ": acknowledged, and lost";
    EXPECT_LE(n, most) << a.what << ": " << a.text;
    EXPECT_EQ(perdure_update(pool, PERDURE_DEFAULT, c_step, &++n, nullptr), PERDURE_OK)
        << perdure_message();
    EXPECT_EQ(perdure_close(pool, nullptr), PERDURE_OK);
    std::filesystem::remove(path);
    for (const auto& e : std::filesystem::directory_iterator(scratch.folder()))
      ADD_FAILURE() << a.what << ": " << a.text << ": left " << e.path();
  }
  static void expect_listed(const Answer& a, const std::set<Code>& codes) {
    if (a.ok()) return;
    EXPECT_TRUE(a.fired) << "failed without a fault: " << a.text;
    EXPECT_TRUE(!a.bad_alloc && codes.contains(a.code)) << a.what << ": " << a.text;
  }
  // A call on a pool of 5 steps that changes none of them.
  template <class F>
  void on_a_pool(const char* call, const std::set<Code>& codes, F&& f) {
    each_fault(call, [&](const Fault& fault) {
      perdure_pool* const pool = make(5);
      const Answer a = with_fault(fault, [&] { return status_of(f(pool)); });
      expect_listed(a, codes);
      perdure_close(pool, nullptr);
      expect_steps(5, 5, a);
      return a.fired;
    });
  }

  const Options options = small(GetParam());
  Scratch scratch;  // in memory: nth_call_test.cpp runs on a disk
  const std::string path = scratch.path();
};

TEST_P(CCallErrors, Open) {
  for (const char* how : {"new", "closed", "killed"}) {
    const std::uint64_t steps = how == std::string("new") ? 0 : 5;
    std::optional<Image> image;
    if (steps != 0) {
      ASSERT_EQ(in_child([&] {
                  perdure_pool* const pool = make(steps);
                  if (how == std::string("closed")) perdure_close(pool, nullptr);
                }),
                0);
      image = Image::of(path);
    }
    each_fault("perdure_open", [&](const Fault& fault) {
      if (image) image->write(path);
      perdure_pool* pool = nullptr;
      const Answer a = with_fault(fault, [&] { return status_of(open(&pool)); });
      expect_listed(a, {Code::io, Code::full, Code::out_of_memory, Code::too_many_threads});
      EXPECT_EQ(pool != nullptr, a.ok());
      EXPECT_TRUE(a.ok() || image || !std::filesystem::exists(path) || may_leave_a_file(fault))
          << a.what << ": " << a.text;
      perdure_close(pool, nullptr);
      expect_steps(steps, steps, a);
      return a.fired;
    });
    std::filesystem::remove(path);
  }
}

TEST_P(CCallErrors, Update) {
  for (const auto& [when, n] :
       {std::pair(PERDURE_DURABLE, 1), std::pair(PERDURE_DURABLE, 5), std::pair(PERDURE_ASYNC, 1)})
    each_fault("perdure_update", [&, when = when,
                                  n = static_cast<std::uint64_t>(n)](const Fault& fault) {
      perdure_pool* const pool = make(n - 1);
      perdure_id id = 0;
      const Answer a = with_fault(fault, [&] {
        std::uint64_t number = n;
        return status_of(perdure_update(pool, when, c_step, &number, &id));
      });
      expect_listed(
          a, {Code::io, Code::full, Code::out_of_memory, Code::poisoned, Code::too_many_threads});
      EXPECT_EQ(id != PERDURE_NO_ID, a.ok());
      std::uint64_t seen = 0;
      const int viewed = perdure_view(pool, PERDURE_DEFAULT, c_read, &seen);
      if (viewed == PERDURE_OK)
        EXPECT_EQ(seen, a.ok() ? n : n - 1) << a.what << ": " << a.text;
      else
        EXPECT_EQ(viewed, PERDURE_POISONED);
      const bool waited = !a.ok() || perdure_wait(pool, id) == PERDURE_OK;
      perdure_close(pool, nullptr);
      expect_steps(a.ok() && waited ? n : n - 1, a.ok() || a.code == Code::poisoned ? n : n - 1, a);
      return a.fired;
    });
}

TEST_P(CCallErrors, OthersOnAPool) {
  const auto view = [](perdure_pool* pool) {
    std::uint64_t n = 0;
    const int code = perdure_view(pool, PERDURE_DURABLE, c_read, &n);
    if (code == PERDURE_OK) {
      EXPECT_EQ(n, 5U);
    }
    return code;
  };
  const auto stats = [](perdure_pool* pool) {
    perdure_stats s;
    return perdure_get_stats(pool, &s);
  };
  const auto wait = [](perdure_pool* pool) { return perdure_wait(pool, perdure_durable_id(pool)); };
  on_a_pool("perdure_view", {Code::out_of_memory, Code::poisoned, Code::too_many_threads}, view);
  on_a_pool("perdure_checkpoint",
            {Code::io, Code::out_of_memory, Code::poisoned, Code::too_many_threads},
            perdure_checkpoint);
  on_a_pool("perdure_trim",
            {Code::full, Code::io, Code::out_of_memory, Code::poisoned, Code::too_many_threads},
            [](perdure_pool* pool) { return perdure_trim(pool, 0, nullptr, nullptr); });
  on_a_pool("perdure_get_stats", {Code::out_of_memory}, stats);
  on_a_pool("perdure_wait", {Code::out_of_memory, Code::poisoned}, wait);
}

TEST_P(CCallErrors, WhenDurable) {
  each_fault("perdure_when_durable", [&](const Fault& fault) {
    perdure_pool* const pool = make(1);
    std::uint64_t two = 2;
    perdure_id id = 0;
    EXPECT_EQ(perdure_update(pool, PERDURE_ASYNC, c_step, &two, &id), PERDURE_OK);
    int told = -100;
    const auto done = [](int code, void* arg) { *static_cast<int*>(arg) = code; };
    const Answer a =
        with_fault(fault, [&] { return status_of(perdure_when_durable(pool, id, done, &told)); });
    expect_listed(a, {Code::out_of_memory, Code::too_many_threads});
    perdure_close(pool, nullptr);  // all are called before it returns
    EXPECT_EQ(told != -100, a.ok()) << a.what << ": " << a.text;
    EXPECT_TRUE(!a.ok() || told == PERDURE_OK || told == PERDURE_POISONED) << told;
    expect_steps(told == PERDURE_OK ? 2 : 1, 2, a);
    return a.fired;
  });
}

TEST_P(CCallErrors, Close) {
  each_fault("perdure_close", [&](const Fault& fault) {
    perdure_pool* const pool = make(5);
    perdure_stats stats;
    const Answer a = with_fault(fault, [&] {
      return status_of(perdure_close(pool, fault.nth % 2 == 0 ? &stats : nullptr));
    });
    expect_listed(a, {Code::io, Code::out_of_memory, Code::poisoned});
    expect_steps(5, 5, a);
    return a.fired;
  });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* e :
       {"shadow", "dudetm-combined", "undo", "rewind-1l-nfp-batch", "bppm", "softwrap"})
    all.push_back({e, "emulated", durable});
  all.push_back({"shadow", "emulated", async});
  for (const char* e : {"shadow", "undo"}) all.push_back({e, "file", durable});
  return chosen(std::move(all));
}
INSTANTIATE_TEST_SUITE_P(Engines, CCallErrors, ::testing::ValuesIn(cases()), CaseName());

}  // namespace
}  // namespace perdure::faults
