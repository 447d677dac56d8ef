// SPDX-License-Identifier: BSD-3-Clause
//
// Making pools: the contents of a new one, that creators exclude each other, and that a creator
// killed at any instant leaves no pool or a whole one.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include "perdure/pool/create.hpp"
#include "pool_test.hpp"

namespace perdure::pool {
namespace {

using namespace testing;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& e : std::filesystem::directory_iterator(folder))
    names.push_back(e.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Create, WhatANewPoolIs) {
  const Scratch scratch;
  const OpenFile how = small(scratch.path());
  auto r = OpenPool::open(how, tester());
  ASSERT_TRUE(r.ok()) << r.status().message();
  EXPECT_TRUE((*r)->created());
  EXPECT_EQ(names_in(scratch.folder()), std::vector<std::string>{"pool"});
  const Header& h = (*r)->header();
  EXPECT_EQ(engine_name(h), "tester");
  EXPECT_EQ(layout_text(h), tester().layout);
  EXPECT_EQ(h.version, format_version);
  EXPECT_EQ(h.ring_count, 2U);
  EXPECT_EQ(h.ring_bytes, 32 * KiB);
  EXPECT_EQ(h.log_bytes, 2 * MiB);
  EXPECT_EQ(h.max_data_bytes, 4 * MiB);
  EXPECT_EQ(h.data_bytes, 18 * chunk_bytes);  // the directory's chunk, the root's, 16 more
  EXPECT_EQ(h.clean, 1U);
  EXPECT_EQ(h.epoch, 0U);
  EXPECT_EQ(h.root_offset, chunk_bytes + classes[size_class(48)].first);
  EXPECT_EQ(h.heap_used, 48U);
  EXPECT_EQ(h.uuid[6] >> 4, 4);
  EXPECT_EQ(std::filesystem::file_size(how.path), h.log_bytes + h.data_bytes);
  const auto audit = audit_heap((*r)->medium().data(), h);
  EXPECT_TRUE(audit.problems.empty()) << audit.problems.front();
  EXPECT_EQ(audit.blocks, 1U);
  r->reset();
  r = OpenPool::open(how, tester());
  ASSERT_TRUE(r.ok());
  EXPECT_FALSE((*r)->created());
}

TEST(Create, ThroughASymbolicLinkToNothing) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.folder() + "/real");
  std::filesystem::create_symlink("second", scratch.path());  // relative, to another link
  std::filesystem::create_symlink(scratch.folder() + "/real/file", scratch.folder() + "/second");
  OpenFile how = small(scratch.path());
  {
    auto r = OpenPool::open(how, tester());
    ASSERT_TRUE(r.ok()) << r.status().message();
    EXPECT_TRUE((*r)->created());
    EXPECT_EQ(OpenPool::open(small(scratch.folder() + "/real/file"), tester()).code(), Code::busy);
  }
  EXPECT_EQ(names_in(scratch.folder() + "/real"), std::vector<std::string>{"file"});
  EXPECT_EQ(names_in(scratch.folder()), (std::vector<std::string>{"pool", "real", "second"}));
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path()));
  how.create = false;
  auto again = OpenPool::open(how, tester());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_FALSE((*again)->created());
  again->reset();
  how.must_create = true;
  EXPECT_EQ(OpenPool::open(how, tester()).code(), Code::exists);
}

TEST(Create, LinksThatLeadNowhereAreNamed) {
  const Scratch scratch;
  std::filesystem::create_symlink("no-folder/file", scratch.path());
  const auto missing = OpenPool::open(small(scratch.path()), tester());
  EXPECT_EQ(missing.code(), Code::not_found);
  EXPECT_NE(missing.status().message().find("folder does not exist"), std::string::npos)
      << missing.status().message();
  const std::string circle = scratch.folder() + "/circle";
  std::filesystem::create_symlink("circle", circle);
  EXPECT_FALSE(OpenPool::open(small(circle), tester()).ok());
  EXPECT_EQ(names_in(scratch.folder()), (std::vector<std::string>{"circle", "pool"}));
}

// What `touch` or mkstemp has made is a name for a new pool, with the file's mode.
TEST(Create, AnEmptyFileBecomesAPool) {
  const Scratch scratch;
  const std::string path = scratch.path();
  const auto touch = [&] {
    std::ofstream(path).close();
    ASSERT_EQ(0, ::chmod(path.c_str(), 0640));
  };
  touch();
  OpenFile how = small(path);
  how.must_create = true;
  EXPECT_EQ(OpenPool::open(how, tester()).code(), Code::exists);
  how = small(path);
  for (const bool read_only : {false, true}) {
    how.create = false;
    how.read_only = read_only;
    const auto refused = OpenPool::open(how, tester());
    EXPECT_EQ(refused.code(), Code::incompatible);
    EXPECT_NE(refused.status().message().find("an empty file"), std::string::npos)
        << refused.status().message();
    EXPECT_EQ(std::filesystem::file_size(path), 0U);
  }
  how = small(path);
  {
    auto r = OpenPool::open(how, tester());
    ASSERT_TRUE(r.ok()) << r.status().message();
    EXPECT_TRUE((*r)->created());
    EXPECT_EQ(OpenPool::open(how, tester()).code(), Code::busy);
  }
  EXPECT_EQ(names_in(scratch.folder()), std::vector<std::string>{"pool"});
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0640));
  auto again = OpenPool::open(how, tester());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_FALSE((*again)->created());
}

TEST(Create, AnEmptyFileBehindALinkBecomesAPool) {
  const Scratch scratch;
  std::ofstream(scratch.folder() + "/real").close();
  std::filesystem::create_symlink("real", scratch.path());
  auto r = OpenPool::open(small(scratch.path()), tester());
  ASSERT_TRUE(r.ok()) << r.status().message();
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path()));
  EXPECT_GT(std::filesystem::file_size(scratch.folder() + "/real"), 0U);
  EXPECT_EQ(names_in(scratch.folder()), (std::vector<std::string>{"pool", "real"}));
}

TEST(Create, AnEmptyFileStaysWhereTheCreationFails) {
  const Scratch scratch;
  std::ofstream(scratch.path()).close();
  OpenFile how = small(scratch.path());
  how.rings = max_rings + 1;
  EXPECT_EQ(OpenPool::open(how, tester()).code(), Code::invalid);
  EXPECT_EQ(names_in(scratch.folder()), std::vector<std::string>{"pool"});
  EXPECT_EQ(std::filesystem::file_size(scratch.path()), 0U);
}

// What is written to the file meanwhile is kept.
TEST(Create, AFileThatIsNoLongerEmptyIsNotReplaced) {
  const Scratch scratch;
  const std::string path = scratch.path();
  std::ofstream(path).close();
  auto lock = FileLock::acquire(path, FileLock::Mode::write, path);
  ASSERT_TRUE(lock.ok());
  std::ofstream(path) << "text";
  EXPECT_EQ(create_file(small(path), tester(), &*lock).code(), Code::exists);
  EXPECT_EQ(std::filesystem::file_size(path), 4U);
  std::filesystem::rename(path, path + "2");
  std::filesystem::resize_file(path + "2", 0);
  std::ofstream(path).close();  // another empty file of that name
  EXPECT_EQ(create_file(small(path), tester(), &*lock).code(), Code::exists);
  EXPECT_EQ(std::filesystem::file_size(path), 0U);
}

TEST(Create, NamesOfAnyLength) {
  const Scratch scratch;
  for (const std::size_t length : {1U, 240U, 241U, 242U, 246U, 247U, 254U, 255U}) {
    const std::string name(length, static_cast<char>('a' + length % 26));
    auto r = OpenPool::open(small(scratch.folder() + "/" + name), tester());
    ASSERT_TRUE(r.ok()) << length << ": " << r.status().message();
    EXPECT_EQ(names_in(scratch.folder()), std::vector<std::string>{name});
    r->reset();
    std::filesystem::remove(scratch.folder() + "/" + name);
  }
  const auto longer =
      OpenPool::open(small(scratch.folder() + "/" + std::string(256, 'x')), tester());
  EXPECT_FALSE(longer.ok());
  EXPECT_NE(longer.status().message().find("too long"), std::string::npos)
      << longer.status().message();
}

TEST(Create, RootsOfAllSizes) {
  const Scratch scratch;
  for (const std::uint64_t bytes :
       {0ULL, 1ULL, 16ULL, 1000ULL, 4096ULL, 5000ULL, 65536ULL, 65537ULL, 300000ULL}) {
    OpenFile how = small(scratch.path("root" + std::to_string(bytes)));
    Identity who = tester();
    who.root_bytes = bytes;
    for (const auto policy : {ViewPolicy::shadow, ViewPolicy::shared}) {
      auto r = OpenPool::open(how, who);
      ASSERT_TRUE(r.ok()) << bytes << r.status().message();
      ASSERT_TRUE((*r)->start_session(policy).ok());
      const auto audit = audit_heap((*r)->medium().data(), (*r)->header());
      EXPECT_TRUE(audit.problems.empty()) << bytes << ": " << audit.problems.front();
      if (bytes == 0) continue;
      const auto size = (*r)->heap().block_bytes((*r)->header().root_offset);
      ASSERT_TRUE(size.ok()) << bytes << size.status().message();
      EXPECT_GE(*size, bytes);
      EXPECT_EQ((*r)->heap().prepare_free((*r)->header().root_offset).code(), Code::invalid);
      ASSERT_TRUE((*r)->close_clean(0).ok());
    }
  }
}

// A device-dax can be mapped in whole 2 MiB only; tests/qemu makes pools on one.
TEST(Create, OnADeviceAllIsWholePages) {
  OpenFile how;
  how.path = "/dev/dax0.0";
  Identity who = tester();
  for (const std::uint64_t log : {0 * MiB, 1 * KiB, 64 * KiB, 5 * MiB})
    for (const std::uint32_t rings : {0U, 1U, 3U, 4U})
      for (const std::uint64_t most : {5 * MiB, 128 * MiB, MiB << 20})
        for (const std::uint64_t root : {0 * MiB, KiB, 4 * MiB})
          for (const std::uint64_t device : {8 * MiB, 126 * MiB, 127 * MiB, 400 * MiB}) {
            how.log_bytes = log;
            who.rings = rings;
            how.max_bytes = most;
            who.root_bytes = root;
            const auto plan = plan_on_device(device, how, who);
            if (!plan.ok()) {
              EXPECT_EQ(plan.code(), Code::full) << plan.status().message();
              EXPECT_TRUE(device == 8 * MiB || most > device) << plan.status().message();
              continue;
            }
            Header h{};
            h.log_bytes = plan->log_bytes;
            h.ring_bytes = plan->ring_bytes;
            h.ring_count = plan->rings;
            for (std::uint32_t i = 0; i < rings; ++i) EXPECT_EQ(ring_offset(h, i) % (2 * MiB), 0U);
            EXPECT_GE(ring_offset(h, 0), first_ring);
            EXPECT_EQ((plan->log_bytes | plan->ring_bytes | plan->data_bytes) % (2 * MiB), 0U);
            EXPECT_LE(plan->log_bytes + plan->data_bytes, device);
            EXPECT_LE(plan->data_bytes, plan->max_data_bytes);
            EXPECT_LT(plan->max_data_bytes, most + 2 * MiB);
            EXPECT_GE(plan->data_bytes, first_chunk(plan->max_data_bytes) * chunk_bytes + root);
          }
}

TEST(Create, DefaultsAreModest) {
  const Scratch scratch;
  OpenFile how;
  how.path = scratch.path();
  how.medium = "emulated";
  auto r = OpenPool::open(how, tester());
#if defined(__SANITIZE_THREAD__)
  if (!r.ok()) GTEST_SKIP() << r.status().message();
#endif
  ASSERT_TRUE(r.ok()) << r.status().message();
  EXPECT_EQ((*r)->header().log_bytes, 64 * MiB);
  EXPECT_EQ((*r)->header().max_data_bytes, 64ULL << 30);
  EXPECT_LE((*r)->header().data_bytes, 10 * MiB);  // 8 of them are the directory
}

TEST(Create, RequestsThatMakeNoSense) {
  const Scratch scratch;
  const auto refused = [&](const std::function<void(OpenFile&, Identity&)>& change) {
    OpenFile how = small(scratch.path());
    Identity who = tester();
    change(how, who);
    auto r = OpenPool::open(how, who);
    EXPECT_FALSE(r.ok());
    EXPECT_EQ(r.code(), Code::invalid) << r.status().message();
    EXPECT_TRUE(names_in(scratch.folder()).empty());
  };
  refused([](OpenFile& how, Identity&) { how.max_bytes = 1; });
  refused([](OpenFile& how, Identity&) { how.max_bytes = 1ULL << 50; });
  refused([](OpenFile& how, Identity&) { how.log_bytes = 1ULL << 60; });
  refused([](OpenFile& how, Identity&) { how.rings = 129; });
  refused([](OpenFile&, Identity& who) { who.engine.clear(); });
  refused([](OpenFile&, Identity& who) { who.engine = std::string(40, 'e'); });
  refused([](OpenFile&, Identity& who) { who.root_bytes = 5 * MiB; });
  refused([](OpenFile& how, Identity&) { how.path.clear(); });
  refused([](OpenFile& how, Identity&) { how.read_only = how.must_create = true; });
  OpenFile how = small(scratch.path("no/such/folder"));
  EXPECT_EQ(OpenPool::open(how, tester()).code(), Code::not_found);
}

TEST(Create, OnEveryMedium) {
  for (const bool memory : {true, false}) {
    const Scratch scratch(memory);
    for (const char* kind : {"auto", "file", "emulated"}) {
      OpenFile how = small(scratch.path(kind));
      how.medium = kind;
      for (int session = 0; session < 2; ++session) {
        auto r = OpenPool::open(how, tester());
        ASSERT_TRUE(r.ok()) << kind << r.status().message();
        ASSERT_TRUE((*r)->start_session(ViewPolicy::shadow).ok());
        EXPECT_EQ((*r)->header().append_unit, (*r)->medium().append_unit());
        HeapUser user(**r);
        ASSERT_TRUE(user.allocate(100).ok());
        user.close();
        const auto audit = audit_heap((*r)->medium().data(), (*r)->header());
        EXPECT_TRUE(audit.problems.empty()) << audit.problems.front();
      }
    }
  }
}

// A pool made on memory (append unit 64) continues on a file (4096), and vice versa: between
// sessions the rings are empty.
TEST(Create, MovesBetweenMedia) {
  const Scratch scratch;
  OpenFile how = small(scratch.path());
  for (const char* kind : {"emulated", "file", "emulated", "file"}) {
    how.medium = kind;
    auto r = OpenPool::open(how, tester());
    ASSERT_TRUE(r.ok()) << r.status().message();
    ASSERT_TRUE((*r)->start_session(ViewPolicy::shadow).ok());
    EXPECT_EQ((*r)->header().append_unit, std::string(kind) == "file" ? 4096U : 64U);
    ASSERT_TRUE((*r)->close_clean(0).ok());
  }
}

TEST(Create, OneCreatorAtATime) {
  const Scratch scratch;
  const std::string path = scratch.path();
  Helper other([&] {
    static auto lock = FileLock::acquire(path + ".creating", FileLock::Mode::create, path);
    ASSERT_TRUE(lock.ok());
  });
  auto r = OpenPool::open(small(path), tester());
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.code(), Code::busy) << r.status().message();
  EXPECT_NE(r.status().message().find("process " + std::to_string(other.pid())), std::string::npos)
      << r.status().message();
  EXPECT_NE(r.status().message().find("is creating it"), std::string::npos) << r.status().message();
  other.end();
  EXPECT_TRUE(OpenPool::open(small(path), tester()).ok());
  EXPECT_EQ(names_in(scratch.folder()), std::vector<std::string>{"pool"});
}

// Many processes that all want to make the same pool: one makes it, the others find it, or get
// `busy`.
TEST(Create, ManyCreators) {
  const Scratch scratch;
  const std::string path = scratch.path();
  for (int round = 0; round < 5; ++round) {
    std::vector<pid_t> children;
    for (int i = 0; i < 6; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        auto r = OpenPool::open(small(path), tester());
        const bool fine = r.ok() || r.code() == Code::busy;
        if (!fine) std::puts(r.status().message().c_str());
        (void)std::fflush(nullptr);
        ::_exit(!fine ? 1 : r.ok() && (*r)->created() ? 42 : 0);
      }
      children.push_back(child);
    }
    int creators = 0;
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status));
      EXPECT_NE(WEXITSTATUS(status), 1);
      creators += WEXITSTATUS(status) == 42 ? 1 : 0;
    }
    EXPECT_EQ(creators, 1);
    EXPECT_EQ(names_in(scratch.folder()), std::vector<std::string>{"pool"});
    std::filesystem::remove(path);
  }
}

void killed_while_creating(bool memory, const char* kind, int kills) {
  const Scratch scratch(memory);
  OpenFile how = small(scratch.path());
  how.medium = kind;
  const auto begin = std::chrono::steady_clock::now();
  make_pool(how);
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(
                         std::chrono::steady_clock::now() - begin)
                         .count();
  std::filesystem::remove(how.path);
  std::mt19937_64 random(7);
  int absent = 0, there = 0;
  // If the machine has become slower meanwhile: later kills, until one has come too late.
  for (int i = 0; i < kills || ((absent == 0 || there == 0) && i < 8 * kills); ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto r = OpenPool::open(how, tester());
      if (!r.ok()) ::_exit(3);
      for (;;) ::pause();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(
        random() % (static_cast<std::uint64_t>(2 * whole + 500) << i / kills)));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the creator failed";
    OpenFile look = how;
    look.create = false;
    auto r = OpenPool::open(look, tester());
    if (!r.ok()) {
      ASSERT_EQ(r.code(), Code::not_found) << r.status().message();
      ++absent;
      continue;  // the next creator takes over what this one left
    }
    ++there;
    const auto audit = audit_heap((*r)->medium().data(), (*r)->header());
    ASSERT_TRUE(audit.problems.empty()) << audit.problems.front();
    ASSERT_EQ((*r)->header().clean, 1U);
    r->reset();
    std::filesystem::remove(how.path);
  }
  make_pool(how);
  EXPECT_EQ(names_in(scratch.folder()), std::vector<std::string>{"pool"});
  EXPECT_GT(absent, 0);
  EXPECT_GT(there, 0);
}

TEST(Create, KilledAtAnyInstant) { killed_while_creating(true, "emulated", 100); }
TEST(Create, KilledAtAnyInstantOnAFile) { killed_while_creating(false, "file", 30); }

// --- a full disk ---------------------------------------------------------------------------------

bool small_disk(const std::string& folder, const char* size) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("perdure-test", folder.c_str(), "tmpfs", 0, size) == 0;
}
bool small_files(std::uint64_t bytes) {
  struct rlimit limit = {bytes, bytes};
  return ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

void full_disk(const char* kind) {
  const Scratch scratch(false);
  const int r = in_child([&] {
    const bool mounted = small_disk(scratch.folder(), "size=8m");
    if (!mounted) {
      std::puts("no tmpfs may be mounted here: shown with RLIMIT_FSIZE instead");
      ASSERT_TRUE(small_files(8 * MiB));
    }
    OpenFile how = small(scratch.path());
    how.medium = kind;
    how.max_bytes = 64 * MiB;
    // Creation is refused, leaves nothing behind, and succeeds when it asks for less.
    how.initial_bytes = 20 * MiB;
    auto big = OpenPool::open(how, tester());
    ASSERT_FALSE(big.ok());
    EXPECT_EQ(big.code(), Code::full) << big.status().message();
    EXPECT_EQ(big.status().message().find(how.path + ":"), 0U) << big.status().message();
    EXPECT_TRUE(names_in(scratch.folder()).empty());
    how.initial_bytes = 0;
    auto pool = OpenPool::open(how, tester());
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    ASSERT_TRUE((*pool)->start_session(ViewPolicy::shadow).ok());
    // Growth: in steps for which the disk has space, then refused; what exists stays usable.
    HeapUser user(**pool);
    std::vector<std::uint64_t> blocks;
    for (;;) {
      auto b = user.allocate(100 * KiB);
      if (!b.ok()) {
        EXPECT_EQ(b.code(), Code::full) << b.status().message();
        break;
      }
      blocks.push_back(*b);
      std::memset((*pool)->view() + *b, 0x5a, 100 * KiB);
      ASSERT_LT(blocks.size(), 1000U);
    }
    EXPECT_GT(blocks.size(), 35U);  // most of the 6 MiB that remain after the log
    const std::uint64_t data = (*pool)->data_bytes();
    EXPECT_EQ((*pool)->grow(data + 4 * MiB).code(), Code::full);
    EXPECT_EQ((*pool)->data_bytes(), data);
    ASSERT_TRUE(user.free(blocks.back()).ok());
    ASSERT_TRUE(user.allocate(100 * KiB).ok());
    user.close();
    const auto audit =
        audit_heap((*pool)->medium().data(), (*pool)->header(), {}, &(*pool)->medium());
    EXPECT_TRUE(audit.problems.empty()) << audit.problems.front();
    EXPECT_EQ(audit.blocks, blocks.size() + 1);
    if (mounted) {  // space again
      ASSERT_EQ(::mount("perdure-test", scratch.folder().c_str(), "tmpfs", MS_REMOUNT, "size=32m"),
                0);
      EXPECT_TRUE((*pool)->grow(data + 4 * MiB).ok());
    }
    pool->reset();
    auto again = OpenPool::open(how, tester());
    EXPECT_TRUE(again.ok()) << again.status().message();
  });
  EXPECT_EQ(r, 0);
}

TEST(Create, FullDiskEmulated) { full_disk("emulated"); }
TEST(Create, FullDiskFile) { full_disk("file"); }

}  // namespace
}  // namespace perdure::pool
