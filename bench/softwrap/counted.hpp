// SPDX-License-Identifier: BSD-3-Clause
//
// Counted: a transaction handle (bench/workloads/models.md) that counts its calls: each get is a
// read of 8 bytes, each set a write, as the paper counts transactional reads and writes (SoftWrAP,
// MSST '15, section V-D). It also counts the lines that are written if consecutive writes to one
// line count once, as in the paper's write buffer. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace bench::softwrap {

struct Accesses {
  std::uint64_t reads = 0, writes = 0, lines = 0;
};

template <class Tx>
class Counted {
 public:
  Counted(Tx& tx, Accesses& n) : tx_(tx), n_(n) {}

  template <class Stored>
  auto get(const Stored& from) {
    ++n_.reads;
    return tx_.get(from);
  }
  template <class Stored, class Value>
  void set(Stored& to, Value value) {
    ++n_.writes;
    const auto line = reinterpret_cast<std::uintptr_t>(&to) / 64;
    n_.lines += line != last_ ? 1 : 0;
    last_ = line;
    tx_.set(to, value);
  }
  template <class T>
  T* allocate(std::size_t n) {
    return tx_.template allocate<T>(n);
  }

 private:
  Tx& tx_;
  Accesses& n_;
  std::uintptr_t last_ = 0;  // the line of the previous write
};

}  // namespace bench::softwrap
