// SPDX-License-Identifier: BSD-3-Clause
//
// The example programs on LMDB, as structures of its benchmark.
#pragma once

#include "bench/apps/jobs_lmdb.hpp"
#include "bench/apps/order_book_lmdb.hpp"
#include "bench/apps/programs.hpp"
#include "bench/apps/sessions_lmdb.hpp"

namespace bench::apps {

struct LmdbWay {
  bool sync;

  template <class Store>
  std::unique_ptr<Store> open(const std::string& directory, bool filled) const {
    return open_store<Store>(directory + "/lmdb.db", filled && sync);
  }
  [[nodiscard]] std::string describe() const { return lmdb::description(sync); }
};
template <class Store>
using LmdbHost = StoreHost<Store, LmdbWay>;

/// `sync`: a commit is durable when it returns.
inline Programs lmdb_programs(bool sync) {
  return programs<LmdbHost, sessions::LmdbStore, jobs::LmdbQueue, book::LmdbBook>(LmdbWay{sync});
}

}  // namespace bench::apps
