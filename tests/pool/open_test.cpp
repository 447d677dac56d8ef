// SPDX-License-Identifier: BSD-3-Clause
//
// Which openings of a pool are permitted: one writer or several readers, for any process and any
// name; and an address that is taken.
#include <sys/mman.h>
#include <sys/mount.h>

#include <sched.h>
#include <algorithm>

#include "pool_test.hpp"

namespace perdure::pool {
namespace {

using namespace testing;

class OpenTest : public ::testing::Test {
 protected:
  void SetUp() override { make_pool(small(path)); }
  Result<std::unique_ptr<OpenPool>> open(bool read_only = false,
                                         const std::string& name = {}) const {
    OpenFile how = small(name.empty() ? path : name);
    how.read_only = read_only;
    how.create = false;
    return OpenPool::open(how, tester());
  }
  static void busy(const Result<std::unique_ptr<OpenPool>>& r, const std::string& words) {
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.code(), Code::busy) << r.status().message();
    EXPECT_NE(r.status().message().find(words), std::string::npos) << r.status().message();
  }

  Scratch scratch;
  const std::string path = scratch.path();
};

TEST_F(OpenTest, NotThere) {
  auto r = open(false, scratch.path("none"));
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.code(), Code::not_found) << r.status().message();
  r = open(true, scratch.path("none"));
  EXPECT_EQ(r.code(), Code::not_found);
  EXPECT_FALSE(std::filesystem::exists(scratch.path("none")));
  OpenFile how = small(path);
  how.must_create = true;
  EXPECT_EQ(OpenPool::open(how, tester()).code(), Code::exists);
}

TEST_F(OpenTest, SameProcess) {
  auto first = open();
  ASSERT_TRUE(first.ok());
  busy(open(), "this process has it open already");
  busy(open(true), "this process has it open already");
  const std::string other = scratch.path("link"), symbolic = scratch.path("symlink");
  std::filesystem::create_hard_link(path, other);
  std::filesystem::create_symlink(path, symbolic);
  busy(open(false, other), "this process has it open already, as " + path);
  busy(open(false, symbolic), "this process has it open already, as " + path);
  first->reset();
  EXPECT_TRUE(open(false, other).ok());
}

TEST_F(OpenTest, OtherProcessAndItsDeath) {
  Helper owner([&] {
    static auto held = open();
    ASSERT_TRUE(held.ok());
    ASSERT_TRUE((*held)->start_session(ViewPolicy::shadow).ok());
  });
  const std::string who = "process " + std::to_string(owner.pid());
  busy(open(), who);
  busy(open(true), who);
  busy(open(true), "has it open for writing");
  const std::string other = scratch.path("link");
  std::filesystem::create_hard_link(path, other);
  busy(open(false, other), who);
  owner.end();
  auto r = open(true);  // killed in its session: not clean
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.code(), Code::read_only);
  EXPECT_NE(r.status().message().find("recovery needs to write"), std::string::npos)
      << r.status().message();
  EXPECT_TRUE(open().ok());
}

TEST_F(OpenTest, ReadersShareAndKeepWritersOut) {
  Helper reader([&] {
    static auto held = open(true);
    ASSERT_TRUE(held.ok());
  });
  auto mine = open(true);
  ASSERT_TRUE(mine.ok()) << mine.status().message();
  ASSERT_TRUE((*mine)->start_session(ViewPolicy::shadow).ok());
  EXPECT_EQ((*mine)->heap().reserve(64).code(), Code::read_only);
  EXPECT_EQ((*mine)->publish().code(), Code::read_only);
  EXPECT_EQ((*mine)->close_clean(0).code(), Code::read_only);
  EXPECT_EQ((*mine)->medium().counters().writes(), 0U);
  mine->reset();
  busy(open(), "process " + std::to_string(reader.pid()));
  reader.end();
  EXPECT_TRUE(open().ok());
}

// A child made by fork() has copies of the descriptors: they are closed in it, so that the pool is
// free when the parent ends.
TEST_F(OpenTest, ForkedChildDoesNotKeepItBusy) {
  auto mine = open();
  ASSERT_TRUE(mine.ok());
  Helper child([] {});
  busy(open(), "this process");
  mine->reset();
  auto again = open();
  EXPECT_TRUE(again.ok()) << again.status().message();
  again->reset();

  // The child's copy of the object must not close what the child has opened since, nor unlock
  // anything.
  auto held = open();
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(in_child([&] {
              busy(open(), "process " + std::to_string(::getppid()));
              make_pool(small(scratch.path("childs")));
              auto childs = open(false, scratch.path("childs"));
              ASSERT_TRUE(childs.ok());
              held->reset();
              busy(open(false, scratch.path("childs")), "this process");
              busy(open(), "process " + std::to_string(::getppid()));
            }),
            0);
  busy(open(), "this process");
}

TEST_F(OpenTest, ReplacedFileIsAnother) {
  auto mine = open();
  ASSERT_TRUE(mine.ok());
  std::filesystem::rename(path, scratch.path("moved"));
  make_pool(small(path));
  EXPECT_TRUE(open().ok());
  busy(open(false, scratch.path("moved")), "this process has it open already, as " + path);
}

TEST_F(OpenTest, ReadOnlyFileAndMount) {
  // On a new mount, in a new mount namespace.
  const int r = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("perdure-test", scratch.folder().c_str(), "tmpfs", 0, "size=32m") != 0) {
      std::puts("no tmpfs may be mounted here: not shown on a read-only mount");
      return;
    }
    make_pool(small(path));
    ASSERT_TRUE(open().ok());
    ASSERT_EQ(::mount("perdure-test", scratch.folder().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY,
                      "size=32m"),
              0);
    {
      auto reader = open(true);
      ASSERT_TRUE(reader.ok()) << reader.status().message();
      EXPECT_TRUE((*reader)->start_session(ViewPolicy::shadow).ok());
    }
    auto writer = open();
    ASSERT_FALSE(writer.ok());
    EXPECT_EQ(writer.code(), Code::read_only) << writer.status().message();
    EXPECT_NE(writer.status().message().find("open it with read_only"), std::string::npos)
        << writer.status().message();
    OpenFile how = small(scratch.path("new"));
    EXPECT_EQ(OpenPool::open(how, tester()).code(), Code::read_only);
    ASSERT_EQ(::mount("perdure-test", scratch.folder().c_str(), "tmpfs", MS_REMOUNT, "size=32m"),
              0);
    {
      auto session = open();
      ASSERT_TRUE(session.ok());
      ASSERT_TRUE((*session)->start_session(ViewPolicy::shadow).ok());
    }
    ASSERT_EQ(::mount("perdure-test", scratch.folder().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY,
                      "size=32m"),
              0);
    auto unclean = open(true);
    ASSERT_FALSE(unclean.ok());
    EXPECT_EQ(unclean.code(), Code::read_only);
    EXPECT_NE(unclean.status().message().find("recovery needs to write"), std::string::npos)
        << unclean.status().message();
  });
  EXPECT_EQ(r, 0);
}

TEST_F(OpenTest, NoPermission) {
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(::chmod(scratch.folder().c_str(), 0555), 0);  // no new files, not even for its owner
  const int r = in_child([&] {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) return;  // root is not restricted
    auto writer = open();
    EXPECT_EQ(writer.code(), Code::read_only) << writer.status().message();
    auto reader = open(true);
    EXPECT_TRUE(reader.ok()) << reader.status().message();
    EXPECT_FALSE(OpenPool::open(small(scratch.path("new")), tester()).ok());
  });
  EXPECT_EQ(::chmod(scratch.folder().c_str(), 0755), 0);  // it is removed at the end
  EXPECT_EQ(r, 0);
}

// --- addresses -----------------------------------------------------------------------------------

TEST_F(OpenTest, ViewReturnsToItsBase) {
  std::uint64_t base = 0;
  for (int i = 0; i < 3; ++i) {
    auto pool = open();
    ASSERT_TRUE(pool.ok());
    ASSERT_TRUE((*pool)->start_session(ViewPolicy::shadow).ok());
    const auto at = reinterpret_cast<std::uint64_t>((*pool)->view());
    if (i > 0) {
      EXPECT_EQ(at, base);
    }
    base = at;
    EXPECT_EQ(at, (*pool)->header().base);
    ASSERT_TRUE((*pool)->close_clean(0).ok());
  }
}

TEST_F(OpenTest, BaseTakenIsRefusedByName) {
  const Header h = header_of(path);
  auto* const at = reinterpret_cast<void*>(h.base + 2 * MiB);
  const std::string before = read_all(path);

  void* anonymous =
      ::mmap(at, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(anonymous, at);
  auto r = open();
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.code(), Code::incompatible);
  EXPECT_NE(r.status().message().find("is taken by anonymous memory at 0x"), std::string::npos)
      << r.status().message();
  ::munmap(at, 4096);

  const std::string name = scratch.path("mapped");
  write_all(name, std::string(4096, 'x'));
  const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0), at);
  ::close(fd);
  r = open();
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.status().message().find("is taken by " + name), std::string::npos)
      << r.status().message();
  ::munmap(at, 4096);

  // Tools that know no layout need no mapping.
  Identity tool = tester();
  tool.layout_any = true;
  ASSERT_EQ(::mmap(at, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
            at);
  {
    auto looked = OpenPool::open(small(path), tool);
    ASSERT_TRUE(looked.ok());
    EXPECT_EQ((*looked)->start_session(ViewPolicy::shadow).code(), Code::incompatible);
  }
  EXPECT_TRUE(read_all(path) == before);  // a refused opening has not written
  ::munmap(at, 4096);
  EXPECT_TRUE(open().ok());
}

TEST_F(OpenTest, BaseTakenByAnotherPool) {
  OpenFile how = small(scratch.path("second"));
  how.base = header_of(path).base;
  make_pool(how);
  auto first = open();
  ASSERT_TRUE(first.ok());
  auto r = OpenPool::open(how, tester());
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.status().message().find("taken by the view of pool " + path), std::string::npos)
      << r.status().message();
  how.path = scratch.path("third");
  r = OpenPool::open(how, tester());
  EXPECT_EQ(r.code(), Code::incompatible) << r.status().message();
  EXPECT_FALSE(std::filesystem::exists(how.path));
}

TEST_F(OpenTest, ManyPoolsAtOnce) {
  std::vector<std::unique_ptr<OpenPool>> pools;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (int i = 0; i < 24; ++i) {
    auto pool = OpenPool::open(small(scratch.path("p" + std::to_string(i))), tester());
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    ASSERT_TRUE((*pool)->start_session(ViewPolicy::shared).ok());
    ranges.emplace_back((*pool)->header().base,
                        (*pool)->header().base + (*pool)->header().max_data_bytes);
    pools.push_back(std::move(*pool));
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) EXPECT_LE(ranges[i - 1].second, ranges[i].first);
}

#if defined(__SANITIZE_THREAD__)
TEST_F(OpenTest, AddressOfAnotherBuild) {
  for (const std::uint64_t at : {header_a, header_b}) {
    Header h = header_of(path, at);
    h.base = 0x200000000000;
    h.checksum = header_checksum(h);
    poke(path, at, &h, sizeof h);
  }
  auto r = open();
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.code(), Code::incompatible);
  EXPECT_NE(r.status().message().find("ThreadSanitizer"), std::string::npos)
      << r.status().message();
}
#endif

}  // namespace
}  // namespace perdure::pool
