// SPDX-License-Identifier: BSD-3-Clause
//
// The example programs on SQLite, as structures of its benchmark.
#pragma once

#include "bench/apps/jobs_sqlite.hpp"
#include "bench/apps/order_book_sqlite.hpp"
#include "bench/apps/programs.hpp"
#include "bench/apps/sessions_sqlite.hpp"

namespace bench::apps {

struct SqliteWay {
  std::string synchronous;

  template <class Store>
  std::unique_ptr<Store> open(const std::string& directory, bool filled) const {
    return open_store<Store>(directory + "/sqlite.db", filled ? synchronous : std::string("OFF"));
  }
  [[nodiscard]] std::string describe() const { return sqlite::description(synchronous); }
};
template <class Store>
using SqliteHost = StoreHost<Store, SqliteWay>;

/// `synchronous`: FULL, NORMAL or OFF.
inline Programs sqlite_programs(const std::string& synchronous) {
  return programs<SqliteHost, sessions::SqliteStore, jobs::SqliteQueue, book::SqliteBook>(
      SqliteWay{synchronous});
}

}  // namespace bench::apps
