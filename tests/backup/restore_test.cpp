// SPDX-License-Identifier: BSD-3-Clause
//
// Backups and what is restored from them: states by id and by time, what a second backup writes,
// damage, a stream (BASE-1, RESTORE-1, FRAME-1).
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "perdure/backup/frame.hpp"
#include "perdure/backup/segment.hpp"
#include "perdure/backup/tar_store.hpp"
#include "perdure/base/descriptor.hpp"
#include "tests/backup/history.hpp"

namespace perdure::test {
namespace {

using pool::testing::Scratch;

class Backups : public ::testing::Test {
 protected:
  [[nodiscard]] Options options(bool archive) const {
    Options o;
    o.medium = "emulated";
    o.creation.max_size = std::uint64_t{1} << 30;
    o.creation.log_size = 8 << 20;
    if (archive) o.archive.folder = folder_;
    return o;
  }
  // A pool with an archive of several files, and a backup in the middle.
  Program make() {
    Program program(20);
    Options o = options(true);
    o.archive.file_age = std::chrono::hours(1);
    auto pool = AnyPool<BackedUp>::open(path_, o);
    program.knows(pool);
    for (int i = 0; i < 60; ++i) {
      program.step(pool);
      if (i % 10 == 9) pool.flush_archive();
      if (i == 30) middle_ = pool.backup().id;
    }
    pool.close();
    return program;
  }
  static Code code_of(const std::function<void()>& f, std::string* text = nullptr) {
    try {
      f();
    } catch (const error& e) {
      if (text != nullptr) *text = e.what();
      return e.code();
    }
    return Code::ok;
  }
  static void flip(const std::string& file, std::uint64_t at) {
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(static_cast<std::streamoff>(at));
    const char c = static_cast<char>(f.get() ^ 1);
    f.seekp(static_cast<std::streamoff>(at));
    f.put(c);
  }
  // The newest state can't be restored, and verify says why, with the file's name.
  void expect_damage(const std::string& name) {
    std::string text;
    EXPECT_NE(Code::ok, code_of([&] { restore(folder_, to_, {}); }, &text)) << name;
    EXPECT_FALSE(std::filesystem::exists(to_));
    const VerifyReport found = verify_backups(folder_);
    ASSERT_FALSE(found.ok()) << name;
    std::string all;
    for (const std::string& p : found.problems) all += p + "\n";
    EXPECT_NE(std::string::npos, all.find(name)) << all;
  }
  Scratch scratch_;
  std::string path_ = scratch_.path(), folder_ = scratch_.path("archive"),
              to_ = scratch_.path("restored");
  std::uint64_t middle_ = 0;
};

TEST_F(Backups, ASecondOneWritesWhatHasChanged) {
  std::optional<AnyPool<BackedUp>> open(AnyPool<BackedUp>::open(path_, options(false)));
  AnyPool<BackedUp>& pool = *open;
  Program program(21);
  for (int i = 0; i < 300; ++i) program.step(pool);
  const BackupReport first = pool.backup(folder_);
  EXPECT_GT(first.chunks, 20U);
  const BackupReport again = pool.backup(folder_);
  EXPECT_EQ(0U, again.new_chunks);
  EXPECT_EQ(first.id, again.id);
  pool.update([](auto& tx, BackedUp& r) { tx.write(r.count, 1U); });
  program.knows(pool);
  const BackupReport second = pool.backup(folder_);
  EXPECT_GT(second.id, first.id);
  EXPECT_LE(second.new_chunks, 3U) << "one word in one chunk";
  // Without an archive there is no state after it.
  pool.update([](auto& tx, BackedUp& r) { tx.write(r.count, 2U); });
  const std::uint64_t later = pool.stats().last_id;
  EXPECT_EQ(Code::not_found, code_of([&] { restore(folder_, to_, {.id = later}); }));
  EXPECT_EQ(Code::invalid, code_of([&] { pool.backup(); })) << "no archive";
  EXPECT_EQ(Code::not_found, code_of([&] { pool.backup(scratch_.path("no/such")); }));
  open.reset();
  EXPECT_EQ(program.at(first.id), restored(folder_, to_, {.id = first.id}));
  EXPECT_EQ(program.at(second.id), restored(folder_, to_, {}));
}

TEST_F(Backups, OfAStateThatWasKept) {
  std::optional<AnyPool<BackedUp>> open(AnyPool<BackedUp>::open(path_, options(false)));
  Program program(26);
  for (int i = 0; i < 20; ++i) program.step(*open);
  {
    const auto kept = open->snapshot();
    for (int i = 0; i < 20; ++i) program.step(*open);
    EXPECT_EQ(kept.id(), open->backup(kept, folder_).id);
    auto other = AnyPool<BackedUp>::open(scratch_.path("other"), options(false));
    EXPECT_EQ(Code::invalid, code_of([&] { other.backup(kept, scratch_.path("elsewhere")); }));
    EXPECT_EQ(Code::incompatible, code_of([&] { other.backup(folder_); }));
  }
  const std::uint64_t id = std::prev(program.states().end(), 21)->first;
  open.reset();
  EXPECT_EQ(program.at(id), restored(folder_, to_, {}));
}

TEST_F(Backups, ToATime) {
  Program program(22);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;  // a time, the id by then
  {
    auto pool = AnyPool<BackedUp>::open(path_, options(true));
    program.knows(pool);
    for (int i = 0; i < 5; ++i) {
      std::uint64_t id = 0;
      for (int j = 0; j < 10; ++j) id = program.step(pool);
      pool.flush_archive();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      seen.emplace_back(
          static_cast<std::uint64_t>(
              std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch())
                  .count()),
          id);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    pool.close();
  }
  for (const auto& [time, id] : seen)
    EXPECT_EQ(program.at(id), restored(folder_, to_, {.unix_ns = time}));
  std::string text;
  EXPECT_EQ(Code::not_found, code_of([&] { restore(folder_, to_, {.unix_ns = 1}); }, &text));
  EXPECT_EQ(Code::invalid, code_of([&] { restore(folder_, to_, {.id = 1, .unix_ns = 1}); }));
}

// What a pool holds is not shown to others by its archive or its backups.
TEST_F(Backups, AreReadableByTheirOwner) {
  const auto mode = [](const std::string& path) {
    return static_cast<unsigned>(std::filesystem::status(path).permissions());
  };
  {
    auto pool = AnyPool<BackedUp>::open(path_, options(true));
    Program program(29);
    for (int i = 0; i < 10; ++i) program.step(pool);
    std::filesystem::permissions(path_, std::filesystem::perms(0640));
    pool.update([](auto& tx, BackedUp& r) { tx.write(r.count, 1U); });
    (void)pool.backup();
    pool.close();
  }
  EXPECT_EQ(0700U, mode(folder_));
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder_))
    if (!file.path().filename().string().starts_with(".lock")) {
      EXPECT_EQ(file.is_directory() ? 0700U : 0600U, mode(file.path())) << file.path();
    }
  (void)restore(folder_, to_, {});
  EXPECT_EQ(0640U, mode(to_));
}

// RESTORE-1
TEST_F(Backups, WhatIsRestoredIsAPoolOfItsOwn) {
  const Program program = make();
  (void)restore(folder_, to_, {});
  EXPECT_EQ(Code::exists, code_of([&] { restore(folder_, to_, {}); }));
  auto pool = AnyPool<BackedUp>::open(to_, options(false));
  EXPECT_EQ(0U, pool.stats().recovery.records);
  auto made = AnyPool<BackedUp>::try_open(path_, options(false));
  EXPECT_FALSE(made.ok()) << "both are mapped at one address";
  Program next(23);
  for (int i = 0; i < 50; ++i) next.step(pool);
  EXPECT_TRUE(pool.check().ok());
  pool.close();
}

TEST_F(Backups, FromTheMiddleAndFromTheFirst) {
  const Program program = make();
  std::filesystem::remove(folder_ + "/base-" +
                          std::string(20 - std::to_string(middle_).size(), '0') +
                          std::to_string(middle_));
  RestoreReport report;
  EXPECT_EQ(program.states().rbegin()->second, restored(folder_, to_, {}, &report));
  EXPECT_LT(report.backup_id, middle_);
  EXPECT_EQ(program.at(middle_), restored(folder_, to_, {.id = middle_}));
}

TEST_F(Backups, NothingToRestore) {
  EXPECT_EQ(Code::not_found, code_of([&] { restore(folder_, to_, {}); })) << "no folder";
  std::filesystem::create_directory(folder_);
  EXPECT_EQ(Code::not_found, code_of([&] { restore(folder_, to_, {}); })) << "an empty one";
  const VerifyReport found = verify_backups(folder_);
  EXPECT_TRUE(found.ok() && found.runs.empty() && found.backups.empty());
}

// A file of another history of the pool, with the same ids, is whole in itself (FRAME-1).
TEST_F(Backups, AFileOfAnotherHistoryIsNamed) {
  (void)make();
  const std::string file = segments(folder_).end()[-2];
  const std::string name = std::filesystem::path(file).filename().string();
  const auto store = backup::open_folder(folder_, false).value();
  const backup::SegmentName said = *backup::parse_segment_name(name);
  const auto segment = backup::read_segment(said, store->get(name).value(), folder_).value();
  backup::HistoryEnd end = segment.begin(), begin = end;
  begin.chain.low ^= 1;
  backup::HistoryEnd other = begin;
  std::vector<std::byte> frames;
  const Status s = backup::each_frame(segment.frames(), segment.frames_bytes(), name, end,
                                      [&](const backup::Frame& frame) {
                                        backup::append_frame(frames, frame.header, frame.payload,
                                                             frame.header.payload_bytes, other);
                                        return Status();
                                      });
  ASSERT_TRUE(s.ok()) << s.message();
  const auto bytes =
      backup::make_segment(said, segment.header.run, segment.header.uuid, begin, frames);
  ASSERT_TRUE(backup::read_segment(said, bytes, folder_).ok());
  std::ofstream(file, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  expect_damage(name);
}

// Each flipped bit of a sample, each file that is missing, each pair that is swapped, is named.
TEST_F(Backups, DamageIsNamed) {
  (void)make();
  const std::vector<std::string> logs = segments(folder_);
  ASSERT_GE(logs.size(), 6U);
  std::mt19937_64 random(24);
  const std::string save = scratch_.path("save");
  const auto name_of = [](const std::string& file) {
    return std::filesystem::path(file).filename().string();
  };
  const auto restored_after = [&](const std::function<void()>& damage, const std::string& name) {
    std::filesystem::copy(folder_, save, std::filesystem::copy_options::recursive);
    damage();
    expect_damage(name);
    std::filesystem::remove_all(folder_);
    std::filesystem::rename(save, folder_);
  };
  const std::string last = logs[logs.size() - 2];
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t at = random() % std::filesystem::file_size(last);
    restored_after([&] { flip(last, at); }, name_of(last));
  }
  restored_after([&] { std::filesystem::remove(last); }, "number");
  restored_after([&] { std::filesystem::resize_file(last, std::filesystem::file_size(last) - 1); },
                 name_of(last));
  restored_after(
      [&] {  // two files' contents
        const std::string other = logs[logs.size() - 3];
        std::filesystem::rename(last, scratch_.path("t"));
        std::filesystem::rename(other, last);
        std::filesystem::rename(scratch_.path("t"), other);
      },
      name_of(last));
  // Any chunk, and the list of them.
  std::vector<std::string> chunks;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder_ + "/chunk"))
    if (file.is_regular_file()) chunks.push_back(file.path());
  std::sort(chunks.begin(), chunks.end());
  RestoreReport report;
  (void)restored(folder_, to_, {}, &report);
  const std::string list = folder_ + "/base-" +
                           std::string(20 - std::to_string(report.backup_id).size(), '0') +
                           std::to_string(report.backup_id);
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t at = random() % std::filesystem::file_size(list);
    restored_after([&] { flip(list, at); }, name_of(list));
  }
  std::size_t used = 0;  // by the newest backup
  for (const std::string& chunk : chunks) {
    const std::uint64_t at = random() % std::filesystem::file_size(chunk);
    flip(chunk, at);
    const VerifyReport found = verify_backups(folder_);
    EXPECT_FALSE(found.ok()) << chunk;
    if (code_of([&] { restore(folder_, to_, {}); }) != Code::ok) ++used;
    std::filesystem::remove(to_);
    flip(chunk, at);
  }
  EXPECT_GT(used, 3U);
  EXPECT_TRUE(verify_backups(folder_).ok());
}

// PRUNE-1
TEST_F(Backups, OldOnesAreRemoved) {
  const Program program = make();
  const auto count = [&](const std::string& where) {
    std::uint64_t n = 0;
    for (const auto& f : std::filesystem::recursive_directory_iterator(where))
      n += f.is_regular_file() ? 1 : 0;
    return n;
  };
  const std::uint64_t logs = segments(folder_).size(), chunks = count(folder_ + "/chunk");
  const std::uint64_t from = middle_ + 3;
  const PruneReport would = prune_backups(folder_, {.id = from}, true);
  EXPECT_EQ(logs, segments(folder_).size());
  const PruneReport done = prune_backups(folder_, {.id = from});
  EXPECT_EQ(middle_, done.oldest_id);
  EXPECT_EQ(1U, done.backups);
  EXPECT_GT(done.files, 1U);
  EXPECT_GT(done.chunks, 1U);
  EXPECT_EQ(std::tie(would.backups, would.files, would.chunks),
            std::tie(done.backups, done.files, done.chunks));
  EXPECT_EQ(logs - done.files, segments(folder_).size());
  EXPECT_EQ(chunks - done.chunks, count(folder_ + "/chunk"));
  EXPECT_TRUE(verify_backups(folder_).ok());
  for (const auto& [id, state] : program.states()) {
    if (id >= middle_)
      EXPECT_EQ(state, restored(folder_, to_, {.id = id}));
    else
      EXPECT_EQ(Code::not_found, code_of([&] { restore(folder_, to_, {.id = id}); }));
  }
  EXPECT_EQ(Code::not_found, code_of([&] { prune_backups(folder_, {.id = middle_ - 1}); }));
  const PruneReport again = prune_backups(folder_, {});
  EXPECT_EQ(0U, again.backups + again.files + again.chunks);
  // The archive goes on.
  Program next(27);
  {
    auto pool = AnyPool<BackedUp>::open(path_, options(true));
    EXPECT_EQ(0U, pool.archive().gaps);
    next.step(pool);
    pool.close();
  }
  EXPECT_EQ(next.states().rbegin()->second, restored(folder_, to_, {}));
}

// A backup is not written while chunks are removed, and the other way round.
TEST_F(Backups, NoneIsWrittenWhileOldOnesAreRemoved) {
  auto pool = AnyPool<BackedUp>::open(path_, options(false));
  Program program(28);
  for (int i = 0; i < 50; ++i) program.step(pool);
  (void)pool.backup(folder_);
  program.step(pool);
  bool tried = false;
  (void)pool.backup(folder_, [&](std::uint64_t, std::uint64_t) {
    if (!tried) {
      EXPECT_EQ(Code::busy, code_of([&] { prune_backups(folder_, {}); }));
    }
    tried = true;
  });
  EXPECT_TRUE(tried);
  const auto store = backup::open_folder(folder_, false).value();
  const auto alone = store->lock(backup::Store::Use::chunks_alone).value();
  EXPECT_EQ(Code::busy, code_of([&] { pool.backup(folder_); }));
}

// `perdure backup POOL - | ... | perdure restore - NEW`
TEST_F(Backups, AsAStream) {
  Program program(25);
  {
    auto pool = AnyPool<BackedUp>::open(path_, options(false));
    for (int i = 0; i < 50; ++i) program.step(pool);
    (void)pool.backup(folder_);
    pool.close();
  }
  const int fd = base::open_memory_file("stream");
  const auto from = backup::open_folder(folder_, false).value();
  const auto tar = backup::TarStore::on(fd);
  const std::vector<std::string> names = from->list("").value();
  for (const std::string& name : names) {
    const auto bytes = from->get(name).value();
    ASSERT_TRUE(tar->put(name, bytes.data(), bytes.size()).value());
  }
  ASSERT_TRUE(tar->finish().ok());
  const auto length = static_cast<std::uint64_t>(::lseek(fd, 0, SEEK_CUR));
  ASSERT_EQ(0, ::lseek(fd, 0, SEEK_SET));
  const auto store = backup::open_folder(scratch_.path("unpacked"), true).value();
  ASSERT_TRUE(backup::unpack(fd, *store).ok());
  EXPECT_EQ(program.states().rbegin()->second, restored(scratch_.path("unpacked"), to_, {}));
  // Cut off anywhere, it is none.
  for (const std::uint64_t n : {length - 1, length - 1024, length / 2, std::uint64_t{700}}) {
    ASSERT_EQ(0, ::ftruncate(fd, static_cast<off_t>(n)));
    ASSERT_EQ(0, ::lseek(fd, 0, SEEK_SET));
    const auto other = backup::open_folder(scratch_.path("cut" + std::to_string(n)), true).value();
    EXPECT_EQ(Code::corrupt, backup::unpack(fd, *other).code()) << n;
  }
  ::close(fd);
}

}  // namespace
}  // namespace perdure::test
