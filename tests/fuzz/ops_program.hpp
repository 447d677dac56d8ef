// SPDX-License-Identifier: BSD-3-Clause
//
// The meaning of an input's bytes for the fuzzer of operations: a pool's shape, then commands:
// transactions of operations, views, checks, checkpoints, reopenings. Any bytes are a program;
// after their end zeros follow, and the program ends after the command in which they ended.
// Thread safety: values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "testing/crashtest.hpp"

namespace perdure::fuzz {

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  [[nodiscard]] bool left() const noexcept { return at_ != end_; }
  std::uint8_t next() noexcept { return at_ == end_ ? std::uint8_t{0} : *at_++; }

 private:
  const std::uint8_t *at_, *end_;
};

/// One call on one of the root's containers: the container, the operation, its arguments.
struct Op {
  static constexpr unsigned targets = 14;
  unsigned target = 0, kind = 0;  ///< kind: 0 to 18
  std::uint8_t key = 0, x = 0, y = 0;

  [[nodiscard]] std::uint64_t number() const noexcept {
    return (std::uint64_t{x} << 8 | y) * 0x9e3779b97f4a7c15ULL;
  }
  /// Any bytes; mostly short, up to 12,000.
  [[nodiscard]] std::string text() const {
    const std::size_t n = y < 160 ? y % 48U : y < 240 ? (y - 150U) * 9U : (y - 238U) * 700U;
    std::string s(n, static_cast<char>(x));
    if (x % 3 != 0)
      for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>(x + i * (x % 3U));
    return s;
  }
  [[nodiscard]] std::uint64_t number_key() const noexcept {
    return key < 200 ? key : key * 0x9e3779b97f4a7c15ULL;
  }
  [[nodiscard]] std::string text_key() const { return text_key(key); }
  /// Empty, short, long with a common beginning, with NUL and high bytes.
  [[nodiscard]] static std::string text_key(unsigned k) {
    if (k == 0) return {};
    std::string s = (k % 3 == 0   ? "a rather long common beginning of a key/"
                     : k % 3 == 1 ? "k"
                                  : std::string("\xff\0z", 3)) +
                    std::to_string(k);
    if (k % 7 == 0) s.append(k % 97 * 13, static_cast<char>('a' + k % 26));
    return s;
  }
};

/// How a transaction ends. `swallowed`: an exception is thrown out of a nested update in the
/// middle, and the outer lambda catches it.
enum class Ending : std::uint8_t { commit, user_exception, abort, swallowed };
/// In what the second half of a transaction's operations runs.
enum class Half : std::uint8_t { plain, nested_update, nested_view_first };
enum class Ask : std::uint8_t { pools_own, durable, group, async, async_and_wait };

struct Command {
  enum class Kind : std::uint8_t {
    update,
    view,
    durable_view,
    checkpoint,
    close,
    kill,
    power_cut,
    check,
    misuse
  };
  Kind kind = Kind::update;
  Ending ending = Ending::commit;
  Half half = Half::plain;
  Ask ask = Ask::pools_own;
  std::uint8_t how = 0;  ///< reopening: the durability after it
  std::vector<Op> ops;
};

struct Program {
  crashtest::Plan plan;  ///< the pool's shape; no step of it is run
  bool roomy = false;    ///< a heap that the program does not fill: `full` is a bug
  std::vector<Command> commands;
};

inline Command decode_command(Bytes& in) {
  using Kind = Command::Kind;
  static constexpr Kind rare[] = {Kind::view, Kind::durable_view, Kind::checkpoint, Kind::close,
                                  Kind::kill, Kind::power_cut,    Kind::check,      Kind::misuse};
  Command c;
  const unsigned head = in.next();
  if (head % 32 < std::size(rare)) {
    c.kind = rare[head % 32];
    c.how = static_cast<std::uint8_t>(head / 32);
    return c;
  }
  static constexpr Ending endings[] = {Ending::commit, Ending::commit,   Ending::commit,
                                       Ending::commit, Ending::commit,   Ending::user_exception,
                                       Ending::abort,  Ending::swallowed};
  c.ending = endings[head / 32];
  const unsigned how = in.next();
  c.ops.resize(1 + how % 8);
  static constexpr Half halves[] = {Half::plain, Half::plain, Half::nested_update,
                                    Half::nested_view_first};
  c.half = halves[how / 8 % 4];
  static constexpr Ask asks[] = {Ask::pools_own, Ask::pools_own,     Ask::pools_own,
                                 Ask::pools_own, Ask::durable,       Ask::group,
                                 Ask::async,     Ask::async_and_wait};
  c.ask = asks[how / 32];
  for (Op& op : c.ops) {
    const unsigned what = in.next();
    op.target = what % Op::targets;
    op.kind = what / Op::targets;
    op.key = in.next();
    op.x = in.next();
    op.y = in.next();
  }
  return c;
}

inline Program decode(const std::uint8_t* data, std::size_t size) {
  Bytes in(data, size);
  Program program;
  const unsigned a = in.next(), b = in.next();
  static constexpr Durability durabilities[] = {durable, durable, group, async};
  program.plan.durability = durabilities[a % 4];
  program.plan.like_a_file = a / 4 % 2 != 0;
  program.plan.rings = 1 + a / 8 % 2;
  program.plan.seed = 1;
  static constexpr std::uint64_t rings[] = {8192, 16384, 65536, 1 << 20};
  program.plan.ring_bytes = rings[b % 4];
  if (program.plan.like_a_file)
    program.plan.ring_bytes = std::max<std::uint64_t>(program.plan.ring_bytes, 1 << 18);
  // The data region grows by up to 4 MiB at once: slow.
  static constexpr std::uint64_t chunks[] = {6, 6, 8, 12, 12, 24, 40, 4096};
  const std::uint64_t most = chunks[b / 4 % 8];
  program.roomy = most == 4096;
  program.plan.data_bytes =
      (b / 32 % 2 != 0 ? std::min<std::uint64_t>(most, 12) : 4) * pool::chunk_bytes;
  program.plan.max_data_bytes = most * pool::chunk_bytes;
  while (in.left() && program.commands.size() < 64) program.commands.push_back(decode_command(in));
  return program;
}

}  // namespace perdure::fuzz
