// SPDX-License-Identifier: BSD-3-Clause
//
// Out of memory, and a failing system call, at the n-th call, for every n: a clean error or a
// poisoned pool, never a lost acknowledgement, never a crash, nothing left behind.
//
// Each n is a process that makes a pool, works, grows, checkpoints, closes. Another process then
// opens the pool without faults. call_errors_test.cpp tests the results of each call of the
// interface.
#include "faults.hpp"
#include "interposed.hpp"
#include "tests/support/watchdog.hpp"

namespace perdure::faults {
namespace {

/// What the process with the fault reports to the test.
struct Report {
  std::atomic<std::uint64_t> acked, begun;
  std::atomic<bool> made, fired, finished;
  char what[64];    ///< the call that failed
  char error[512];  ///< the library's message about it
};

class NthCall : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    void* p =
        ::mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(p, MAP_FAILED);
    report = ::new (p) Report;
  }
  void TearDown() override { ::munmap(static_cast<void*>(report), sizeof(Report)); }
  Options options() const {
    Options o = small(GetParam());
    o.creation.max_size = 16 * MiB;
    return o;
  }
  static std::vector<std::string> open_files() {
    std::vector<std::string> names;
    std::error_code gone;  // the directory itself is gone
    for (const auto& e : std::filesystem::directory_iterator("/proc/self/fd"))
      names.push_back(std::filesystem::read_symlink(e.path(), gone));
    std::sort(names.begin(), names.end());
    return names;
  }

  // More blocks, stripes and bytes of record than the initial capacity of their lists.
  void much(auto& tx, std::byte* at) const {
    // One sync per line.
    const bool slow = GetParam().engine == "undo" && GetParam().medium == "file";
    std::byte* blocks[80];
    for (auto& b : blocks) b = tx.alloc(24);
    // An attempt before this one may have failed and freed its blocks.
    std::sort(std::begin(blocks), std::end(blocks));
    EXPECT_EQ(std::adjacent_find(std::begin(blocks), std::end(blocks)), std::end(blocks))
        << "a block was given out twice";
    const std::uint64_t word = 7;
    for (int i = 0; i < (slow ? 20 : 400); ++i) tx.write_bytes(at + i * 64, &word, sizeof word);
    for (auto* b : blocks) tx.free(b);
  }
  // Everything that a program does with a pool. Errors are recorded, and work continues as long as
  // the pool allows it.
  void script() {
    const auto note = [&](const char* text) {
      std::snprintf(report->error, sizeof report->error, "%s", text);
    };
    const auto attempt = [&](auto&& f) {
      try {
        f();
        return true;
      } catch (const std::exception& e) {  // also bad_alloc: the user's own strings may fail
        note(e.what());
        return false;
      }
    };
    std::unique_ptr<TestPool> pool;
    if (!attempt([&] { pool = std::make_unique<TestPool>(TestPool::open(path, options())); }))
      return;
    report->made = true;
    std::uint64_t done = 0;
    for (int tries = 0; done < 8 && tries < 12; ++tries) {
      report->begun = done + 1;
      const bool ok = attempt([&] {
        const auto receipt =
            pool->update(done % 3 == 2 ? async : durable, [&](auto& tx, Root& root) {
              step(tx, root, done + 1);
              if (done == 3) tx(root.block) = tx.alloc(5 * MiB);  // grows
              if (done == 4) much(tx, tx(root.block));
              if (done == 5) tx.free(tx(root.block)), tx(root.block) = nullptr;
            });
        receipt.wait();
        report->acked = done + 1;
      });
      std::uint64_t there = done + (ok ? 1 : 0);
      // An error may come after the commit; then the step is present, but not acknowledged.
      if (!ok && !attempt([&] {
            there = pool->view([](auto& tx, const Root& root) { return tx(root.count); });
          }))
        break;
      done = there;
      if (done == 6) attempt([&] { pool->checkpoint(); });
    }
    attempt([&] { pool->close(); });
    pool.reset();
    report->finished = true;
  }

  // Runs the script in a process whose n-th call fails, then checks what it left. Returns false
  // when there is no n-th call.
  bool one(std::uint64_t call, std::uint64_t allocation) {
    test::watch_again();  // the limit is for one failing call
    const std::string which = call != 0 ? "system call " + std::to_string(call)
                                        : "allocation " + std::to_string(allocation);
    ::new (report) Report{};
    const int r = in_child([&] {
      ::alarm(60);
      const auto files = open_files();
      interposed::arm(call != 0 ? interposed::Fault{interposed::Kind::call, call}
                                : interposed::Fault{interposed::Kind::allocation, allocation});
      script();
      if (const char* name = interposed::disarm()) {
        report->fired = true;
        std::snprintf(report->what, sizeof report->what, "%s", name);
      }
      EXPECT_EQ(open_files(), files) << "file descriptors left open";
    });
    const std::string about = which + " (" + report->what + "): " + report->error;
    EXPECT_EQ(r, 0) << about;
    if (!report->fired) return false;
    if (!report->made && report->error[0] == 0) ADD_FAILURE() << about << ": no pool and no error";
    // A pool that could not be opened may exist (made, then not opened), whole; or not.
    auto pool = TestPool::try_open(path, options());
    EXPECT_TRUE(pool.ok()) << about << ", then " << pool.status().message();
    if (pool.ok()) {
      const std::uint64_t n = steps_in(*pool);
      EXPECT_GE(n, report->acked.load()) << about << ": acknowledged, and lost";
      EXPECT_LE(n, report->begun.load()) << about;
      expect_sound(*pool);
    }
    pool = failure(Code::closed, "", "");
    // A creator that failed before it had the lock may leave the lock's file, which the next one
    // removes.
    std::uint64_t others = 0;
    for (const auto& e : std::filesystem::directory_iterator(scratch.folder()))
      if (e.path() != path) ++others;
    EXPECT_EQ(others, 0U) << about << ": a half-made file is left";
    std::filesystem::remove(path);
    return true;
  }

  Scratch scratch{GetParam().medium != "file"};
  const std::string path = scratch.path();
  Report* report = nullptr;
};

TEST_P(NthCall, OfTheSystem) {
  std::uint64_t n = 1, step = sanitized ? 5 : 1;
  while (one(n, 0) && !HasFailure()) n += step;
  EXPECT_GT(n, 40U) << "the wrappers are not reached: is the library linked as a shared one?";
  std::printf("  %llu system calls failed, one at a time\n",
              static_cast<unsigned long long>((n - 1) / step));
}

TEST_P(NthCall, OfTheAllocator) {
  std::uint64_t n = 1, step = sanitized ? 7 : 1;
  while (one(0, n) && !HasFailure()) n += step;
  EXPECT_GT(n, 20U);
  std::printf("  %llu allocations failed, one at a time\n",
              static_cast<unsigned long long>((n - 1) / step));
}

std::vector<Case> cases() {
  std::vector<Case> all = durable_cases();
  all.push_back({"shadow/stm", "emulated", durable});  // orecs: shadow alone is biased
  return all;
}
INSTANTIATE_TEST_SUITE_P(Engines, NthCall, ::testing::ValuesIn(cases()), CaseName());

}  // namespace
}  // namespace perdure::faults
