// SPDX-License-Identifier: BSD-3-Clause
//
// ReaderGate with a clock of the test's: how long a checkpoint waits, and for whom.
#include "perdure/engine/shadow/reader_gate.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "perdure/pool/lock.hpp"
#include "tests/readers/process.hpp"

namespace perdure::engine::shadow {
namespace {

using namespace std::chrono_literals;
using Time = std::chrono::steady_clock::time_point;

class Gate : public testing::Test {
 protected:
  // Readers by name, and what they do each time that the checkpoint naps.
  ReaderGate::World world() {
    return {[this](std::uint64_t from, std::uint64_t to) {
              for (const auto& [name, at] : readers_)
                if (at >= from && at < to) return true;
              return false;
            },
            [this] { return now_; },
            [this](std::chrono::microseconds time) {
              now_ += time, napped_ += time;
              if (moves_) moves_();
            }};
  }
  pool::ReaderWords words_{};
  std::map<char, std::uint64_t> readers_;
  std::function<void()> moves_;
  Time now_{};
  std::chrono::microseconds napped_{0};
};

TEST_F(Gate, NobodyReads) {
  ReaderGate gate(words_, 50ms, world());
  gate.pass(10);
  EXPECT_EQ(10U, words_.home_clock);
  EXPECT_EQ(0us, napped_);
  EXPECT_EQ(0U, gate.waits());
}

TEST_F(Gate, WaitsForAReaderThatComes) {
  ReaderGate gate(words_, 50ms, world());
  readers_['a'] = 7;
  readers_['b'] = 12;  // far enough
  moves_ = [&] {
    EXPECT_EQ(0U, words_.home_clock) << "the data region is not touched before";
    ++readers_['a'];
  };
  gate.pass(10);
  EXPECT_EQ(10U, readers_['a']);
  EXPECT_EQ(10U, words_.home_clock);
  EXPECT_EQ(1U, gate.waits());
  EXPECT_EQ(0U, gate.expelled());
}

// One bounded wait for a reader that is stopped, and none afterwards.
TEST_F(Gate, WaitsOnceForAReaderThatIsStopped) {
  ReaderGate gate(words_, 50ms, world());
  readers_['a'] = 7;
  gate.pass(10);
  EXPECT_EQ(50ms, napped_);
  EXPECT_EQ(1U, gate.expelled());
  for (std::uint64_t id = 11; id < 100; ++id) gate.pass(id);
  EXPECT_EQ(50ms, napped_);
  EXPECT_EQ(1U, gate.waits());
  EXPECT_EQ(1U, gate.expelled());
  // It goes on, attaches anew, and is waited for again.
  readers_['a'] = 99;
  moves_ = [&] { readers_['a'] = 200; };
  gate.pass(150);
  EXPECT_EQ(2U, gate.waits());
  EXPECT_EQ(1U, gate.expelled());
}

TEST_F(Gate, WaitsForNobodyWithoutPatience) {
  ReaderGate gate(words_, 0ms, world());
  readers_['a'] = 7;
  gate.pass(10);
  EXPECT_EQ(0us, napped_);
  EXPECT_EQ(10U, words_.home_clock);
}

TEST_F(Gate, NeverGoesBack) {
  ReaderGate gate(words_, 50ms, world());
  gate.pass(10);
  gate.pass(5);
  EXPECT_EQ(10U, words_.home_clock);
}

// The same over the locks of a file, seen from another process.
TEST(Positions, AreSeenByOtherProcesses) {
  const std::string path = testing::TempDir() + "/positions_" + std::to_string(::getpid());
  auto writer = pool::FileLock::acquire(path, pool::FileLock::Mode::create, path);
  ASSERT_TRUE(writer.ok());
  {
    test::Process reader([&](test::Line& line) {
      auto lock = pool::FileLock::acquire(path, pool::FileLock::Mode::follow, path).value();
      for (std::uint64_t id = 0; line.receive(id);) {
        if (id == 0)
          lock.hide_position();
        else
          lock.show_position(id);
        line.send(lock.has_writer().value() ? 1 : 0);
      }
    });
    EXPECT_EQ(1U, reader.ask(5));
    EXPECT_TRUE(writer->has_followers().value());
    EXPECT_FALSE(writer->has_writer().value()) << "its own lock";
    EXPECT_TRUE(writer->shows_position(5, 6));
    EXPECT_TRUE(writer->shows_position(0, 100));
    EXPECT_FALSE(writer->shows_position(0, 5));
    EXPECT_FALSE(writer->shows_position(6, 100));
    EXPECT_EQ(1U, reader.ask((std::uint64_t{1} << 48) - 1));
    EXPECT_FALSE(writer->shows_position(0, 100));
    EXPECT_TRUE(writer->shows_position(100, std::uint64_t{1} << 48));
    EXPECT_EQ(1U, reader.ask(0));
    EXPECT_FALSE(writer->shows_position(0, std::uint64_t{1} << 48));
    EXPECT_EQ(1U, reader.ask(9));
  }
  // It was killed: the kernel has dropped its locks.
  EXPECT_FALSE(writer->has_followers().value());
  EXPECT_FALSE(writer->shows_position(0, std::uint64_t{1} << 48));
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace perdure::engine::shadow
