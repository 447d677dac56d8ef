// SPDX-License-Identifier: BSD-3-Clause
//
// Checksums where a pool changes other than by checkpoints: when it first gets them, when its limit
// is raised, when it is trimmed, and when its log is replayed.
#include <gmock/gmock.h>

#include "perdure/backup/restore.hpp"
#include "perdure/pool/open_pool.hpp"
#include "tests/checksums/bank_pool.hpp"

namespace perdure {
namespace {

using test::BankPool;
using test::damaged_pages;
using testing::ElementsAre;
using testing::HasSubstr;

using ChecksumChanges = test::InAFolder;

TEST_F(ChecksumChanges, AnExistingPoolGetsThemAsItsPagesAreWrittenTo) {
  make(300, false);
  const std::uint64_t before = header().data_bytes;
  {
    BankPool pool = open(true);
    ScrubReport report = pool.scrub();
    EXPECT_TRUE(report.has_checksums);
    EXPECT_GT(report.without, 50U);
    const std::uint64_t few = report.pages;
    for (std::uint64_t i = 0; i < 600; ++i) test::change_bank(pool, i);
    pool.checkpoint();
    report = pool.scrub();
    EXPECT_GT(report.pages, few);
    EXPECT_TRUE(report.ok());
    EXPECT_THAT(pool.check().problems, testing::IsEmpty());
  }
  const pool::Header h = header();
  EXPECT_GE(h.checksums_offset, before);
  EXPECT_GE(h.data_bytes, h.checksums_offset + h.checksums_bytes);
  // It keeps them, whatever the next opening asks for, and stays where it is.
  {
    BankPool pool = open(false);
    EXPECT_TRUE(pool.scrub().has_checksums);
    for (std::uint64_t i = 0; i < 100; ++i) test::change_bank(pool, i);
  }
  EXPECT_EQ(h.checksums_offset, header().checksums_offset);
  const std::uint64_t page = pages().back();
  flip(page * 4096 + 1, 1);
  EXPECT_THAT(damaged_pages(reader().scrub()), ElementsAre(page));
}

TEST_F(ChecksumChanges, ARaisedLimitTakesThemAlong) {
  make(300);
  const pool::Header before = header();
  const std::size_t had = pages().size();
  Options o = with_checksums();
  o.creation.raise_max_size = true;
  o.creation.max_size = std::uint64_t{2} << 30;
  {
    BankPool pool = BankPool::open(path_, o);
    const ScrubReport report = pool.scrub();
    EXPECT_TRUE(report.ok());
    EXPECT_GE(report.pages, had - 2);  // those of the old place have none
    for (std::uint64_t i = 0; i < 300; ++i) test::change_bank(pool, i);
    EXPECT_THAT(pool.check().problems, testing::IsEmpty());
  }
  const pool::Header after = header();
  EXPECT_NE(before.checksums_offset, after.checksums_offset);
  EXPECT_GE(after.checksums_bytes, (std::uint64_t{2} << 30) / 512);
  // What lay there before is free, and is used again.
  {
    BankPool pool = open();
    for (std::uint64_t n = 300; n < 1500; ++n) test::grow_bank(pool, n);
    EXPECT_THAT(pool.check().problems, testing::IsEmpty());
  }
  const std::uint64_t page = pages()[10];
  flip(page * 4096 + 1, 1);
  EXPECT_THAT(damaged_pages(reader().scrub()), ElementsAre(page));
}

// The checksums may come right behind the directory words of a new section: nothing else may use
// their chunks.
TEST_F(ChecksumChanges, ARaiseOfAFullPoolKeepsObjectsAway) {
  for (const bool from_the_start : {true, false}) {
    std::filesystem::remove(path_);
    Options o = with_checksums();
    o.checksums = from_the_start;
    o.creation.max_size = 4 << 20;
    const auto fill = [](BankPool& pool, std::uint64_t from) {
      std::uint64_t n = from;
      try {
        for (;; ++n) test::grow_bank(pool, n);
      } catch (const error& e) {
        EXPECT_EQ(Code::full, e.code());
      }
      return n;
    };
    std::uint64_t n = 0;
    {
      BankPool pool = BankPool::open(path_, o);
      n = fill(pool, 300);
      EXPECT_THAT(pool.check().problems, testing::IsEmpty());
    }
    o.checksums = true;
    o.creation.raise_max_size = true;
    for (const std::uint64_t limit :
         {std::uint64_t{20} << 20, std::uint64_t{40} << 20, std::uint64_t{1200} << 20}) {
      o.creation.max_size = limit;
      BankPool pool = BankPool::open(path_, o);
      EXPECT_THAT(pool.check().problems, testing::IsEmpty()) << limit;
      if (limit < 100 << 20)
        n = fill(pool, n);
      else
        for (std::uint64_t i = 0; i < 1000; ++i) test::grow_bank(pool, n++);
      pool.checkpoint();
      EXPECT_THAT(pool.check().problems, testing::IsEmpty()) << limit;
      (void)pool.close();
      EXPECT_GT(pages().size(), 100U);
    }
  }
}

TEST_F(ChecksumChanges, AnArchiveFromBeforeThemIsRestored) {
  const std::string archive = (folder_ / "archive").string();
  Options o = with_checksums();
  o.archive.folder = archive;
  std::uint64_t id = 0;
  for (const bool checksums : {false, true}) {
    o.checksums = checksums;
    BankPool pool = BankPool::open(path_, o);
    test::open_bank(pool);
    for (std::uint64_t n = 0; n < 200; ++n) {
      const std::uint64_t last = test::change_bank(pool, n);
      if (!checksums && n == 100) id = last;
    }
    (void)pool.close();
  }
  for (const bool latest : {false, true}) {
    const std::string made = path_ + (latest ? ".latest" : ".early");
    RestorePoint to;
    if (!latest) to.id = id;
    restore(archive, made, to);
    std::filesystem::rename(made, path_);
    EXPECT_GT(pages().size(), 10U) << latest;
    BankPool pool = open(false);
    EXPECT_THAT(pool.check().problems, testing::IsEmpty()) << latest;
    for (std::uint64_t n = 0; n < 50; ++n) test::change_bank(pool, n);
    pool.checkpoint();
    EXPECT_THAT(pool.check().problems, testing::IsEmpty()) << latest;
    EXPECT_EQ(Code::ok, pool.view([](auto& tx, const test::Bank& bank) {
      std::uint64_t changes = 0;
      return test::wrong_with(tx, bank, changes).empty() ? Code::ok : Code::corrupt;
    }));
  }
}

// A checkpoint that changes nothing leaves no mark: the next recovery has nothing to compute anew.
TEST_F(ChecksumChanges, AnIdleCheckpointIsNotTakenForAnInterruptedOne) {
  make(300);
  {
    BankPool pool = open();
    pool.checkpoint();
    pool.checkpoint();
  }
  const std::uint64_t own = header().checksums_offset / 4096 * 8 + header().checksums_offset;
  EXPECT_NE(header().checkpoint_id + 1, word_at(own));
}

TEST_F(ChecksumChanges, ALimitThatLeavesNoSpaceIsRefused) {
  Options o = with_checksums();
  o.checksums = false;
  o.creation.max_size = 2 << 20;
  o.creation.initial_size = 2 << 20;
  (void)BankPool::open(path_, o).close();
  o.checksums = true;
  const auto pool = BankPool::try_open(path_, o);
  EXPECT_EQ(Code::full, pool.code());
  EXPECT_THAT(pool.status().message(), HasSubstr("1/512 of the limit, or 1 MiB"));
  o.checksums = false;
  EXPECT_TRUE(BankPool::try_open(path_, o).ok());
}

TEST_F(ChecksumChanges, EnginesThatStoreInPlaceRefuseThem) {
  Options o = with_checksums();
  o.engine = "undo";
  const auto pool = BankPool::try_open(path_, o);
  EXPECT_EQ(Code::unsupported, pool.code());
  EXPECT_THAT(pool.status().message(), HasSubstr("an engine that keeps them: shadow"));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(ChecksumChanges, ATrimLeavesNoChecksumsOfHoles) {
  {
    BankPool pool = open();
    test::open_bank(pool);
    for (std::uint64_t n = 300; n < 900; ++n) test::grow_bank(pool, n);
    pool.checkpoint();
    pool.update([](tx& tx, test::Bank& bank) {
      for (std::uint64_t n = 300; n < 900; ++n) bank.text.erase(tx, n);
      tx(bank.texts) = 0;
    });
    pool.checkpoint();
    std::uint64_t given = 0;
    for (Trimmed t{0, true}; t.more; given += t.bytes) t = pool.trim();
    EXPECT_GT(given, 20 * pool::chunk_bytes);
    EXPECT_TRUE(pool.scrub().ok());
    for (std::uint64_t n = 300; n < 600; ++n) test::grow_bank(pool, n);
    pool.checkpoint();
    EXPECT_TRUE(pool.scrub().ok());
    EXPECT_THAT(pool.check().problems, testing::IsEmpty());
    pool.update([](tx& tx, test::Bank& bank) {
      for (std::uint64_t n = 300; n < 600; ++n) bank.text.erase(tx, n);
      tx(bank.texts) = 0;
    });
  }
  {  // the trim of a pool that is closed, which also cuts its end off
    pool::OpenFile how;
    how.path = path_;
    how.create = false;
    pool::Identity who;
    who.engine_any = who.layout_any = true;
    auto file = pool::OpenPool::open(how, who).value();
    const pool::TrimReport trimmed = file->trim().value();
    EXPECT_GT(trimmed.given_back, 0U);
  }
  BankPool pool = reader();
  EXPECT_TRUE(pool.scrub().ok());
  EXPECT_GT(pool.scrub().pages, 10U);
}

// What happens to the bytes of a chunk that nobody uses is nobody's damage.
TEST_F(ChecksumChanges, FreeChunksHaveNone) {
  {
    BankPool pool = open();
    test::open_bank(pool);
    for (std::uint64_t n = 300; n < 900; ++n) test::grow_bank(pool, n);
    pool.checkpoint();
  }
  const std::size_t full = pages().size();
  {
    BankPool pool = open();
    pool.update([](tx& tx, test::Bank& bank) {
      for (std::uint64_t n = 300; n < 900; ++n) bank.text.erase(tx, n);
      tx(bank.texts) = 0;
    });
    pool.checkpoint();
    for (Trimmed t{0, true}; t.more;) t = pool.trim();  // frees the empty spans
  }
  const pool::Header h = header();
  const pool::Directory directory(h);
  std::uint64_t free = 0;
  for (std::uint64_t chunk = directory.first_chunk(); chunk < h.data_bytes / pool::chunk_bytes;
       ++chunk) {
    if (directory.holds_words(chunk) || word_at(directory.word(chunk)) != 0) continue;
    ++free;
    for (std::uint64_t page = chunk * 16; page < chunk * 16 + 16; ++page)
      EXPECT_EQ(0U, word_at(h.checksums_offset + page * 8)) << page;
  }
  EXPECT_GT(free, 20U);
  EXPECT_LT(pages().size(), full);
}

// Nothing was interrupted, so recovery replaces terms, and does not bless what it does not store.
TEST_F(ChecksumChanges, RecoveryDoesNotHideDamage) {
  make(300);
  const std::uint64_t page = header().root_offset / 4096;
  const std::string killed = path_ + ".killed";
  {
    BankPool pool = open();
    for (std::uint64_t i = 0; i < 20; ++i) test::change_bank(pool, i);  // stores to the root's page
    std::filesystem::copy_file(path_, killed);
  }
  std::filesystem::rename(killed, path_);
  flip(page * 4096 + 4000, 5);
  BankPool pool = open();
  EXPECT_GT(pool.stats().recovery.records, 0U);
  EXPECT_THAT(damaged_pages(pool.scrub()), ElementsAre(page));
}

}  // namespace
}  // namespace perdure
