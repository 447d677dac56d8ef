// SPDX-License-Identifier: BSD-3-Clause
//
// The connections of a database that several threads use: a call takes one that is not in use.
// SQLite has one writer: a mutex before it spares the threads the sleeps of its busy handler, which
// would be expensive at 16 threads.
// Thread safety: any number of threads call write and read at once; one thread calls clear.
#pragma once

#include <sqlite3.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace bench::sqlite {

template <class Db>
class Connections {
 public:
  using Open = std::function<std::unique_ptr<Db>()>;
  explicit Connections(Open open) : open_(std::move(open)) {}

  /// Calls f(Db&), which may write. A connection is closed if f throws.
  template <class F>
  auto write(F f) {
    const std::lock_guard one_writer(writer_);
    return read(f);
  }
  /// Calls f(Db&), which only reads.
  template <class F>
  auto read(F f) {
    auto db = take();
    const auto give_back = [&] {
      const std::lock_guard lock(taking_);
      idle_.push_back(std::move(db));
    };
    if constexpr (std::is_void_v<decltype(f(*db))>) {
      f(*db);
      give_back();
    } else {
      auto result = f(*db);
      give_back();
      return result;
    }
  }
  /// Closes all connections. None is in use.
  void clear() { idle_.clear(); }

 private:
  std::unique_ptr<Db> take() {
    {
      const std::lock_guard lock(taking_);
      if (!idle_.empty()) {
        auto db = std::move(idle_.back());
        idle_.pop_back();
        return db;
      }
    }
    return open_();
  }
  Open open_;
  std::mutex writer_, taking_;
  std::vector<std::unique_ptr<Db>> idle_;
};

/// What describes SQLite beside the figures, with this `PRAGMA synchronous`.
inline std::string description(const std::string& synchronous) {
  return std::string("SQLite ") + sqlite3_libversion() + ", WAL, synchronous=" + synchronous +
         ", one connection per thread, BEGIN IMMEDIATE";
}

}  // namespace bench::sqlite
