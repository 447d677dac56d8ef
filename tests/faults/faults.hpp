// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the tests of faults: small pools of every engine on every medium, children, copies of
// bytes, a root.
// Thread safety: none needed.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "perdure/engine/stat_page.hpp"
#include "perdure/perdure.hpp"
#include "perdure/pool/header.hpp"
#include "testing/faulty_medium.hpp"
#include "tests/engine/families.hpp"

namespace perdure::faults {

inline constexpr std::uint64_t KiB = 1ULL << 10, MiB = 1ULL << 20;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// A folder of its own, removed at the end together with the counters of pools that were never
/// closed.
class Scratch {
 public:
  explicit Scratch(bool memory = true) {
    std::string name = (memory && ::access("/dev/shm", W_OK) == 0 ? std::string("/dev/shm/")
                                                                  : ::testing::TempDir() + "/") +
                       "perdure-faults-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
      pool::Header h{};
      std::ifstream(entry.path(), std::ios::binary).read(reinterpret_cast<char*>(&h), sizeof h);
      if (std::memcmp(h.magic, pool::magic, sizeof h.magic) == 0)
        ::shm_unlink(engine::stat_page_name(h.uuid).c_str());
    }
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] std::string path(const std::string& name = "pool") const {
    return folder_ + "/" + name;
  }
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

using Tested = engines<any_engine>;

/// A row of a table: an instance on a medium, and the durability with which a pool is made (which
/// chooses the shadow's order).
struct Case {
  std::string engine = "shadow", medium = "emulated";
  Durability durability = durable;
};
inline std::string name_of(const Case& c) {
  std::string text = c.engine + "_" + c.medium + "_" +
                     (c.durability == durable ? "durable"
                      : c.durability == group ? "group"
                                              : "async");
  for (char& ch : text)
    if (ch == '/' || ch == '-') ch = '_';
  return text;
}
inline void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }
struct CaseName {
  std::string operator()(const ::testing::TestParamInfo<Case>& p) const { return name_of(p.param); }
};
/// Those on engines that are chosen (tests/engine/families.hpp).
inline std::vector<Case> chosen(std::vector<Case> all) {
  std::erase_if(all,
                [](const Case& c) { return !test::is_chosen(*engine::find_instance(c.engine)); });
  return all;
}
/// Every durable engine and order once on memory, and on a file.
inline std::vector<Case> durable_cases(bool files = true) {
  std::vector<Case> all = {{"shadow", "emulated", durable},
                           {"shadow", "emulated", group},
                           {"shadow/global_lock", "emulated", durable},
                           {"dudetm", "emulated", durable},
                           {"dudetm", "emulated", async},
                           {"undo", "emulated", durable},
                           {"rewind-1l-nfp-batch", "emulated", durable},
                           {"rewind-1l-fp-optimized", "emulated", durable}};
  if (files)
    for (const char* e : {"shadow", "dudetm", "undo"}) all.push_back({e, "file", durable});
  return chosen(std::move(all));
}
inline std::vector<Case> all_cases() {
  std::vector<Case> all = durable_cases();
  for (const char* e : {"shadow/stm", "shadow/none", "undo/none", "volatile"})
    all.push_back({e, "emulated", durable});
  return all;
}

/// A root with fields that lie on different lines, something that owns blocks, and a bare pointer.
struct Root {
  p<std::uint64_t> count;
  struct alignas(64) Slot {
    p<std::uint64_t> value;
  };
  Slot slot[8];
  map<std::uint64_t, std::string> names;
  vector<std::uint64_t> numbers;
  ptr<std::byte> block;
};
using TestPool = Pool<Root, Tested>;

inline Options small(const Case& c) {
  Options o;
  o.engine = c.engine;
  o.medium = c.medium;
  o.durability = c.durability;
  o.isolation = c.engine.ends_with("/none") ? Isolation::caller : Isolation::full;
  o.creation.max_size = 16 * MiB;
  // One record per line, and on a file one block per record.
  const bool undo = c.engine.starts_with("undo");
  o.creation.log_size = (undo ? 1024 : 128) * (undo && c.medium == "file" ? 4 : 1) * KiB;
  // More than a record per word, and the same again for a rollback.
  if (c.engine.starts_with("rewind")) o.creation.log_size = 4 * MiB;
  o.creation.threads = 1;
  return o;
}

/// One transaction that changes every part: the state after n of them is expected(n).
inline void step(auto& tx, Root& root, std::uint64_t n) {
  tx(root.count) = n;
  for (auto& s : root.slot) tx(s.value) = n * 3;
  root.names.put(tx, n % 17, "name " + std::to_string(n));
  if (n % 3 == 0) root.numbers.push_back(tx, n);
}
/// The number of steps in the pool; fails when its state is not exactly theirs.
inline std::uint64_t steps_in(TestPool& pool) {
  return pool.view([](auto& tx, const Root& root) {
    const std::uint64_t n = tx(root.count);
    for (const auto& s : root.slot) EXPECT_EQ(tx(s.value), n * 3);
    std::map<std::uint64_t, std::string> names;
    for (std::uint64_t i = n > 17 ? n - 16 : 1; i <= n; ++i)
      names[i % 17] = "name " + std::to_string(i);
    std::uint64_t seen = 0;
    root.names.for_each(tx, [&](std::uint64_t k, const std::string& v) {
      EXPECT_EQ(v, names[k]);
      ++seen;
    });
    EXPECT_EQ(seen, names.size());
    EXPECT_EQ(root.numbers.size(tx), n / 3);
    root.numbers.for_each(
        tx, [&, i = std::uint64_t{0}](std::uint64_t v) mutable { EXPECT_EQ(v, ++i * 3); });
    return n;
  });
}
inline void expect_sound(TestPool& pool) {
  const CheckReport report = pool.check();
  EXPECT_TRUE(report.ok()) << report.problems.front();
}

inline std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write_all(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}
inline void poke(const std::string& path, std::uint64_t offset, const void* src, std::size_t n) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::pwrite(fd, src, n, static_cast<off_t>(offset)), static_cast<ssize_t>(n));
  ::close(fd);
}
inline pool::Header header_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  auto chosen = pool::read_header(path, fd);
  ::close(fd);
  return chosen.ok() ? chosen->header : pool::Header{};
}

/// Runs `body` in a child that exits without any clean-up, as if killed; returns 0, or its exit
/// status, or 1000 + signal. gtest failures there are status 1.
inline int in_child(const std::function<void()>& body) {
  (void)std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      body();
    } catch (const std::exception& e) {
      ADD_FAILURE() << "in a child: " << e.what();
    }
    (void)std::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// Makes a pool with `n` steps that is not closed: its log contains records.
inline void make_unclean(const std::string& path, const Options& options, std::uint64_t n) {
  ASSERT_EQ(in_child([&] {
              auto* const pool = new TestPool(TestPool::open(path, options));  // never destroyed
              for (std::uint64_t i = 1; i <= n; ++i)
                pool->update(durable, [&](auto& tx, Root& root) { step(tx, root, i); });
            }),
            0);
}
inline void make_clean(const std::string& path, const Options& options, std::uint64_t n) {
  TestPool pool = TestPool::open(path, options);
  for (std::uint64_t i = 1; i <= n; ++i)
    pool.update([&](auto& tx, Root& root) { step(tx, root, i); });
  pool.close();
}

/// The code that a call throws; ok when it throws nothing.
inline Code code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  }
  return Code::ok;
}
inline std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const error& e) {
    return e.what();
  }
  return {};
}

}  // namespace perdure::faults
