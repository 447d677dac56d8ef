// SPDX-License-Identifier: BSD-3-Clause
//
// A client that writes rows one after the other, each acknowledged before the next, until it is
// killed: into a replicated pool, an SQLite database or a Redis server. It counts what was
// acknowledged in a file that outlives it. `./dev bench lost` (bench/report/lost.py) runs it, and
// looks what the other copy has; of a pool that is the standby that --follow runs.
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "nats/nats_log.hpp"
#include "perdure/api/standby.hpp"
#include "perdure/perdure.hpp"

namespace bench::lost {
namespace {

struct Arguments {
  std::string store, path, log, backups, level = "local", counter;
  int port = 0;
  bool follow = false;
} arguments;

constexpr std::uint64_t keys = 10'000;
constexpr std::size_t row_bytes = 100;

// Row n: its number, filled up to row_bytes.
std::string row(std::uint64_t n) {
  std::string text = std::to_string(n) + " ";
  text.resize(row_bytes, '.');
  return text;
}

/// Returns when row n is acknowledged.
using Write = std::function<void(std::uint64_t n)>;

struct Root {
  perdure::hash_map<std::uint64_t, std::string> rows;
};
using RowPool = perdure::Pool<Root>;

perdure::Options pool_options() {
  perdure::Options o;
  o.medium = "file";
  o.creation.log_size = 64 << 20;
  o.replicate.log = arguments.log;
  o.replicate.patience = std::chrono::seconds(60);
  return o;
}

Write into_pool() {
  static const std::map<std::string, perdure::Ack> levels{{"local", perdure::local},
                                                          {"shipped", perdure::shipped},
                                                          {"quorum", perdure::quorum},
                                                          {"standby", perdure::standby(1)}};
  auto pool = std::make_shared<RowPool>(RowPool::open(arguments.path, pool_options()));
  (void)pool->backup(arguments.backups);  // the standby is made of it
  return [pool, level = levels.at(arguments.level)](std::uint64_t n) {
    pool->update(level, [&](auto& tx, Root& r) { r.rows.put(tx, n % keys, row(n)); });
  };
}

Write into_sqlite() {
  const auto must = [](sqlite3* db, int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW)
      throw std::runtime_error(std::string("SQLite: ") + sqlite3_errmsg(db));
  };
  sqlite3* opened = nullptr;
  must(opened, sqlite3_open(arguments.path.c_str(), &opened));
  const std::shared_ptr<sqlite3> db(opened, sqlite3_close);
  must(opened, sqlite3_exec(opened,
                            "pragma busy_timeout = 5000; pragma journal_mode = wal;"
                            "pragma synchronous = full;"
                            "create table if not exists rows (k integer primary key, v text)",
                            nullptr, nullptr, nullptr));
  sqlite3_stmt* prepared = nullptr;
  must(opened, sqlite3_prepare_v2(opened, "insert or replace into rows values (?, ?)", -1,
                                  &prepared, nullptr));
  const std::shared_ptr<sqlite3_stmt> put(prepared, sqlite3_finalize);
  return [db, put, must](std::uint64_t n) {
    const std::string text = row(n);
    must(db.get(), sqlite3_bind_int64(put.get(), 1, static_cast<sqlite3_int64>(n % keys)));
    must(db.get(), sqlite3_bind_text(put.get(), 2, text.data(), static_cast<int>(text.size()),
                                     SQLITE_STATIC));
    must(db.get(), sqlite3_step(put.get()));
    must(db.get(), sqlite3_reset(put.get()));
  };
}

// Level `wait`: until one replica has it in memory, too (the command WAIT).
Write into_redis() {
  const std::shared_ptr<redisContext> redis(redisConnect("127.0.0.1", arguments.port), redisFree);
  if (redis == nullptr || redis->err != 0) throw std::runtime_error("Redis: no connection");
  return [redis, waits = arguments.level == "wait"](std::uint64_t n) {
    const std::string text = row(n);
    const auto next = [&](int type) {
      void* answer = nullptr;
      const bool came = redisGetReply(redis.get(), &answer) == REDIS_OK;
      const std::unique_ptr<redisReply, void (*)(void*)> reply(static_cast<redisReply*>(answer),
                                                               freeReplyObject);
      if (!came || reply->type != type) throw std::runtime_error("Redis: no such answer");
      return reply->integer;
    };
    redisAppendCommand(redis.get(), "SET %llu %s", static_cast<unsigned long long>(n % keys),
                       text.c_str());
    if (waits) redisAppendCommand(redis.get(), "WAIT 1 0");
    (void)next(REDIS_REPLY_STATUS);
    if (waits && next(REDIS_REPLY_INTEGER) < 1) throw std::runtime_error("Redis: no replica");
  };
}

std::atomic<std::uint64_t>& counter() {
  const int fd = ::open(arguments.counter.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, 4096) != 0)
    throw std::runtime_error("no file " + arguments.counter);
  void* const at = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) throw std::runtime_error("mmap of " + arguments.counter);
  return *static_cast<std::atomic<std::uint64_t>*>(at);
}

[[noreturn]] void write_for_ever() {
  const std::map<std::string, std::function<Write()>> stores{
      {"perdure", into_pool}, {"sqlite", into_sqlite}, {"redis", into_redis}};
  std::atomic<std::uint64_t>& acknowledged = counter();
  const Write write = stores.at(arguments.store)();
  std::cout << "ready" << std::endl;
  std::string go;
  std::getline(std::cin, go);
  for (std::uint64_t n = 1;; ++n) {
    write(n);
    acknowledged = n;
  }
}

// A standby. Told to, it becomes the primary, and says which row is its last.
int follow() {
  perdure::StandbyOptions o;
  o.medium = "file";
  o.replicate = pool_options().replicate;
  o.backups = arguments.backups;
  auto copy = perdure::Standby<Root>::open(arguments.path, o);
  copy.catch_up(std::chrono::seconds(60));
  std::cout << "ready" << std::endl;
  std::string go;
  std::getline(std::cin, go);
  auto pool = std::move(copy).promote(pool_options());
  std::uint64_t last = 0;
  pool.view([&](auto& tx, const Root& r) {
    r.rows.for_each(tx, [&](std::uint64_t, const std::string& v) {
      last = std::max<std::uint64_t>(last, std::stoull(v));
    });
  });
  std::cout << last << std::endl;
  return 0;
}

}  // namespace
}  // namespace bench::lost

int main(int argc, char** argv) {
  using namespace bench::lost;
  CLI::App app("Writes rows until it is killed");
  app.add_option("--store", arguments.store, "perdure, sqlite or redis");
  app.add_option("--path", arguments.path, "the pool or the database");
  app.add_option("--port", arguments.port, "of the Redis server");
  app.add_option("--log", arguments.log, "the pool's replicated log");
  app.add_option("--backups", arguments.backups, "the pool's backups");
  app.add_option("--level", arguments.level, "local, shipped, quorum, standby; of Redis also wait");
  app.add_option("--counter", arguments.counter, "the file that counts what was acknowledged");
  app.add_flag("--follow", arguments.follow, "be the pool's standby");
  CLI11_PARSE(app, argc, argv);
  try {
    perdure::nats::enable();
    if (arguments.follow) return follow();
    write_for_ever();
  } catch (const std::exception& e) {
    std::cerr << "bench_lost: " << e.what() << "\n";
    return 1;
  }
}
