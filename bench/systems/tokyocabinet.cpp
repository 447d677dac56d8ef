// SPDX-License-Identifier: BSD-3-Clause
//
// Tokyo Cabinet under the operations of KVStore (workloads/kv_table.hpp): its B+-tree database, one transaction an update, synchronised with the device
// when it ends (BDBOTSYNC). Nothing is charged for what it writes. An executable of its own. One thread.
#include <tcbdb.h>

#include <cstring>
#include <stdexcept>

#include "bench/systems/host.hpp"
#include "bench/systems/systems.hpp"
#include "bench/workloads/kv_table.hpp"

namespace bench {
namespace {

struct TokyoCalls {
  struct Root {
    TCBDB* db;
  };
  struct Tx {};
  [[noreturn]] static void fail(TCBDB* db, const char* what) {
    throw std::runtime_error(std::string("tokyocabinet: ") + what + ": " + tcbdberrmsg(tcbdbecode(db)));
  }

  static void put(Tx&, Root& root, const Key& key, const Value& value) {
    if (!tcbdbput(root.db, key.data(), key_bytes, value.data(), value_bytes)) fail(root.db, "put");
  }
  static bool erase(Tx&, Root& root, const Key& key) {
    if (tcbdbout(root.db, key.data(), key_bytes)) return true;
    if (tcbdbecode(root.db) != TCENOREC) fail(root.db, "erase");
    return false;
  }
  static bool contains(Tx&, const Root& root, const Key& key) {
    int bytes = 0;
    return tcbdbget3(root.db, key.data(), key_bytes, &bytes) != nullptr;
  }
  template <class F>
  static void for_each(Tx&, const Root& root, F f) {
    BDBCUR* cursor = tcbdbcurnew(root.db);
    for (bool there = tcbdbcurfirst(cursor); there; there = tcbdbcurnext(cursor)) {
      Key key{};
      int key_size = 0, value_size = 0;
      const void* k = tcbdbcurkey3(cursor, &key_size);
      const void* v = tcbdbcurval3(cursor, &value_size);
      std::memcpy(key.data(), k, std::min<std::size_t>(key_bytes, static_cast<std::size_t>(key_size)));
      f(key, static_cast<const char*>(v), static_cast<std::size_t>(value_size));
    }
    tcbdbcurdel(cursor);
  }
};

class TokyoHost : public HostDefaults {
 public:
  explicit TokyoHost(const Setting& setting) : path_(setting.directory + "/tokyo.tcb") {
    open(0);
  }  // filled without waiting for the device
  TokyoHost(const TokyoHost&) = delete;
  TokyoHost& operator=(const TokyoHost&) = delete;
  ~TokyoHost() { close(); }

  template <class F>
  auto update(F&& f) {
    if (!tcbdbtranbegin(root_.db)) TokyoCalls::fail(root_.db, "begin");
    const auto result = f(tx_, root_);
    if (!tcbdbtrancommit(root_.db)) TokyoCalls::fail(root_.db, "commit");
    return result;
  }
  template <class F>
  auto view(F&& f) {
    return f(tx_, static_cast<const TokyoCalls::Root&>(root_));
  }
  void prepare(unsigned) {
    if (!synced_) reopen();
  }
  bool reopen() {
    close();
    open(BDBOTSYNC);
    synced_ = true;
    return true;
  }
  [[nodiscard]] std::string describe() const { return std::string("Tokyo Cabinet ") + tcversion + ", B+-tree, BDBOTSYNC"; }

 private:
  void open(int sync) {
    root_.db = tcbdbnew();
    if (!tcbdbopen(root_.db, path_.c_str(), BDBOWRITER | BDBOREADER | BDBOCREAT | sync)) TokyoCalls::fail(root_.db, path_.c_str());
  }
  void close() {
    tcbdbclose(root_.db);
    tcbdbdel(root_.db);
  }

  std::string path_;
  TokyoCalls::Root root_{};
  TokyoCalls::Tx tx_;
  bool synced_ = false;
};

}  // namespace

void add_tokyocabinet(Systems& systems) {
  systems.push_back({"tokyocabinet",
                     "Tokyo Cabinet's B+-tree, a transaction an update, synchronised",
                     {"kvstore"},
                     1,
                     [](const Setting& s) -> std::unique_ptr<Session> {
                       return std::make_unique<StructureSession<TokyoHost, KeySet<KvTable<TokyoCalls>>>>(s);
                     }});
}

}  // namespace bench

int main(int argc, char** argv) {
  bench::Systems systems;
  bench::add_tokyocabinet(systems);
  return bench::serve(argc, argv, systems);
}
