// SPDX-License-Identifier: BSD-3-Clause
//
// OpenPool: one open pool: its lock, medium, header, view and heap. Engines run on it; it knows no
// transactions.
//
// Opening is in steps, so that a pool that is foreign, newer, truncated, of another layout or
// engine, or in use, is refused before a byte is written (LAW-10): open() locks, maps the medium
// and checks the header; the engine then recovers (plain functions of the medium); start_session()
// raises the epoch (HEADER-2) and maps the view.
// A pool is created under a temporary name and gets its final one by rename, when it is whole and
// durable: a creator killed at any instant leaves no pool or a whole one (and PATH.creating,
// PATH.creating.pool, which the next creator takes over).
//
// Thread safety: any thread may call medium(), view(), heap(), data_bytes(), grow() and publish();
// one caller at a time may make the other calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perdure/base/callbacks.hpp"
#include "perdure/base/status.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/pool/address.hpp"
#include "perdure/pool/claim.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/pool/lock.hpp"
#include "perdure/pool/reader_words.hpp"

namespace perdure::pool {

class Heap;
enum class Feature : std::uint8_t;

/// What the caller of open() asks of the file.
struct OpenFile {
  std::string path;
  bool create = true;        ///< make it if it does not exist, or is an empty file
  bool must_create = false;  ///< `exists` if it exists
  bool read_only = false;    ///< shared lock; refused while a writer has the pool
  /// With read_only: asked about a pool's header, whether to follow the pool: then it is open
  /// beside whoever writes it, now or later (OpenPool::following()). Empty: no.
  std::function<bool(const Header&)> may_follow = {};
  /// The caller changes the pool together with its replicated log, or ends its replication.
  /// Otherwise a pool that is replicated opens for reading only.
  bool with_log = false;
  /// creation: the data region's maximum size, for which address space is reserved. The directory
  /// takes 1/8192 of it as the data region grows
  std::uint64_t max_bytes = 64ULL << 30;
  /// true: an existing pool whose limit is less than max_bytes gets max_bytes as its limit when its
  /// session starts (RAISE-1, directory.hpp). A pool with a limit of max_bytes or more is not
  /// changed, nor is one that is opened for reading only.
  bool raise_max = false;
  /// creation: the pool has checksums of its pages (page_checksums.hpp)
  bool checksums = false;
  /// creation: the data region's initial size, allocated; 0: the minimum, allocated as it is used
  std::uint64_t initial_bytes = 0;
  /// All rings together, each rounded up to 4096; 0: the rings that fit a log range of 64 MiB.
  /// Allocated as the log is used.
  std::uint64_t log_bytes = 0;
  std::uint32_t rings = 0;      ///< 0: as the engine asks
  std::string medium = "auto";  ///< see medium::OpenMedium
  bool direct = true;
  medium::Delays delays;
  /// creation: the permission bits of the file's mode; 0: as the process's umask says
  std::uint32_t mode = 0;
  /// creation: the requested view address (tests); 0: a free slot is chosen
  std::uint64_t base = 0;
  /// creation: the uuid is derived from this (tests: a pool that is the same in every run); 0:
  /// random
  std::uint64_t uuid_seed = 0;
};

/// What the engine and the root type require.
struct Identity {
  std::string engine;
  bool engine_any = false;                  ///< tools: open whatever engine the header names
  CommitOrder order = CommitOrder::strict;  ///< used at creation; an existing pool keeps its own
  std::uint32_t rings = 1;                  ///< used at creation
  std::uint64_t min_ring = 8192;            ///< minimum bytes of a ring; used at creation
  std::string layout;                       ///< text; empty with layout_any
  bool layout_any = false;                  ///< tools that know no root type
  /// creation: the layout text of the new pool's catalog; empty: the pool has no catalog
  std::string catalog = {};
  std::uint64_t root_bytes = 0;
  /// of the root type, beside its layout; empty: no names are known, and none are compared
  std::string field_names;
  bool renamed_fields = false;  ///< open a pool whose fields have other names, and give it these
};

/// What trim() found and did. All in bytes of the data region.
struct TrimReport {
  std::uint64_t data_bytes_before = 0, data_bytes_after = 0;  ///< the data region's length
  std::uint64_t free_bytes = 0;  ///< chunks without a block, as far as trim() may take them
  std::uint64_t allocated = 0;   ///< of free_bytes: what the file system had given blocks
  std::uint64_t given_back = 0;  ///< what it got back: 0 if `dry_run`, or if `refusal` says why
  std::uint64_t kept_empty = 0;  ///< spans of several chunks without a block: they stay as they are
  /// `unsupported`: the medium or its file system has no holes. No block was given back between the
  /// structures; a file's end was cut off nevertheless, if data_bytes_after says so.
  Status refusal;
};

/// How the view is made (start_session).
enum class ViewPolicy : std::uint8_t {
  shared,  ///< the view is the data region (undo): stores still go through the medium
  /// a DRAM copy beside the data region: copy_on_write for what existed (a device-dax refuses that:
  /// there it is anonymous memory, into which all that is allocated is copied at once), fresh
  /// anonymous memory for a pool that this opening made and for later growth
  shadow,
  none  ///< check, info: no view
};

class OpenPool {
 public:
  static Result<std::unique_ptr<OpenPool>> open(const OpenFile& how, const Identity& who);
  /// The same on a medium that the caller made (tests, crash exploration): no lock, no path.
  /// `fresh`: format it first.
  static Result<std::unique_ptr<OpenPool>> open_on(std::unique_ptr<medium::Medium> medium,
                                                   bool fresh, const OpenFile& how,
                                                   const Identity& who);
  ~OpenPool();  ///< releases lock and mappings; writes nothing

  [[nodiscard]] medium::Medium& medium() noexcept { return *medium_; }
  [[nodiscard]] const medium::Medium& medium() const noexcept { return *medium_; }
  /// For those that read the data region, or the mapping of it: the medium that knows which pages
  /// are holes; null where pages that were holes may have become data.
  [[nodiscard]] const medium::Medium* known_holes() const noexcept {
    return following() ? nullptr : medium_.get();
  }
  [[nodiscard]] const Header& header() const noexcept { return header_; }
  /// Between open and start_session: the data region durably holds every transaction with an id up
  /// to `id`. start_session publishes it as the checkpoint id.
  void recovered(std::uint64_t id) noexcept {
    if (!before_recovery_) before_recovery_ = header_.checkpoint_id;
    header_.checkpoint_id = id;
  }
  /// The offset of the program's root object: that of the header, or in a pool with a catalog the
  /// one that opening has passed to set_root() (catalog.hpp).
  [[nodiscard]] std::uint64_t root_offset() const noexcept { return root_offset_; }
  [[nodiscard]] std::uint64_t root_bytes() const noexcept { return root_bytes_; }  ///< its size
  void set_root(std::uint64_t offset, std::uint64_t bytes) noexcept {
    root_offset_ = offset;
    root_bytes_ = bytes;
  }
  /// The header as it is; other threads may be changing it (grow(), publish()). Thread safe.
  [[nodiscard]] Header header_now() const;
  /// The header that close_clean(id) would write now, except the bytes in blocks. Thread safe.
  [[nodiscard]] Header header_of_clean_close(std::uint64_t id) const;
  /// Who may read and write the pool's file: the permission bits of its mode; 0 where it is no
  /// regular file.
  [[nodiscard]] std::uint32_t file_mode() const noexcept;
  /// Under the header's lock (grow() takes it too): calls change(header) and writes both copies
  /// (HEADER-1). What the caller made durable before the call is durable before the header. Thread
  /// safe.
  Status publish(const std::function<void(Header&)>& change = {});
  /// FEATURE-1: when this returns ok, both copies of the header durably have the feature's bit, and
  /// the pool may hold what needs it. A pool of an older version becomes version 4; a pool that has
  /// the feature is not written. Errors: `read_only`; the medium's, after which the pool does not
  /// have the feature. Call it after start_session, or, for what recovery itself needs, in a
  /// publish() of its own. Thread safe; two fences if the bit is new.
  Status require_feature(Feature feature);
  [[nodiscard]] bool has_feature(Feature feature) const;  ///< thread safe

  /// From now on the header says which records the log still has (feature archived log). Call it
  /// before the session's first transaction. Errors: as require_feature.
  Status archive_log();

  /// From now on the header says how far the pool and its replicated log agree (feature replication
  /// words), durably when this returns ok. Between recovery and start_session, or in a session.
  /// Errors: as require_feature.
  Status replicate(const ReplicationWords& words);
  /// The same, from the next header on that is published for another reason. Thread safe.
  void note_replication(const ReplicationWords& words) noexcept;

  /// From now on a catalog of `bytes` bytes at `offset` is the pool's, in place of the root object
  /// (CATALOG-2): when this returns ok, both copies of the header durably say so. Call it in a
  /// session of a pool without a catalog, once the catalog is durable. Errors: as require_feature.
  Status adopt_catalog(std::uint64_t offset, std::uint64_t bytes);

  /// Before start_session: the session begins with checksums of pages, also where the pool has none
  /// (feature data checksums). The pages of an existing pool get theirs as they are written to.
  /// start_session returns `full` where the pool's limit, or the disk, has no space for them.
  void want_checksums() noexcept { wants_checksums_ = true; }

  /// For what copies the header's changes elsewhere: called after each change that a session makes
  /// of more than lengths and ids (a feature, a catalog), when it is durable. Set it before the
  /// session's first transaction.
  base::Callbacks<> when_header_changes;

  /// Reserves the view's address space, unless that was done before (start_session calls this too).
  /// The error `incompatible` names what occupies the base. open() calls it when it is given a
  /// layout, so that a pool that can't be mapped is refused before recovery writes.
  Status reserve_view();
  /// Maps the view at the recorded base; raises the epoch, clears `clean` and the ring heads,
  /// adopts the medium's append unit, raises the limit if open() was asked to (RAISE-1), publishes
  /// (not when read-only); makes the heap (not for
  /// ViewPolicy::none). The rings hold nothing by now: recovery has read them with
  /// header().append_unit.
  Status start_session(ViewPolicy policy, bool paged = false);
  /// The address of data region offset 0 in the view.
  [[nodiscard]] std::byte* view() const noexcept { return view_; }
  [[nodiscard]] Heap& heap() noexcept { return *heap_; }
  [[nodiscard]] bool has_heap() const noexcept { return heap_ != nullptr; }
  /// How much of the data region is mapped in the view and covered by the durable header.
  // The acquire pairs with the release in grow().
  [[nodiscard]] std::uint64_t data_bytes() const noexcept {
    return data_bytes_.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool created() const noexcept { return created_; }  ///< this opening made the file
  /// From now on the destructor removes a file that this opening made, until keep() is called: the
  /// caller's next steps may fail, and a failed creation leaves no file. A file that was empty
  /// before is made empty again. A device, or a medium of the caller, stays.
  void drop_unless_kept() noexcept { provisional_ = created_; }
  void keep() noexcept { provisional_ = false; }
  /// Call this when the pool has the layout and the field names that it was opened with: from now
  /// on a clean close writes them into the header. An opening that is refused does not call it.
  void has_this_layout() noexcept { said_ = true; }
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  // Readers in other processes (reader_words.hpp): what a writer tells them.

  /// READER-2: from now on the data region may change in ways that the log does not tell. Call it
  /// before recovery. It stores nothing where nobody reads and no session has served readers.
  Status hold_readers();
  /// Gives the words their block, so that reader_words() has them; where a pool has none, it does
  /// nothing. Call it before the session's engine is made, if and only if the engine keeps them.
  Status make_reader_words();
  /// The words that an engine keeps up to date; null: nobody can read beside it.
  [[nodiscard]] ReaderWords* reader_words() noexcept { return kept_; }
  /// From now on readers may follow the session: the data region changes as the log tells. It does
  /// nothing where the engine keeps no words.
  void serve_readers() noexcept;

  // The readers' side: a pool that follows another process's.

  /// Whether this object reads a pool that other processes may write meanwhile. It has no lock that
  /// keeps them away, and its mapping is private (engine/follow/follower.hpp).
  [[nodiscard]] bool following() const noexcept { return followed_ != nullptr; }
  /// What the writer tells. REQUIRES: following().
  [[nodiscard]] const ReaderWords& told() const noexcept { return *followed_; }
  /// What another process does with the pool.
  enum class Writer : std::uint8_t {
    none,    ///< nobody has it open for writing; a writer that comes will call hold_readers()
    serves,  ///< it tells readers what they need
    silent   ///< it does not: it is opening the pool, or its engine or its build can't
  };
  [[nodiscard]] Result<Writer> writer() const;
  /// Whether the path names this file still.
  [[nodiscard]] bool is_at_path() const noexcept;
  /// The other processes that have the file open, for messages.
  [[nodiscard]] std::string others() const { return lock_.others(); }
  /// The header that the file has now. While it is being written, `corrupt` may be the answer: ask
  /// again.
  [[nodiscard]] Result<Header> newest_header() const;
  /// Makes `header` this object's, and maps the data region as it is in the file, anew. What was
  /// stored to the mapping is gone. No thread may use the mapping meanwhile. Errors: `expired` if
  /// the pool has become one that this object can't follow, `out_of_memory`.
  Status follow_from(const Header& header);
  /// Maps what the data region has grown by, up to `data_bytes`; other threads may use the mapping.
  Status follow_growth(std::uint64_t data_bytes);
  /// Makes header() say so. No other thread may use it meanwhile.
  void adopt_growth() noexcept;
  /// As FileLock's calls. One caller at a time.
  void show_position(std::uint64_t id) noexcept { lock_.show_position(id); }
  void hide_position() noexcept { lock_.hide_position(); }
  [[nodiscard]] bool follower_in(std::uint64_t from, std::uint64_t to) const noexcept {
    return lock_.shows_position(from, to);
  }
  /// The pool's file, for reading.
  [[nodiscard]] int fd() const noexcept { return lock_.fd(); }

  /// Makes the data region at least `data_bytes` long: medium first, then view, then header
  /// (durable), so that no record can name bytes that recovery would not have. `full` at
  /// max_data_bytes or when the disk is full. Thread safe.
  Status grow(std::uint64_t data_bytes);

  /// Gives the blocks of free chunks back to the file system, and cuts off the free chunks at the
  /// data region's end (docs/format.md, Trimming). No object moves. Between open() and
  /// start_session(), on a pool that is clean; any engine, any root type. `dry_run`: only counts.
  /// Errors: `invalid` (a pool that is not clean, or in a session), `read_only`, `corrupt` (a heap
  /// that contradicts itself: nothing was changed), the medium's. A crash at any time leaves a pool
  /// that is clean and holds the same objects (TRIM-1, TRIM-2).
  Result<TrimReport> trim(bool dry_run = false);

  /// The last step of a trim in a session (engine/trim.hpp): gives the blocks of these chunks back
  /// to the file system. No thread may use the chunks until the caller lets them be reserved again
  /// (TRIM-4). Afterwards the mapping shows zeros there. Returns the bytes that had blocks. Errors:
  /// `unsupported` if the medium or its file system has no holes, `read_only`, and the medium's;
  /// after an error the chunks are still free, and a part of them may be holes. One caller at a
  /// time, in a session.
  Result<std::uint64_t> give_back(const std::vector<ChunkRange>& runs);

  /// Marks the pool clean and publishes. Precondition: the engine has made a checkpoint, so the
  /// data region holds everything and the rings nothing. A pool that has no names of the root
  /// type's fields, or other names, gets those of this opening; so does a pool with a catalog whose
  /// layout has changed.
  Status close_clean(std::uint64_t id);

 private:
  OpenPool();
  static Result<std::unique_ptr<OpenPool>> finish_open(std::unique_ptr<OpenPool> pool,
                                                       const Identity& who);
  Status plan_raise(const OpenFile& how);
  Status must_have_log(const OpenFile& how) const;
  Status place_checksums(DataRange& place, std::uint64_t& data_bytes);
  Status map_reader_words();
  Status allocate_reader_words();
  void unmap_reader_words() noexcept;
  void end_serving() noexcept;
  Status write_header_locked();
  Status with_feature(Feature feature, const std::function<void(Header&)>& change);
  Result<bool> with_feature_locked(Feature feature, const std::function<void(Header&)>& change);
  void say_clean(Header& h, std::uint64_t id) const;
  Status map_data(std::uint64_t from, std::uint64_t to);
  Status copy_data(std::uint64_t from, std::uint64_t to);

  FileLock lock_;  // declared before medium_: dropped after the medium is gone
  std::unique_ptr<medium::Medium> medium_;
  AddressRange space_;  // declared before heap_: the view is unmapped after the heap is gone
  std::unique_ptr<Heap> heap_;
  mutable std::mutex header_mutex_;
  std::mutex grow_mutex_;  // locked before header_mutex_
  Header header_{};
  std::atomic<std::uint64_t> data_bytes_{0};
  std::uint64_t root_offset_ = 0, root_bytes_ = 0;
  std::optional<std::uint64_t> before_recovery_;  // the checkpoint id that the file has, till then
  std::uint64_t raise_to_ = 0;  // the limit that start_session raises the pool to; 0: none
  bool wants_checksums_ = false;
  std::byte* view_ = nullptr;
  ViewPolicy policy_ = ViewPolicy::none;
  bool paged_ = false;
  void remove_file() noexcept;
  ReaderWords* words_ = nullptr;           // a writer's, where they have their block
  ReaderWords* kept_ = nullptr;            // the same, if the engine keeps them
  const ReaderWords* followed_ = nullptr;  // a follower's; it begins a page of its own mapping
  std::uint64_t followed_bytes_ = 0;       // of the data region, in a follower's mapping
  bool tells_readers_ = false;             // a writer's: the file can have reader words
  bool created_ = false, read_only_ = false, write_b_first_ = false, provisional_ = false;
  bool was_empty_file_ = false;  ///< the file that this opening made replaced an empty one
  std::string path_;
  std::string layout_, field_names_;  ///< Identity's
  bool said_ = false;                 ///< whether has_this_layout() was called
  std::function<bool(const Header&)> may_follow_;
};

}  // namespace perdure::pool
