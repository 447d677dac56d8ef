// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of checksums share: a bank (tests/readers/bank.hpp) in a folder of its own, and
// flips of bits in its file.
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "perdure/pool/directory.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/page_checksums.hpp"
#include "tests/readers/bank.hpp"

namespace perdure::test {

class InAFolder : public testing::Test {
 protected:
  InAFolder() {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("checksums_") + test->name() + "_" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "pool").string();
  }
  ~InAFolder() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] static Options with_checksums() {
    Options o;
    o.checksums = true;
    o.medium = "emulated";  // no waits for a disk
    o.creation.log_size = 1 << 20;
    o.creation.max_size = 256 << 20;
    return o;
  }
  [[nodiscard]] BankPool open(bool checksums = true) const {
    Options o = with_checksums();
    o.checksums = checksums;
    return BankPool::open(path_, o);
  }
  [[nodiscard]] BankPool reader(const std::string& path = {}) const {
    Options o = with_checksums();
    o.checksums = false;
    o.read_only = true;
    return BankPool::open(path.empty() ? path_ : path, o);
  }
  /// A bank after `n` transactions, closed.
  void make(std::uint64_t n, bool checksums = true) const {
    BankPool pool = open(checksums);
    open_bank(pool);
    for (std::uint64_t i = 0; i < n; ++i) change_bank(pool, i);
    (void)pool.close();
  }
  [[nodiscard]] pool::Header header() const {
    std::ifstream file(path_, std::ios::binary);
    std::vector<char> bytes(pool::first_ring);
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    pool::Header a, b;
    std::memcpy(&a, bytes.data() + pool::header_a, sizeof a);
    std::memcpy(&b, bytes.data() + pool::header_b, sizeof b);
    return a.sequence >= b.sequence ? a : b;
  }
  [[nodiscard]] std::uint64_t word_at(std::uint64_t offset) const {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(header().log_bytes + offset));
    std::uint64_t word = 0;
    file.read(reinterpret_cast<char*>(&word), sizeof word);
    return word;
  }
  /// The pages that have a checksum.
  [[nodiscard]] std::vector<std::uint64_t> pages() const {
    const pool::Header h = header();
    std::vector<std::uint64_t> found;
    const std::uint64_t own = h.checksums_offset / 4096;
    for (std::uint64_t page = 0; page < h.data_bytes / 4096; ++page)
      if (page != own && word_at(h.checksums_offset + page * 8) != 0) found.push_back(page);
    return found;
  }
  void flip(std::uint64_t offset, unsigned bit) const {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    const auto at = static_cast<std::streamoff>(header().log_bytes + offset);
    file.seekg(at);
    char byte = 0;
    file.read(&byte, 1);
    byte = static_cast<char>(byte ^ (1 << bit));
    file.seekp(at);
    file.write(&byte, 1);
  }

  std::filesystem::path folder_;
  std::string path_;
};

/// The pages that are damaged according to a report, as numbers.
inline std::vector<std::uint64_t> damaged_pages(const ScrubReport& report) {
  std::vector<std::uint64_t> pages;
  for (const DamagedPage& page : report.damaged) pages.push_back(page.offset / 4096);
  return pages;
}

}  // namespace perdure::test
