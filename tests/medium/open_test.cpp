// SPDX-License-Identifier: BSD-3-Clause
//
// Opening: what is refused and how, what `auto` chooses, and that neither opening nor reading ever
// writes to an existing file.
#include <sys/mman.h>

#include "perdure/medium/memory.hpp"
#include "scratch.hpp"

namespace perdure::medium {
namespace {

using testing::pattern;
using testing::read_file;
using testing::Scratch;

constexpr std::uint64_t MiB = 1ULL << 20;

class Open : public ::testing::TestWithParam<const char*> {
 protected:
  OpenMedium how(bool create) const {
    OpenMedium h;
    h.path = scratch.path();
    h.kind = GetParam();
    h.create = create;
    h.log_bytes = 2 * MiB;
    h.data_bytes = 2 * MiB;
    h.max_data_bytes = 8 * MiB;
    return h;
  }
  void make_one() const {
    auto m = open_medium(how(true)).value();
    const auto bytes = pattern(4 * MiB, 1);
    m->stream(0, bytes.data(), 2 * MiB);
    m->stream(2 * MiB, bytes.data() + 2 * MiB, 2 * MiB);
    m->fence().or_throw();
  }
  Scratch scratch;
};

TEST_P(Open, missing_files_and_folders_are_named) {
  const auto missing = open_medium(how(false));
  EXPECT_EQ(missing.code(), Code::not_found);
  EXPECT_NE(missing.status().message().find(scratch.path()), std::string::npos);
  auto h = how(true);
  h.path = scratch.path("no/such/folder");
  EXPECT_EQ(open_medium(h).code(), Code::not_found);
  h.path = "";
  EXPECT_EQ(open_medium(h).code(), Code::invalid);
}

TEST_P(Open, what_exists_is_not_created_again) {
  make_one();
  const auto before = read_file(scratch.path());
  EXPECT_EQ(open_medium(how(true)).code(), Code::exists);
  EXPECT_EQ(read_file(scratch.path()), before);
  auto h = how(true);
  h.path = scratch.folder();
  EXPECT_EQ(open_medium(h).code(), Code::exists);
  h.create = false;
  EXPECT_EQ(open_medium(h).code(), Code::invalid);
}

TEST_P(Open, sizes_that_make_no_sense_are_refused) {
  const auto with = [&](auto change) {
    OpenMedium h = how(true);
    change(h);
    return open_medium(h).code();
  };
  EXPECT_EQ(with([](OpenMedium& h) { h.log_bytes = 0; }), Code::invalid);
  EXPECT_EQ(with([](OpenMedium& h) { h.log_bytes = 5000; }), Code::invalid);
  EXPECT_EQ(with([](OpenMedium& h) { h.data_bytes = 5000; }), Code::invalid);
  EXPECT_EQ(with([](OpenMedium& h) { h.max_data_bytes = 5000; }), Code::invalid);
  EXPECT_EQ(with([](OpenMedium& h) { h.log_bytes = 1ULL << 60; }), Code::invalid);
  EXPECT_EQ(with([](OpenMedium& h) { h.read_only = true; }), Code::invalid);
  EXPECT_EQ(with([](OpenMedium& h) { h.kind = "tape"; }), Code::invalid);
  EXPECT_NE(::access(scratch.path().c_str(), F_OK), 0) << "nothing was made";
}

TEST_P(Open, a_file_cut_short_is_refused_untouched) {
  make_one();
  for (const std::uint64_t length :
       {4 * MiB - 1, 4 * MiB - 4096, 3 * MiB, 2 * MiB, MiB, std::uint64_t{1}, std::uint64_t{0}}) {
    ASSERT_EQ(::truncate(scratch.path().c_str(), static_cast<off_t>(length)), 0);
    const auto before = read_file(scratch.path());
    const auto m = open_medium(how(false));
    EXPECT_EQ(m.code(), Code::corrupt);
    EXPECT_NE(m.status().message().find(std::to_string(length) + " bytes"), std::string::npos)
        << m.status().message();
    EXPECT_EQ(read_file(scratch.path()), before);
  }
}

TEST_P(Open, opening_for_writing_writes_nothing) {
  make_one();
  const auto before = read_file(scratch.path());
  struct stat a = {}, b = {};
  ASSERT_EQ(::stat(scratch.path().c_str(), &a), 0);
  {
    auto m = open_medium(how(false)).value();
    (void)m->map_ring(0, 8192).value();
    EXPECT_TRUE(m->fence().ok());
    EXPECT_EQ(m->counters().syncs, 0U);
  }
  ASSERT_EQ(::stat(scratch.path().c_str(), &b), 0);
  EXPECT_EQ(a.st_mtim.tv_nsec, b.st_mtim.tv_nsec);
  EXPECT_EQ(a.st_mtim.tv_sec, b.st_mtim.tv_sec);
  EXPECT_EQ(read_file(scratch.path()), before);
}

TEST_P(Open, read_only_reads_and_never_writes) {
  make_one();
  const auto before = read_file(scratch.path());
  ASSERT_EQ(::chmod(scratch.path().c_str(), 0444), 0);
  {
    auto h = how(false);
    h.read_only = true;
    auto m = open_medium(h).value();
    EXPECT_TRUE(m->read_only());
    EXPECT_EQ(std::memcmp(m->at(0), before.data(), 2 * MiB), 0);
    EXPECT_EQ(std::memcmp(m->data(), before.data() + 2 * MiB, 2 * MiB), 0);
    EXPECT_EQ(m->grow(4 * MiB).code(), Code::read_only);
    EXPECT_TRUE(m->fence().ok());
    EXPECT_TRUE(m->flush_all().ok());
    const RingMap ring = m->map_ring(4096, 8192).value();
    EXPECT_EQ(std::memcmp(ring.base + 8192, before.data() + 4096, 8192), 0);
    void* space = ::mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* view = static_cast<std::byte*>(space);
    for (const ViewKind kind : {ViewKind::shared, ViewKind::shared_read, ViewKind::copy_on_write}) {
      ASSERT_TRUE(m->map_view(view, 4096, 8192, kind).ok());
      EXPECT_EQ(std::memcmp(view, before.data() + 2 * MiB + 4096, 8192), 0);
    }
    std::memset(view, 1, 8192);  // this process may write to the copy
    ::munmap(space, 8192);
  }
  EXPECT_EQ(read_file(scratch.path()), before);
}

TEST_P(Open, the_data_region_may_be_taken_from_the_file) {
  make_one();
  auto h = how(false);
  h.data_bytes = 0;
  EXPECT_EQ(open_medium(h).value()->data_bytes(), 2 * MiB);
  h.data_bytes = MiB;
  EXPECT_EQ(open_medium(h).value()->data_bytes(), MiB)
      << "less than the file has: a growth that was never published";
}

INSTANTIATE_TEST_SUITE_P(Media, Open, ::testing::Values("file", "emulated", "auto"),
                         [](const ::testing::TestParamInfo<const char*>& p) {
                           return std::string(p.param);
                         });

TEST(OpenDax, is_refused_with_the_reason_where_there_is_no_persistent_memory) {
  const Scratch scratch;
  OpenMedium h;
  h.path = scratch.path();
  h.kind = "dax";
  h.create = true;
  h.log_bytes = h.data_bytes = 2 * MiB;
  if (map_sync_works(h.path)) {
    auto m = open_medium(h).value();
    EXPECT_EQ(m->kind(), "dax");
    GTEST_SKIP() << "the temporary folder is on persistent memory";
  }
  const auto m = open_medium(h);
  EXPECT_EQ(m.code(), Code::unsupported);
  EXPECT_NE(m.status().message().find("MAP_SYNC"), std::string::npos) << m.status().message();
  EXPECT_NE(::access(h.path.c_str(), F_OK), 0) << "and leaves nothing";
}

TEST(OpenDax, other_devices_are_no_pools) {
  OpenMedium h;
  h.path = "/dev/null";
  h.log_bytes = 4096;
  for (const char* kind : {"auto", "file", "dax", "emulated"}) {
    h.kind = kind;
    EXPECT_FALSE(open_medium(h).ok()) << kind;
  }
}

TEST(OpenDelays, belong_to_emulated) {
  const Scratch scratch;
  OpenMedium h;
  h.path = scratch.path();
  h.kind = "file";
  h.create = true;
  h.log_bytes = h.data_bytes = 2 * MiB;
  h.delays = Delays::named("rewind").value();
  EXPECT_EQ(open_medium(h).code(), Code::invalid);
}

TEST(Diagnose, says_what_auto_would_do_and_why) {
  const Scratch scratch;
  // The file does not exist: the medium that would be used here.
  const auto d = diagnose(scratch.path()).value();
  EXPECT_FALSE(d.file_system.empty());
  EXPECT_FALSE(d.reason.empty());
  EXPECT_EQ(d.kind, d.map_sync ? "dax" : "file");
  EXPECT_NE(::access(scratch.path().c_str(), F_OK), 0) << "looking leaves nothing behind";
  EXPECT_TRUE(std::filesystem::is_empty(scratch.folder()));

  OpenMedium h;
  h.path = scratch.path();
  h.create = true;
  h.log_bytes = h.data_bytes = 2 * MiB;
  const auto m = open_medium(h).value();
  EXPECT_EQ(m->kind(), d.kind);
  const auto before = read_file(scratch.path());
  EXPECT_EQ(diagnose(scratch.path()).value().kind, d.kind);
  EXPECT_EQ(read_file(scratch.path()), before);
}

TEST(Diagnose, knows_tmpfs) {
  if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no /dev/shm";
  const Scratch scratch("/dev/shm");
  const auto d = diagnose(scratch.path()).value();
  EXPECT_EQ(d.kind, "file");
  EXPECT_EQ(d.file_system, "tmpfs");
  EXPECT_NE(d.reason.find("power cut"), std::string::npos) << d.reason;
}

TEST(Diagnose, refuses_what_can_be_no_pool) {
  EXPECT_EQ(diagnose("").code(), Code::invalid);
  EXPECT_EQ(diagnose("/dev/null").code(), Code::invalid);
  EXPECT_EQ(diagnose(::testing::TempDir()).code(), Code::invalid);
  EXPECT_EQ(diagnose("/no/such/folder/pool").code(), Code::not_found);
}

}  // namespace
}  // namespace perdure::medium
