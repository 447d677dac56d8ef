// SPDX-License-Identifier: BSD-3-Clause
//
// Tokyo Cabinet's B+-tree database, one transaction per update, synchronised with the device at its
// end (BDBOTSYNC). It does not isolate, so it runs on one thread.
#include <tcbdb.h>

#include <stdexcept>

#include "bench/peers/peer.hpp"

namespace bench {
namespace {

class Tokyo final : public Peer, private Peer::Transaction {
 public:
  explicit Tokyo(const Setting& setting) : path_(setting.directory + "/tokyo.tcb") { open(0); }
  ~Tokyo() override { close(); }

  void update(const Body& body) override {
    check(tcbdbtranbegin(db_), "begin");
    try {
      body(*this);
    } catch (...) {
      tcbdbtranabort(db_);
      throw;
    }
    check(tcbdbtrancommit(db_), "commit");
  }
  void view(const Body& body) override { body(*this); }
  void filled() override {
    mode_ = BDBOTSYNC;
    reopen();
  }
  void reopen() override {
    close();
    open(mode_);
  }
  [[nodiscard]] std::string describe() override {
    return std::string("Tokyo Cabinet ") + tcversion + ", B+-tree, BDBOTSYNC";
  }

 private:
  bool get(std::string_view key, std::string& value) override {
    int bytes = 0;
    const void* found = tcbdbget3(db_, key.data(), size(key), &bytes);
    if (found == nullptr) return false;
    value.assign(static_cast<const char*>(found), static_cast<std::size_t>(bytes));
    return true;
  }
  void put(std::string_view key, std::string_view value) override {
    check(tcbdbput(db_, key.data(), size(key), value.data(), size(value)), "put");
  }
  bool erase(std::string_view key) override {
    if (tcbdbout(db_, key.data(), size(key))) return true;
    check(tcbdbecode(db_) == TCENOREC, "erase");
    return false;
  }
  void scan(std::string_view from, const Visit& visit) override {
    const std::unique_ptr<BDBCUR, decltype(&tcbdbcurdel)> cursor(tcbdbcurnew(db_), tcbdbcurdel);
    for (bool there = tcbdbcurjump(cursor.get(), from.data(), size(from)); there;
         there = tcbdbcurnext(cursor.get())) {
      int key_bytes = 0, value_bytes = 0;
      const auto* key = static_cast<const char*>(tcbdbcurkey3(cursor.get(), &key_bytes));
      const auto* value = static_cast<const char*>(tcbdbcurval3(cursor.get(), &value_bytes));
      if (!visit({key, static_cast<std::size_t>(key_bytes)},
                 {value, static_cast<std::size_t>(value_bytes)}))
        return;
    }
  }

  static int size(std::string_view bytes) { return static_cast<int>(bytes.size()); }
  void check(bool fine, const char* what) const {
    if (!fine)
      throw std::runtime_error(std::string("tokyocabinet: ") + what + ": " +
                               tcbdberrmsg(tcbdbecode(db_)));
  }
  void open(int sync) {
    db_ = tcbdbnew();
    check(tcbdbopen(db_, path_.c_str(), BDBOWRITER | BDBOREADER | BDBOCREAT | sync), path_.c_str());
  }
  void close() {
    tcbdbclose(db_);
    tcbdbdel(db_);
  }

  std::string path_;
  int mode_ = 0;
  TCBDB* db_ = nullptr;
};

}  // namespace

void add_tokyocabinet(Systems& systems) {
  add_peer(systems, "tokyocabinet",
           "Tokyo Cabinet's B+-tree, a transaction an update, synchronised", 1,
           [](const Setting& s) { return std::make_unique<Tokyo>(s); });
}

}  // namespace bench
