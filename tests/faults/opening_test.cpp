// SPDX-License-Identifier: BSD-3-Clause
//
// Which openings Pool<> permits: one, in one process; several readers; handles inherited through
// fork(); an address that is taken.
#include <sched.h>
#include <sys/mount.h>

#include "faults.hpp"

namespace perdure::faults {
namespace {

class Opening : public ::testing::TestWithParam<Case> {
 protected:
  Options options() const { return small(GetParam()); }
  Options reading() const {
    Options o = options();
    o.read_only = true;
    return o;
  }
  /// Whether a reader may follow the pool's writer, and read what a killed one has left.
  static bool follows() {
    const auto* const entry = engine::find_instance(GetParam().engine);
    const auto* const family = entry != nullptr ? engine::find_family(entry->family) : nullptr;
    return family != nullptr && family->serves_readers;
  }
  Scratch scratch{GetParam().medium != "file"};
  const std::string path = scratch.path();
};

/// A child that runs `body`, reports it, and lives until the test ends it.
class Owner {
 public:
  explicit Owner(const std::function<void()>& body) {
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) std::abort();
    (void)std::fflush(nullptr);
    child_ = ::fork();
    if (child_ == 0) {
      body();
      (void)!::write(ready[1], "x", 1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char c = 0;
    while (::read(ready[0], &c, 1) < 0 && errno == EINTR) {}
    ::close(ready[0]);
  }
  ~Owner() { end(); }
  void end() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  [[nodiscard]] std::string name() const { return "process " + std::to_string(child_); }

 private:
  pid_t child_ = -1;
};

void busy(const Result<TestPool>& pool, const std::string& words) {
  EXPECT_EQ(pool.code(), Code::busy) << pool.status().message();
  EXPECT_NE(pool.status().message().find(words), std::string::npos) << pool.status().message();
}

TEST_P(Opening, Twice) {
  const std::string other = scratch.path("link");
  {
    TestPool pool = TestPool::open(path, options());
    pool.update([](auto& tx, Root& root) { step(tx, root, 1); });
    busy(TestPool::try_open(path, options()), "this process has it open already");
    busy(TestPool::try_open(path, reading()), "this process has it open already");
    std::filesystem::create_hard_link(path, other);
    busy(TestPool::try_open(other, options()), "as " + path);
    // The refused openings have not disturbed it.
    pool.update([](auto& tx, Root& root) { step(tx, root, 2); });
    EXPECT_EQ(steps_in(pool), 2U);
  }
  TestPool pool = TestPool::open(other, options());
  EXPECT_EQ(steps_in(pool), 2U);
}

TEST_P(Opening, ByAnotherProcessAndAfterItsDeath) {
  Owner owner([&] {
    static TestPool pool = TestPool::open(path, options());
    pool.update(durable, [](auto& tx, Root& root) { step(tx, root, 1); });
  });
  busy(TestPool::try_open(path, options()), owner.name());
  if (follows()) {
    EXPECT_EQ(steps_in(*std::make_unique<TestPool>(TestPool::open(path, reading()))), 1U);
  } else {
    busy(TestPool::try_open(path, reading()), owner.name());
  }
  owner.end();
  TestPool pool = TestPool::open(path, options());
  EXPECT_EQ(steps_in(pool), 1U);
  EXPECT_FALSE(pool.stats().recovery.was_clean);
}

TEST_P(Opening, ReadOnly) {
  make_clean(path, options(), 9);
  const std::string before = read_all(path);
  {
    Owner other([&] { static TestPool pool = TestPool::open(path, reading()); });
    TestPool pool = TestPool::open(path, reading());
    EXPECT_EQ(steps_in(pool), 9U);
    expect_sound(pool);
    EXPECT_EQ(code_of([&] { pool.update([](auto& tx, Root& root) { step(tx, root, 10); }); }),
              Code::read_only);
    EXPECT_EQ(pool.try_update([](auto& tx, Root& root) { step(tx, root, 10); }).code(),
              Code::read_only);
    EXPECT_EQ(pool.view(durable, [](auto& tx, const Root& root) { return tx(root.count); }), 9U);
    EXPECT_EQ(steps_in(pool), 9U);
    EXPECT_EQ(pool.file().medium().counters().writes(), 0U);
    busy(TestPool::try_open(path, options()), "this process");
    pool.close();
    EXPECT_EQ(code_of([&] { (void)steps_in(pool); }), Code::closed);
    busy(TestPool::try_open(path, options()), "this process");  // until it is destroyed
  }
  EXPECT_EQ(read_all(path), before);
  Options o = reading();
  EXPECT_EQ(TestPool::try_open(scratch.path("none"), o).code(), Code::not_found);
  EXPECT_FALSE(std::filesystem::exists(scratch.path("none")));
}

TEST_P(Opening, ReadOnlyOfAnUncleanPool) {
  make_unclean(path, options(), 3);
  const std::string before = read_all(path);
  {
    auto pool = TestPool::try_open(path, reading());
    if (follows()) {
      ASSERT_TRUE(pool.ok()) << pool.status().message();
      EXPECT_EQ(steps_in(*pool), 3U);
      expect_sound(*pool);
    } else {
      EXPECT_EQ(pool.code(), Code::read_only);
      EXPECT_NE(pool.status().message().find("recovery needs to write"), std::string::npos)
          << pool.status().message();
    }
  }
  EXPECT_EQ(read_all(path), before);
  { EXPECT_EQ(steps_in(*std::make_unique<TestPool>(TestPool::open(path, options()))), 3U); }
  EXPECT_EQ(TestPool::try_open(path, reading()).code(), Code::ok);
}

TEST_P(Opening, OnAReadOnlyMount) {
  const int r = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("perdure-test", scratch.folder().c_str(), "tmpfs", 0, "size=64m") != 0) {
      std::puts("  no tmpfs may be mounted here: not shown on a read-only mount");
      return;
    }
    make_clean(path, options(), 4);
    ASSERT_EQ(::mount("perdure-test", scratch.folder().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY,
                      "size=64m"),
              0);
    EXPECT_EQ(TestPool::try_open(path, options()).code(), Code::read_only);
    TestPool pool = TestPool::open(path, reading());
    EXPECT_EQ(steps_in(pool), 4U);
  });
  EXPECT_EQ(r, 0);
}

// The cost of opening grows with the log that recovery needs: there is none after a close.
TEST_P(Opening, AfterACloseTheRingsAreNotRead) {
  if (GetParam().medium != "file") GTEST_SKIP() << "a mapped log is read where it is touched";
  Options o = options();
  o.creation.log_size = 16 * MiB;
  make_clean(path, o, 3);
  const auto bytes_read = [] {
    std::ifstream io("/proc/self/io");
    std::string name;
    std::uint64_t n = 0;
    io >> name >> n;
    return n;
  };
  const std::uint64_t before = bytes_read();
  TestPool pool = TestPool::open(path, o);
  EXPECT_LT(bytes_read() - before, 2 * MiB);
  EXPECT_EQ(steps_in(pool), 3U);
  for (std::uint64_t n = 4; n < 20; ++n)
    pool.update([&](auto& tx, Root& root) { step(tx, root, n); });
  EXPECT_EQ(steps_in(pool), 19U);
}

TEST_P(Opening, AddressTaken) {
  make_unclean(path, options(), 3);
  const std::string before = read_all(path);
  void* const at = reinterpret_cast<void*>(header_of(path).base + 5 * MiB);
  ASSERT_EQ(::mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
            at);
  const auto pool = TestPool::try_open(path, options());
  EXPECT_EQ(pool.code(), Code::incompatible) << pool.status().message();
  EXPECT_NE(pool.status().message().find("is taken by"), std::string::npos)
      << pool.status().message();
  EXPECT_EQ(read_all(path), before);
  ::munmap(at, 4096);
  TestPool again = TestPool::open(path, options());
  EXPECT_EQ(steps_in(again), 3U);
}

// --- fork ----------------------------------------------------------------------------------------

TEST_P(Opening, AForkedChildsHandleIsRefused) {
  auto pool = std::make_unique<TestPool>(TestPool::open(path, options()));
  pool->update([](auto& tx, Root& root) { step(tx, root, 1); });
  auto receipt = pool->update(async, [](auto& tx, Root& root) { step(tx, root, 2); });
  EXPECT_EQ(
      in_child([&] {
        EXPECT_EQ(code_of([&] { pool->update([](auto& tx, Root& root) { step(tx, root, 3); }); }),
                  Code::closed);
        EXPECT_EQ(code_of([&] {
                    (void)pool->view([](auto& tx, const Root& root) { return tx(root.count); });
                  }),
                  Code::closed);
        EXPECT_EQ(code_of([&] { pool->checkpoint(); }), Code::closed);
        EXPECT_EQ(code_of([&] { pool->close(); }), Code::closed);
        EXPECT_NE(message_of([&] {
                    pool->update([](auto& tx, Root& root) { step(tx, root, 3); });
                  }).find("fork"),
                  std::string::npos);
        ::alarm(20);  // a destructor that joined the parent's threads would wait for ever
        pool.reset();
        busy(TestPool::try_open(path, options()), "process " + std::to_string(::getppid()));
    // The child may use another pool.
#if !defined( \
    __SANITIZE_THREAD__)  // it can't start threads in a child of a process that had several
        make_clean(scratch.path("childs"), options(), 3);
#endif
      }),
      0);
  receipt.wait();
  pool->update([](auto& tx, Root& root) { step(tx, root, 3); });
  EXPECT_EQ(steps_in(*pool), 3U);
  pool->close();
  pool.reset();
  TestPool again = TestPool::open(path, options());
  EXPECT_EQ(steps_in(again), 3U);
  expect_sound(again);
}

// fork() inside a view: the child's copy of the pool refuses whatever comes after it.
TEST_P(Opening, ForkInAView) {
  TestPool pool = TestPool::open(path, options());
  pool.update([](auto& tx, Root& root) { step(tx, root, 1); });
  struct Out {};
  int status = -1;
  (void)std::fflush(nullptr);
  try {
    pool.view([&](auto&, const Root&) {
      const pid_t child = ::fork();
      if (child == 0) throw Out{};
      ::waitpid(child, &status, 0);
    });
  } catch (const Out&) {
    const Code view = code_of([&] { pool.view([](auto&, const Root&) {}); }),
               update = code_of([&] { pool.update([](auto&, Root&) {}); });
    ::_exit(view != Code::closed ? 3 : update != Code::closed ? 4 : 0);
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  pool.update([](auto& tx, Root& root) { step(tx, root, 2); });
  EXPECT_EQ(steps_in(pool), 2U);
  pool.close();
}

// fork() inside a transaction: the child's copy of it can neither continue nor commit; the parent's
// is not disturbed.
TEST_P(Opening, ForkInATransaction) {
  TestPool pool = TestPool::open(path, options());
  pool.update([](auto& tx, Root& root) { step(tx, root, 1); });
  struct Out {};
  int status = -1, other = -1;
  try {
    pool.update([&](auto& tx, Root& root) {
      tx(root.count) = 2;
      (void)std::fflush(nullptr);
      const pid_t child = ::fork();
      if (child == 0) throw Out{};  // unwinds through update(), as an error in the child would
      step(tx, root, 2);
      ::waitpid(child, &status, 0);
    });
  } catch (const Out&) {
    int r = 0;
    if (code_of([&] { pool.update([](auto& tx, Root& root) { step(tx, root, 9); }); }) !=
        Code::closed)
      r = 3;
    ::_exit(r);
  }
  // A child that continues as if nothing had happened must not commit: the log belongs to its
  // parent.
  pid_t child = -1;
  const Code code = code_of([&] {
    pool.update([&](auto& tx, Root& root) {
      step(tx, root, 3);
      (void)std::fflush(nullptr);
      child = ::fork();
    });
  });
  if (child == 0) ::_exit(code == Code::closed ? 0 : 4);
  EXPECT_EQ(code, Code::ok);
  ::waitpid(child, &other, 0);
  EXPECT_EQ(other, 0) << (WIFSIGNALED(other) ? "signal " + std::to_string(WTERMSIG(other))
                                             : "status " + std::to_string(WEXITSTATUS(other)));
  EXPECT_EQ(status, 0) << (WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                               : "status " + std::to_string(WEXITSTATUS(status)));
  EXPECT_EQ(steps_in(pool), 3U);
  pool.update([](auto& tx, Root& root) { step(tx, root, 4); });
  pool.close();
  EXPECT_EQ(header_of(path).clean, 1U);
}

INSTANTIATE_TEST_SUITE_P(Engines, Opening, ::testing::ValuesIn(durable_cases()), CaseName());

}  // namespace
}  // namespace perdure::faults
