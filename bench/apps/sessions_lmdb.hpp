// SPDX-License-Identifier: BSD-3-Clause
//
// sessions::LmdbStore: the session store of examples/sessions.hpp on LMDB.
// Databases: `sessions`, token -> number, user, time of expiry, roles; and two indexes with several
// values for each key, which are number and token: `by_user` and `by_until`. A session's number
// says how old it is; `numbers` has the next one.
// A token has 1 to 503 bytes: LMDB's keys and the values of an index have up to 511.
// Thread safety: any number of threads may call anything at once.
#pragma once

#include "bench/apps/bytes.hpp"
#include "bench/lmdb/environment.hpp"
#include "examples/sessions.hpp"

namespace sessions {

class LmdbStore {
 public:
  explicit LmdbStore(const std::string& path, bool sync = true) : env_(path, sync) {
    env_.update([&](Tx& tx) {
      sessions_ = tx.database("sessions");
      by_user_ = tx.database("by_user", MDB_DUPSORT);
      by_until_ = tx.database("by_until", MDB_DUPSORT);
      numbers_ = tx.database("numbers");
      return true;
    });
  }

  bool put(const Session& session) {
    return env_.update([&](Tx& tx) {
      const auto old = load(tx, session.token);
      const Row now{old ? old->number : next_number(tx), session};
      change(tx, old, now);
      return !old;
    });
  }
  std::optional<Session> find(std::string_view token, Time now) {
    return env_.view([&](Tx& tx) -> std::optional<Session> {
      auto row = load(tx, token);
      if (!row || row->session.until <= now) return {};
      return std::move(row->session);
    });
  }
  bool renew(std::string_view token, Time until) {
    return env_.update([&](Tx& tx) {
      const auto old = load(tx, token);
      if (!old) return false;
      Row now = *old;
      now.session.until = until;
      change(tx, old, now);
      return true;
    });
  }
  bool end(std::string_view token) {
    return env_.update([&](Tx& tx) { return erase(tx, token); });
  }
  std::vector<std::string> of_user(std::uint64_t user) {
    return env_.view([&](Tx& tx) {
      std::vector<std::string> tokens;
      bench::lmdb::Cursor at(tx, by_user_);
      const std::string key = bench::apps::bytes_of(user);
      bool there = at.seek(key, MDB_SET_KEY) && at.move(MDB_LAST_DUP);
      for (; there; there = at.move(MDB_PREV_DUP)) tokens.push_back(token_of(at.value()));
      return tokens;
    });
  }
  std::uint64_t expire(Time now, std::uint64_t most) {
    return env_.update([&](Tx& tx) {
      std::uint64_t removed = 0;
      bench::lmdb::Cursor at(tx, by_until_);
      for (; removed < most && at.move(MDB_FIRST); ++removed) {
        if (now < time_of(bench::apps::number_of(at.key()))) break;
        erase(tx, token_of(at.value()));
      }
      return removed;
    });
  }
  std::uint64_t size() {
    return env_.view([&](Tx& tx) { return tx.entries(sessions_); });
  }

 private:
  using Tx = bench::lmdb::Transaction;
  struct Row {
    std::uint64_t number;
    Session session;
  };
  static std::uint64_t number_of(Time t) {
    return bench::apps::unsigned_of(t.time_since_epoch().count());
  }
  static Time time_of(std::uint64_t n) {
    return Time(std::chrono::seconds(bench::apps::signed_of(n)));
  }
  // A value of an index, and the token in it.
  static std::string entry(const Row& row) {
    return bench::apps::bytes_of(row.number) + row.session.token;
  }
  static std::string token_of(std::string_view entry) { return std::string(entry.substr(8)); }

  std::optional<Row> load(Tx& tx, std::string_view token) {
    std::string_view bytes;
    if (!tx.get(sessions_, token, bytes)) return {};
    bench::apps::Reader reader(bytes);
    Row row{reader.number(), {std::string(token), reader.number(), {}, time_of(reader.number())}};
    row.session.roles = reader.texts();
    return row;
  }
  // Writes a row in place of the old one, if there is one, and moves what changed in the indexes.
  void change(Tx& tx, const std::optional<Row>& old, const Row& now) {
    const Session& s = now.session;
    const bool moved = !old || old->session.until != s.until;
    const bool given = !old || old->session.user != s.user;
    if (old) unindex(tx, *old, given, moved);
    if (given) tx.put(by_user_, bench::apps::bytes_of(s.user), entry(now));
    if (moved) tx.put(by_until_, bench::apps::bytes_of(number_of(s.until)), entry(now));
    bench::apps::Writer writer;
    writer.number(now.number).number(s.user).number(number_of(s.until)).texts(s.roles);
    tx.put(sessions_, s.token, writer.bytes());
  }
  void unindex(Tx& tx, const Row& row, bool of_user, bool of_until) {
    const Session& s = row.session;
    if (of_user) tx.erase(by_user_, bench::apps::bytes_of(s.user), entry(row));
    if (of_until) tx.erase(by_until_, bench::apps::bytes_of(number_of(s.until)), entry(row));
  }
  bool erase(Tx& tx, std::string_view token) {
    const auto row = load(tx, token);
    if (!row) return false;
    unindex(tx, *row, true, true);
    return tx.erase(sessions_, token);
  }
  std::uint64_t next_number(Tx& tx) {
    std::string_view bytes;
    const std::uint64_t number =
        tx.get(numbers_, "next", bytes) ? bench::apps::number_of(bytes) : 0;
    tx.put(numbers_, "next", bench::apps::bytes_of(number + 1));
    return number;
  }

  bench::lmdb::Environment env_;
  MDB_dbi sessions_ = 0, by_user_ = 0, by_until_ = 0, numbers_ = 0;
};

}  // namespace sessions
