// SPDX-License-Identifier: BSD-3-Clause
//
// A recorded workload compared with what the program did: reads, writes, blocks; nothing of what
// was rolled back; threads; a truncated trace, and traces of programs that were killed or ended
// without closing; no contents.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/api/erased.hpp"
#include "perdure/engine/workload_trace.hpp"
#include "tests/engine/suite.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure::test {
namespace {

using engine::read_workload_trace;
using engine::TraceEnd;
using engine::TraceKind;
using engine::WorkloadTrace;
using medium::testing::Scratch;

struct Root {
  std::array<p<std::uint64_t>, 256> word;
  ptr<p<std::uint64_t>> block;
};
using Recorded = AnyPool<Root>;

Options options_for(const Scratch& scratch, std::string_view engine = "shadow") {
  Options o;
  o.engine = engine;
  o.medium = "emulated";
  o.creation.max_size = 64 << 20;
  o.creation.log_size = 1 << 20;
  o.trace = scratch.path("trace");
  return o;
}

/// One transaction of a trace, with its operations counted by kind and kept in order.
struct Did {
  bool update;
  Durability durability;
  std::uint64_t sequence;
  std::vector<std::tuple<TraceKind, std::uint64_t, std::uint64_t>> ops;
  [[nodiscard]] std::size_t count(TraceKind kind) const {
    return static_cast<std::size_t>(std::count_if(
        ops.begin(), ops.end(), [kind](const auto& o) { return std::get<0>(o) == kind; }));
  }
};
std::vector<Did> transactions(const std::vector<std::uint64_t>& words) {
  std::vector<Did> all;
  engine::for_each_op(words, [&](TraceKind kind, std::uint64_t low, std::uint64_t second) {
    if (kind == TraceKind::begin)
      all.push_back({engine::is_update(low), engine::durability_of(low), second, {}});
    else
      all.back().ops.emplace_back(kind, low, second);
  });
  return all;
}
WorkloadTrace read(const std::string& path) { return read_workload_trace(path).value(); }

class Recorder : public EngineTest {};
ENGINE_SUITE(Recorder, isolating_ones);

TEST_P(Recorder, SaysWhatEachCommittedTransactionDid) {
  const Scratch scratch("/dev/shm");
  std::uint64_t root = 0, aborts = 0;
  {
    auto pool = Recorded::open(scratch.path(), options_for(scratch, GetParam().name));
    root = pool.file().root_offset();
    pool.update([](auto& tx, Root& r) {
      tx(r.word[3]) = 7;
      tx(r.word[9]) = tx(r.word[3]) + tx(r.word[4]);
    });
    pool.update(async, [](auto& tx, Root& r) {
      tx(r.block) = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(4000));
    });
    pool.view([](auto& tx, const Root& r) {
      std::array<std::uint64_t, 100> copy;
      tx.read_bytes(copy.data(), &r.word[8], sizeof copy);
      EXPECT_EQ(7U, copy[1]);
    });
    EXPECT_THROW(pool.update([](auto& tx, Root& r) {
      tx(r.word[200]) = 1;
      (void)tx.alloc(64);
      throw std::runtime_error("no");
    }),
                 std::runtime_error);
    pool.update([](auto& tx, Root& r) {
      tx.write_bytes(tx(r.block), std::vector<char>(800).data(), 800);
      tx.free(tx(r.block));
    });
    aborts = pool.close().stats.aborts;
    print_hardware_commits(GetParam(), pool.stats());
  }
  const auto trace = read(scratch.path("trace"));
  EXPECT_EQ(TraceEnd::closed, trace.header.end);
  EXPECT_FALSE(trace.torn);
  EXPECT_EQ(GetParam().name, std::string_view(trace.header.engine));
  EXPECT_EQ("emulated", std::string_view(trace.header.medium));
  EXPECT_EQ(root, trace.header.root_offset);
  EXPECT_EQ(4U, trace.transactions);
  EXPECT_EQ(1U, trace.rolled_back);
  EXPECT_GE(trace.retried, aborts);
  ASSERT_EQ(1U, trace.threads.size());
  const auto all = transactions(trace.threads[0]);
  ASSERT_EQ(4U, all.size());
  const auto word = [root](std::uint64_t n) { return root + n * 8; };
  using Op = std::tuple<TraceKind, std::uint64_t, std::uint64_t>;
  const std::vector<Op> first = {{TraceKind::write, word(3), 0},
                                 {TraceKind::read, word(3), 0},
                                 {TraceKind::read, word(4), 0},
                                 {TraceKind::write, word(9), 0}};
  EXPECT_EQ(first, all[0].ops);
  EXPECT_TRUE(all[0].update);
  EXPECT_EQ(durable, all[0].durability);
  EXPECT_EQ(async, all[1].durability);
  ASSERT_EQ(2U, all[1].ops.size());
  const auto [kind, block, bytes] = all[1].ops[0];
  EXPECT_EQ(TraceKind::alloc, kind);
  EXPECT_EQ(4000U, bytes);
  EXPECT_FALSE(all[2].update);
  EXPECT_EQ((std::vector<Op>{{TraceKind::read_words, word(8), 100}}), all[2].ops);
  EXPECT_EQ(1U, all[3].count(TraceKind::write_words));
  EXPECT_EQ((Op{TraceKind::free, block, 4096}), all[3].ops.back());
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].sequence, all[i].sequence);
}

TEST_P(Recorder, HasTwoThreadsAndNothingOfTheirConflicts) {
  const Scratch scratch("/dev/shm");
  constexpr std::uint64_t each = 500;
  std::uint64_t aborts = 0;
  {
    auto pool = Recorded::open(scratch.path(), options_for(scratch, GetParam().name));
    const auto work = [&pool] {
      for (std::uint64_t i = 0; i < each; ++i)
        pool.update([i](auto& tx, Root& r) { tx(r.word[0]) += 1, tx(r.word[i % 8 * 8]) += 1; });
    };
    std::thread one(work), other(work);
    one.join(), other.join();
    aborts = pool.stats().aborts;
    print_hardware_commits(GetParam(), pool.stats());
    pool.view(
        [](auto& tx, const Root& r) { EXPECT_EQ(2 * each + 2 * ((each + 7) / 8), tx(r.word[0])); });
  }
  const auto trace = read(scratch.path("trace"));
  EXPECT_EQ(2 * each + 1, trace.transactions);
  EXPECT_EQ(0U, trace.rolled_back);
  EXPECT_GE(trace.retried, aborts);  // and those that found no log space
  EXPECT_EQ(trace.threads.size(), trace.header.threads);
  std::vector<std::uint64_t> sequences;
  for (const auto& words : trace.threads)
    for (const auto& t : transactions(words)) {
      sequences.push_back(t.sequence);
      EXPECT_EQ(t.update ? 2U : 0U, t.count(TraceKind::write));
      EXPECT_EQ(t.update ? 2U : 1U, t.count(TraceKind::read));
    }
  std::sort(sequences.begin(), sequences.end());
  EXPECT_EQ(sequences.end(), std::adjacent_find(sequences.begin(), sequences.end()));
}

TEST(RecorderFile, HoldsNoContents) {
  const Scratch scratch("/dev/shm");
  const std::string secret = "a secret of 32 bytes, and no less";
  {
    auto pool = Recorded::open(scratch.path(), options_for(scratch));
    for (int i = 0; i < 10; ++i)
      pool.update(
          [&](auto& tx, Root& r) { tx.write_bytes(&r.word[0], secret.data(), secret.size()); });
  }
  std::ifstream in(scratch.path("trace"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t at = 0; at + 8 <= secret.size(); ++at)
    EXPECT_EQ(std::string::npos, bytes.find(secret.substr(at, 8)));
  EXPECT_GT(bytes.size(), sizeof(engine::TraceHeader));
}

TEST(RecorderFile, IsCutAtItsBoundAndTheProgramGoesOn) {
  const Scratch scratch("/dev/shm");
  ::setenv("PERDURE_TRACE_MAX", "4096", 1);
  {
    auto pool = Recorded::open(scratch.path(), options_for(scratch));
    for (std::uint64_t i = 0; i < 1000; ++i)
      pool.update([i](auto& tx, Root& r) { tx(r.word[i % 256]) = i; });
    pool.view([](auto& tx, const Root& r) { EXPECT_EQ(999U, tx(r.word[999 % 256])); });
  }
  ::unsetenv("PERDURE_TRACE_MAX");
  const auto trace = read(scratch.path("trace"));
  EXPECT_TRUE(trace.cut());
  EXPECT_EQ(4096U / 24, trace.transactions);  // begin, its number, a write
}

/// Returns the trace that a child leaves after running f.
template <class F>
int in_child(F f) {
  const pid_t child = ::fork();
  if (child == 0) {
    f();
    std::abort();
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(RecorderFile, OfAKilledProgramIsReadable) {
  const Scratch scratch("/dev/shm");
  const int status = in_child([&] {
    auto pool = Recorded::open(scratch.path(), options_for(scratch));
    for (std::uint64_t i = 0; i < 100; ++i)
      pool.update([i](auto& tx, Root& r) { tx(r.word[i]) = i; });
    ::kill(::getpid(), SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  const auto trace = read(scratch.path("trace"));
  EXPECT_EQ(TraceEnd::open, trace.header.end);
  EXPECT_GE(trace.transactions, 64U);  // what was reported at the 64th
  // Torn at any byte: the whole transactions remain readable.
  const auto size = std::filesystem::file_size(scratch.path("trace"));
  std::uint64_t before = trace.transactions;
  for (auto at = size; at >= sizeof(engine::TraceHeader); at -= 8) {
    std::filesystem::resize_file(scratch.path("trace"), at);
    const auto part = read(scratch.path("trace"));
    EXPECT_LE(part.transactions, before);
    before = part.transactions;
  }
  EXPECT_EQ(0U, before);
}

TEST(RecorderFile, OfAProgramThatEndsWithoutClosingIsWhole) {
  const Scratch scratch("/dev/shm");
  const int status = in_child([&] {
    auto* const pool = new auto(Recorded::open(scratch.path(), options_for(scratch)));
    for (std::uint64_t i = 0; i < 100; ++i)
      pool->update([i](auto& tx, Root& r) { tx(r.word[i]) = i; });
    std::exit(0);
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(100U, read(scratch.path("trace")).transactions);
}

TEST(RecorderFile, ThatIsDamagedForeignOrEmptyIsRefused) {
  const Scratch scratch("/dev/shm");
  {
    auto pool = Recorded::open(scratch.path(), options_for(scratch));
    for (std::uint64_t i = 0; i < 100; ++i)
      pool.update([i](auto& tx, Root& r) { tx(r.word[i]) = i; });
  }
  const auto good = medium::testing::read_file(scratch.path("trace"));
  const auto code_of = [&](std::vector<std::byte> bytes) {
    std::ofstream(scratch.path("bad"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return read_workload_trace(scratch.path("bad")).code();
  };
  EXPECT_EQ(Code::ok, code_of(good));
  EXPECT_EQ(Code::incompatible, code_of({}));
  EXPECT_EQ(Code::incompatible, code_of(std::vector<std::byte>(4096)));
  EXPECT_EQ(Code::not_found, read_workload_trace(scratch.path("missing")).code());
  for (std::size_t at = 0; at < good.size(); at += 5) {
    auto bad = good;
    bad[at] ^= std::byte{0x41};
    const Code code = code_of(bad);
    // A count of words that is larger than the file reads as a torn end.
    EXPECT_TRUE(code == Code::corrupt || code == Code::incompatible ||
                (code == Code::ok && read(scratch.path("bad")).torn))
        << "byte " << at;
  }
}

TEST(RecorderFile, NamesAndErrors) {
  const Scratch scratch("/dev/shm");
  Options o = options_for(scratch);
  o.trace = scratch.path("no/such/folder");
  EXPECT_EQ(Code::not_found, Recorded::try_open(scratch.path("a"), o).code());
  EXPECT_EQ(Code::invalid, (Pool<Root, engines<shadow>>::try_open(scratch.path("b"), o).code()));
  EXPECT_FALSE(std::filesystem::exists(scratch.path("b")));
  o.trace.clear();
  ::setenv("PERDURE_TRACE", scratch.path("%p.trace").c_str(), 1);
  {
    auto pool = Recorded::open(scratch.path("c"), o);
    auto second = Recorded::open(scratch.path("d"), o);
    pool.update([](auto& tx, Root& r) { tx(r.word[1]) = 1; });
  }
  ::unsetenv("PERDURE_TRACE");
  const std::string name = scratch.path(std::to_string(::getpid()) + ".trace");
  EXPECT_EQ(1U, read(name).transactions);
  EXPECT_EQ(0U, read(name + ".2").transactions);
}

TEST(RecorderFile, RecordsAnErasedPool) {
  const Scratch scratch("/dev/shm");
  {
    auto pool =
        ErasedPool::open(scratch.path(), options_for(scratch), {"words", 64, false}).value();
    struct Arg {
      std::byte* root;
    } arg{pool->file().view() + pool->file().root_offset()};
    (void)pool->update(
        durable,
        [](ErasedTx& tx, void* a) {
          tx.write_word(reinterpret_cast<std::uint64_t*>(static_cast<Arg*>(a)->root), 5);
        },
        &arg);
    EXPECT_TRUE(pool->close().ok());
  }
  EXPECT_EQ(1U, read(scratch.path("trace")).transactions);
}

}  // namespace
}  // namespace perdure::test
