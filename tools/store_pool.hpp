// SPDX-License-Identifier: BSD-3-Clause
//
// StorePool: a pool whose root is tool::Store (store.hpp), as the subcommands use it. The templates
// are instantiated once, in store_pool.cpp. Everything throws perdure::error. Not thread-safe: one
// command, one thread.
//
// Crash invariants: LOAD-1 a batch's rows and the position in the source after them are one
// transaction, so that a resumed load continues exactly after the last durable row; LOAD-2 batches
// become durable in order (a later one overwrites the position of an earlier one, LAW-1).
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/api/options.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/pool/open_pool.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/source_file.hpp"
#include "tools/spec.hpp"

namespace perdure::tool {

/// A row as it lies in the pool.
struct StoredRow {
  std::uint64_t number = 0;  ///< its place in the order
  std::uint64_t line = 0;    ///< of the source; 0: put by hand
  std::string key, bytes;
  [[nodiscard]] bool by_hand() const noexcept { return line == 0; }
};

/// What is loaded, and how far the load is.
struct SourceState {
  bool begun = false, complete = false;
  std::string path, spec, prologue, epilogue;
  Identity identity;
  std::uint64_t position = 0, line = 1;  ///< of the first byte not yet loaded
  std::uint64_t rows = 0;                ///< loaded up to now
  std::uint64_t edits = 0;               ///< rows put or deleted by hand since
};

struct BatchRow {
  std::string key, bytes;
  std::uint64_t line = 0;                        ///< where the row itself begins
  std::uint64_t end_position = 0, end_line = 1;  ///< of the source's byte after it
};
/// Row `index` of a batch has a key that exists already.
struct Repeat {
  std::size_t index = 0;
  std::uint64_t other_line = 0;  ///< 0: put by hand
};

/// Whether tool::Store made this pool.
[[nodiscard]] bool is_store(const pool::Header& header);

class StorePool {
 public:
  enum class Access { read, write, create };
  /// read: changes nothing, also where a program has the pool open for writing: then all calls see
  /// one state, and throw error(expired) if it can't be kept. A pool that was not closed in order,
  /// and whose engine serves no readers, is opened for writing, which recovers it. `told` is called
  /// with the progress of recovery; if it is empty, the progress is shown (progress.hpp).
  static StorePool open(const PoolArguments& arguments, Access access,
                        Durability durability = durable,
                        std::function<void(const RecoveryProgress&)> told = {});
  StorePool(StorePool&&) noexcept;
  StorePool& operator=(StorePool&&) = delete;
  ~StorePool();  ///< closes in order

  [[nodiscard]] std::optional<StoredRow> get(std::string_view key);
  bool put(std::string_view key, std::string_view bytes);  ///< true: the key is new
  bool del(std::string_view key);                          ///< false: the key does not exist
  [[nodiscard]] std::uint64_t size();
  /// Rows in key order from `from` on, while f returns true.
  void scan(std::string_view from, const std::function<bool(const StoredRow&)>& f);
  /// Rows in their order, while f returns true.
  void each_row(const std::function<bool(const StoredRow&)>& f);

  [[nodiscard]] SourceState source();
  void begin_source(const SourceState& state);
  /// Adds a batch's rows, or adds none of them and returns the repeated key. Returns when the
  /// pool's durability mode says so; see settle.
  std::optional<Repeat> append(std::span<const BatchRow> batch);
  void finish_source(std::string_view epilogue, std::uint64_t position, std::uint64_t line);

  /// Begins to write the pool as it is now to a pool file of its own, while the load goes on
  /// (Snapshot::copy_to). Returns when the state is fixed; get() of the result waits for the file,
  /// and throws what has failed. To be waited for before close().
  [[nodiscard]] std::future<void> back_up(const std::string& path);
  /// The same as a backup in the pool's archive (Pool::backup).
  [[nodiscard]] std::future<void> back_up_to_archive();

  struct Settled {
    std::uint64_t rows = 0, position = 0;
    bool any = false;
  };
  /// Waits until at most `in_flight` appended batches are not yet durable; returns the position up
  /// to which everything is durable.
  Settled settle(std::size_t in_flight);

  [[nodiscard]] Json describe();             ///< counts and source, for info
  [[nodiscard]] Json check(bool& problems);  ///< heap, containers, and that rows and index agree
  [[nodiscard]] engine::Stats stats() const;
  [[nodiscard]] bool created() const;
  /// The id of the one state that is shown; nothing where nobody else can change the pool.
  [[nodiscard]] std::optional<std::uint64_t> state() const;
  void close();  ///< checkpoints and marks the pool clean

 private:
  struct Impl;
  explicit StorePool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace perdure::tool
