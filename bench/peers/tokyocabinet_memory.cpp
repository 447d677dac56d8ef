// SPDX-License-Identifier: BSD-3-Clause
//
// Tokyo Cabinet's in-memory hash database itself (TCMDB), beside the structure "tchash" that is
// made after it (bench/workloads/tc_hash.hpp): the same operations in its own calls. Nothing is
// durable, nothing can be rolled back, and each call is isolated alone, so it runs on one thread.
#include <tcutil.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/peers/peer.hpp"
#include "bench/systems/host.hpp"
#include "bench/workloads/key_set.hpp"
#include "bench/workloads/kv_table.hpp"

namespace bench {
namespace {

struct MemoryTx {
  TCMDB* db;
};

struct MemoryCalls {
  struct Root {};
  static constexpr const char* structure = "tchash";

  static void put(MemoryTx& tx, Root&, const Key& key, const Value& value) {
    tcmdbput(tx.db, key.data(), static_cast<int>(key.size()), value.data(),
             static_cast<int>(value.size()));
  }
  static bool erase(MemoryTx& tx, Root&, const Key& key) {
    return tcmdbout(tx.db, key.data(), static_cast<int>(key.size()));
  }
  static bool contains(MemoryTx& tx, const Root&, const Key& key) {
    int bytes = 0;
    return Bytes(tcmdbget(tx.db, key.data(), static_cast<int>(key.size()), &bytes)) != nullptr;
  }
  template <class F>
  static void for_each(MemoryTx& tx, const Root&, F f) {
    tcmdbiterinit(tx.db);
    int key_size = 0, value_size = 0;
    while (const Bytes found{tcmdbiternext(tx.db, &key_size)}) {
      const Bytes value(tcmdbget(tx.db, found.get(), key_size, &value_size));
      Key key{};
      std::memcpy(key.data(), found.get(),
                  std::min(static_cast<std::size_t>(key_size), key.size()));
      f(key, static_cast<const char*>(value.get()), static_cast<std::size_t>(value_size));
    }
  }

 private:
  struct Free {
    void operator()(void* bytes) const { std::free(bytes); }
  };
  using Bytes = std::unique_ptr<void, Free>;
};

template <class Root>
class MemoryHost : public HostDefaults {
 public:
  explicit MemoryHost(const Setting&) {}
  template <class F>
  auto update(F&& f) {
    MemoryTx tx{db_.get()};
    return f(tx, root_);
  }
  template <class F>
  auto view(F&& f) {
    MemoryTx tx{db_.get()};
    return f(tx, static_cast<const Root&>(root_));
  }
  [[nodiscard]] std::string describe() const {
    return std::string("Tokyo Cabinet ") + tcversion + ", in-memory hash";
  }

 private:
  std::unique_ptr<TCMDB, decltype(&tcmdbdel)> db_{tcmdbnew(), tcmdbdel};
  Root root_;
};

using MemoryWorkloads = WorkloadList<KeySet<KvTable<MemoryCalls>>>;

}  // namespace

void add_tokyocabinet_memory(Systems& systems) {
  systems.push_back(
      {"tokyocabinet-memory", "Tokyo Cabinet's in-memory hash database, nothing durable",
       MemoryWorkloads::names(), 1,
       [](const Setting& s) { return open_listed<MemoryHost>(MemoryWorkloads{}, s); }});
}

}  // namespace bench
