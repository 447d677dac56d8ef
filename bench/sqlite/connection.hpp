// SPDX-License-Identifier: BSD-3-Clause
//
// SQLite's C interface in C++: a connection, and prepared statements with typed values. A failure
// is a Failure with SQLite's code.
// Thread safety: the thread of the connection.
#pragma once

#include <sqlite3.h>

#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace bench::sqlite {

struct Failure : std::runtime_error {
  Failure(int c, const std::string& what) : std::runtime_error(what), code(c) {}
  int code;
};

/// A value that is bound as bytes, not as text.
struct Blob {
  std::string_view bytes;
};

class Connection {
 public:
  /// `vfs`: null means SQLite's own.
  Connection(const std::string& path, const char* vfs) {
    check(sqlite3_open_v2(path.c_str(), &db_,
                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, vfs),
          "open " + path);
    sqlite3_busy_timeout(db_, 10'000);
  }
  ~Connection() { sqlite3_close(db_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Runs statements without values; returns the first row's first column, if there is one.
  std::string run(const std::string& sql) {
    std::string first;
    const auto take = [](void* to, int columns, char** values, char**) {
      auto& text = *static_cast<std::string*>(to);
      if (text.empty() && columns != 0 && values[0] != nullptr) text = values[0];
      return 0;
    };
    check(sqlite3_exec(db_, sql.c_str(), take, &first, nullptr), sql);
    return first;
  }
  void check(int code, const std::string& what) const {
    if (code != SQLITE_OK)
      throw Failure(code, "sqlite: " + what + ": " +
                              (db_ != nullptr ? sqlite3_errmsg(db_) : sqlite3_errstr(code)));
  }
  [[nodiscard]] sqlite3* get() const noexcept { return db_; }

 private:
  sqlite3* db_ = nullptr;
};

class Statement {
 public:
  Statement(Connection& db, std::string_view sql) : db_(db) {
    db.check(sqlite3_prepare_v3(db.get(), sql.data(), static_cast<int>(sql.size()),
                                SQLITE_PREPARE_PERSISTENT, &statement_, nullptr),
             std::string(sql));
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Runs it with these values, to its end or to its first row; returns whether there is a row.
  /// Texts outlive the call.
  template <class... Values>
  bool operator()(const Values&... values) {
    sqlite3_reset(statement_);
    int column = 0;
    (bind(++column, values), ...);
    return next();
  }
  /// Moves to the next row; returns whether there is one.
  bool next() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    sqlite3_reset(statement_);
    if (code != SQLITE_DONE) db_.check(code, sqlite3_sql(statement_));
    return false;
  }
  /// Ends the statement: no more rows are wanted.
  void done() { sqlite3_reset(statement_); }
  [[nodiscard]] std::int64_t number(int column) const {
    return sqlite3_column_int64(statement_, column);
  }
  /// A column's bytes, until the next row.
  [[nodiscard]] std::string_view bytes(int column) const {
    const void* const bytes = sqlite3_column_blob(statement_, column);
    return {static_cast<const char*>(bytes),
            static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }
  /// A column's text or bytes.
  [[nodiscard]] std::string text(int column) const {
    const auto* const bytes =
        reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes == nullptr
               ? std::string()
               : std::string(bytes,
                             static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  }

 private:
  template <class T>
  void bind(int column, const T& value) {
    if constexpr (std::is_same_v<T, std::nullptr_t>)
      sqlite3_bind_null(statement_, column);
    else if constexpr (std::integral<T>)
      sqlite3_bind_int64(statement_, column, static_cast<sqlite3_int64>(value));
    else if constexpr (std::is_same_v<T, Blob>)
      sqlite3_bind_blob(statement_, column, value.bytes.data(),
                        static_cast<int>(value.bytes.size()), SQLITE_STATIC);
    else {
      const std::string_view text = value;
      sqlite3_bind_text(statement_, column, text.data(), static_cast<int>(text.size()),
                        SQLITE_STATIC);
    }
  }
  Connection& db_;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace bench::sqlite
