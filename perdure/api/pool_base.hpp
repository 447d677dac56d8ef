// SPDX-License-Identifier: BSD-3-Clause
//
// PoolBase: what a pool does besides its transactions, whatever its root and its engine are:
// closing, counters, checkpoints. It is compiled once, in pool_base.cpp.
//
// Thread safety and errors: as pool.hpp says.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "perdure/api/options.hpp"
#include "perdure/api/receipt.hpp"
#include "perdure/backup/events.hpp"
#include "perdure/backup/options.hpp"
#include "perdure/base/status.hpp"
#include "perdure/replication/options.hpp"

namespace perdure {

namespace engine {
class DynamicRunner;
class FollowedLog;
class OpenSnapshot;
class Snapshots;
namespace follow {
class Follower;
}
}  // namespace engine
namespace backup {
class Archive;
class Store;
}  // namespace backup
namespace replication {
class Primary;
}
namespace medium {
class Medium;
}
namespace pool {
class OpenPool;
struct Header;
}  // namespace pool

struct OwnedBlocks;  // walk.hpp

namespace detail {
class PoolEvents;

class Copies;      // copies.hpp
struct RootType;   // layout.hpp
struct Opened;     // open.hpp
struct Plan;       // plan.hpp
struct Unsettled;  // pool_evolve.hpp

/// Call this in a handler: returns the Status of an opening for the exception in flight. Rethrows
/// an exception that is not the library's.
Status opening_failed(const std::string& path);

/// An engine over one open file, whatever the engine is (running.hpp).
class RunningEngine : public DurabilitySource {
 public:
  /// The id up to which every transaction is durable.
  [[nodiscard]] virtual std::uint64_t durable_now() const noexcept = 0;
  /// As Engine::checkpoint.
  virtual Status checkpoint() = 0;
  /// As Engine::close.
  virtual Status close() = 0;
  /// As Engine::stats.
  virtual Stats stats() = 0;
  /// As engine::trim (engine/trim.hpp).
  virtual Result<Trimmed> trim(std::uint64_t max_bytes) = 0;
  /// The open file.
  [[nodiscard]] virtual pool::OpenPool& file() noexcept = 0;
  /// Whether the calling thread is in a transaction of it.
  [[nodiscard]] virtual bool inside() = 0;
  /// Why the pool refuses work: 0, or bits of EngineBase.
  [[nodiscard]] virtual std::uint32_t state() const noexcept = 0;
  /// Throws error(closed) in a forked child.
  virtual void must_be_own() const = 0;
  /// What runs transactions of an engine that was chosen at opening; null for one that is compiled
  /// in.
  [[nodiscard]] virtual engine::DynamicRunner* runner() noexcept = 0;
  /// The engine's snapshots; null where it has none.
  [[nodiscard]] virtual engine::Snapshots* snapshots() noexcept = 0;
  /// The archive of the pool's log; null where it has none.
  [[nodiscard]] virtual backup::Archive* archive() noexcept = 0;
  /// What appends the pool's log to the replicated one; null where it is not replicated.
  [[nodiscard]] virtual replication::Primary* primary() noexcept = 0;
  /// The log, for those that read it; null where the engine has none.
  [[nodiscard]] virtual engine::FollowedLog* followed_log() noexcept = 0;
  /// What follows another process's pool; null: this process has the pool for itself.
  [[nodiscard]] virtual engine::follow::Follower* follower() noexcept = 0;
  /// close() for a program that asks for it: `busy` while a snapshot is open.
  Status close_unless_read();
};

}  // namespace detail

/// What every open pool can do besides transactions. Pool<Root> has these calls.
class PoolBase {
 public:
  PoolBase(const PoolBase&) = delete;
  PoolBase& operator=(const PoolBase&) = delete;

  /// Of a pool that is opened with read_only beside a writer: moves on to the newest state that is
  /// durable, which views see from then on, and returns its id. Waits for views of other threads,
  /// up to ReaderOptions::patience; where one stays, or a snapshot is open, the state stays, too. A
  /// view() moves on by itself where the state is older than ReaderOptions::staleness. Of any other
  /// pool: returns the id of the newest transaction. Throws perdure::error: invalid inside a
  /// transaction, busy where a program has opened the pool meanwhile that serves no readers,
  /// expired where another version of the program has changed it, corrupt, io; and std::bad_alloc.
  std::uint64_t refresh();
  /// Returns true when views see every transaction up to `id`, all of them durable; false when that
  /// takes longer than `timeout`. Ids are those of receipts (Receipt::id), and programs can send
  /// them to each other. Throws as refresh().
  bool wait_for(std::uint64_t id, std::chrono::milliseconds timeout);

  /// The events that transactions emit (Tx::emit), read one after the other (backup/events.hpp,
  /// docs/events.md). Where the pool has an archive, those in it, too. The stream may outlive the
  /// pool; its next() throws `closed` then. Throws perdure::error: unsupported where the engine
  /// keeps no events, and what opening the archive says. Thread safety: one thread at a time calls
  /// events() and follow().
  [[nodiscard]] EventStream events(const EventOptions& options = {});
  /// Calls f(event) for each event, on a thread of its own, until the result is destroyed or f
  /// returns false. Throws as events().
  [[nodiscard]] Following follow(const EventOptions& options, Following::Call f);

  /// Checkpoints, marks the pool clean, and refuses work from then on. Receipts stay valid. Throws
  /// perdure::error when it could not (io, busy while a snapshot is open, or invalid inside a
  /// transaction), or std::bad_alloc.
  /// What was acknowledged is kept even then: by the destructor, or by the next opening's recovery.
  CloseReport close();
  /// Throws std::bad_alloc.
  [[nodiscard]] Stats stats();
  /// Returns the id up to which every transaction is durable. Throws error(closed) in a forked
  /// child, and nothing else.
  [[nodiscard]] std::uint64_t durable_id();
  /// Takes a checkpoint: the data region receives everything that is durable, and the log is
  /// truncated, while transactions run. Throws perdure::error (io, invalid inside a transaction,
  /// busy as update()), and std::bad_alloc: the log is then as it was, or partly truncated.
  void checkpoint();
  /// Gives free parts of the pool's file back to the file system while transactions run: chunks of
  /// 64 KiB without an object, at most `max_bytes` in one call. The file keeps its length and has
  /// holes there; later allocations take blocks of the disk again. The call waits for the
  /// transactions and views that are open when it begins, and takes a checkpoint. To give all free
  /// chunks back, call it until Trimmed::more is false:
  ///
  ///     for (perdure::Trimmed t{0, true}; t.more;) t = pool.trim();
  ///
  /// Throws perdure::error: unsupported if the medium or its file system has no holes (a device) or
  /// the engine makes nothing durable, read_only, busy while a snapshot is open (Pool::snapshot),
  /// invalid inside a transaction, and what
  /// checkpoint() throws; and std::bad_alloc. After an error the pool is as good as before, unless
  /// the medium failed. Any thread may call it; a second call waits for the first. You may call it
  /// inside a transaction on another pool, if no transaction that it waits for waits for that one.
  Trimmed trim(std::uint64_t max_bytes = std::uint64_t{64} << 20);
  /// Compares every page of the pool's file with its checksum, while transactions run, or while
  /// another process writes the pool. It reads the file, not the mapping, and past the page cache
  /// where it can; ScrubOptions::bytes_per_second bounds how fast. It changes nothing. A pool
  /// without checksums (Options::checksums) has ScrubReport::has_checksums false. Throws
  /// perdure::error: busy while another process is opening the pool, io, corrupt where the file was
  /// cut short, closed; and what ScrubOptions::progress throws. Any thread may call it, also inside
  /// a transaction; in a pool that is open beside its writer, one at a time.
  [[nodiscard]] ScrubReport scrub(const ScrubOptions& options = {});
  /// What is known of the pool's archive (Options::archive). Throws std::bad_alloc.
  [[nodiscard]] ArchiveStats archive();
  /// Returns when every transaction that has returned is durable and in the archive. Throws
  /// perdure::error: invalid in a pool without an archive, expired where it was given up, the
  /// archive's failure (full, io), and what receipts throw.
  void flush_archive();
  /// What is known of the pool's replication (Options::replicate). Throws std::bad_alloc.
  [[nodiscard]] ReplicationStats replication();
  /// A copy of the pool's header as it is now (perdure/pool/format.hpp): identity, sizes, format.
  /// Any thread may call it, also while the pool's own threads write the header.
  [[nodiscard]] pool::Header header();
  /// The open file behind the pool (perdure/pool/open_pool.hpp), for tools and tests. Valid while
  /// the pool is open.
  [[nodiscard]] pool::OpenPool& file();
  /// The name of the engine instance that the pool runs: "shadow". Valid for ever.
  [[nodiscard]] std::string_view engine_name() const noexcept { return name_; }

 protected:
  PoolBase() = default;
  /// Takes over an open pool.
  PoolBase(PoolBase&& other) noexcept;
  /// Closes this pool, and takes over the other.
  PoolBase& operator=(PoolBase&& other) noexcept;
  /// Closes the pool if close() was not called; a failure then is not reported (the next opening
  /// recovers).
  ~PoolBase();

  /// Opens the pool with an engine of the registry, and takes it. What `medium` leads to is taken
  /// over; null: the path is opened. The file is left only after keep().
  Status open_registered(const std::string& path, const Options& options,
                         const detail::RootType& root, std::unique_ptr<medium::Medium>* medium,
                         bool fresh);
  /// Takes what was opened, except the engine over it.
  void take(const detail::Opened& opened, const Options& options);
  /// Leaves a new pool's file where it is.
  void keep();
  /// Closes the pool as the destructor does. Its snapshots expire, and it waits for the threads
  /// that read one.
  void shut() noexcept;
  /// The address of the data region.
  [[nodiscard]] const std::byte* data();
  /// The size of the data region in bytes.
  [[nodiscard]] std::uint64_t data_bytes();
  /// Compares what the root's containers own with the heap.
  [[nodiscard]] CheckReport compare(OwnedBlocks owned);
  /// Adds to `owned` the blocks that the catalog leads to. `read(to, from, bytes)` reads in a
  /// transaction.
  void own_catalog(OwnedBlocks& owned,
                   const std::function<void(void* to, const std::byte* from, std::size_t n)>& read);
  /// The catalog, in a pool that has one.
  [[nodiscard]] std::byte* catalog();
  /// Throws error(exists) for rows that the program's layout does not allow.
  [[noreturn]] void refuse_rows(const std::string& problems);
  /// Makes a catalog of `bytes` bytes in the data region the pool's (CATALOG-2). Throws the errors
  /// of OpenPool::adopt_catalog.
  void adopt_catalog(const std::byte* at, std::uint64_t bytes);
  /// Throws error(incompatible) unless each object that has to be copied is a block of its own.
  void expect_blocks(detail::Copies& copies);
  /// Tells `copies` which blocks the catalog owns. `read`: as for own_catalog().
  void owned_by_catalog(
      detail::Copies& copies,
      const std::function<void(void* to, const std::byte* from, std::size_t n)>& read);
  /// Gives the pool the feature without which it must have no copies (FEATURE-1). Throws the errors
  /// of OpenPool::require_feature.
  void will_have_copies();
  /// Throws `why` again, with what the copying takes.
  [[noreturn]] static void refuse_copies(const detail::Copies& copies, const error& why);
  /// The objects that were copied, with their copies, by address; none before the switch. `read`:
  /// as for own_catalog().
  [[nodiscard]] std::unordered_map<std::uint64_t, std::uint64_t> copied_objects(
      const std::function<void(void* to, const std::byte* from, std::size_t n)>& read);
  /// Call this after a change of layout, with the new address and size of the root object.
  void move_root(std::byte* root, std::uint64_t bytes);
  /// Returns when transaction `id` is durable; throws where it can't become so.
  void wait_for(std::uint64_t id) { running_->wait_durable(id).or_throw(); }
  /// refresh() that waits so long; nothing: as ReaderOptions::patience says.
  std::uint64_t refresh_within(std::optional<std::chrono::milliseconds> patience);
  /// Opens a snapshot, and waits for its durability unless that is `async`. Throws as
  /// Pool::snapshot().
  [[nodiscard]] std::shared_ptr<engine::OpenSnapshot> open_snapshot(Durability durability);
  /// Adds to the report of a check what scrub() finds.
  CheckReport with_pages(CheckReport report);
  /// Makes a backup of the snapshot in the folder; empty: with the pool's archive. Throws as
  /// Pool::backup().
  BackupReport back_up(engine::OpenSnapshot& snapshot, const std::string& folder,
                       const std::function<void(std::uint64_t, std::uint64_t)>& progress);
  /// The same to a store.
  BackupReport back_up(engine::OpenSnapshot& snapshot, backup::Store& store,
                       const std::function<void(std::uint64_t, std::uint64_t)>& progress);
  /// Call this at the end of an opening: makes the backup that a new archive begins with.
  void begin_archive();
  /// Whether open_snapshot() would be refused neither for the engine nor for the caller.
  [[nodiscard]] bool can_open_snapshot();
  /// Closes the streams that events() has returned.
  void end_events() noexcept;
  /// The receipts' pool.
  [[nodiscard]] detail::DurabilitySource* source() const noexcept { return running_.get(); }

  /// The engine and the file.
  std::unique_ptr<detail::RunningEngine> running_;
  /// What runs transactions, where the engine was chosen at opening.
  engine::DynamicRunner* runner_ = nullptr;
  /// The root object's address.
  std::byte* root_ = nullptr;
  /// The instance's name: a literal.
  std::string_view name_;
  /// Of an update() that names none.
  Durability durability_ = Durability::durable;
  /// No transaction has ever committed in the pool.
  bool empty_ = false;
  /// The changes that opening still has to make before the pool has the program's layout.
  std::shared_ptr<const detail::Plan> plan_;
  /// What the streams of events() ask; null: there was none.
  std::shared_ptr<detail::PoolEvents> events_;
  /// What settle() has still to do; null: nothing.
  std::shared_ptr<detail::Unsettled> unsettled_;
};

}  // namespace perdure
