// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/api/pool_base.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "perdure/api/copies.hpp"
#include "perdure/api/layout.hpp"
#include "perdure/api/running.hpp"
#include "perdure/api/snapshot.hpp"
#include "perdure/api/walk.hpp"
#include "perdure/backup/archive.hpp"
#include "perdure/backup/base.hpp"
#include "perdure/backup/frame.hpp"
#include "perdure/backup/places.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/engine/follow/follower.hpp"
#include "perdure/engine/snapshots.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/copy.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/open_pool.hpp"
#include "perdure/replication/primary.hpp"

namespace perdure {
namespace {

// These calls wait for transactions to end. Inside a transaction of this thread they would wait for
// ever.
void must_be_outside(detail::RunningEngine& running, const char* call) {
  if (running.inside())
    throw error(failure(Code::invalid, "",
                        std::string(call) + " inside a transaction on the same pool", {},
                        "leave the transaction first"));
}

}  // namespace

Status detail::RunningEngine::close_unless_read() {
  if (engine::Snapshots* const all = snapshots(); all != nullptr && all->any())
    return failure(Code::busy, file().path(), "close() while a snapshot is open", "none",
                   "destroy its handles first");
  return close();
}

PoolBase::PoolBase(PoolBase&& other) noexcept
    : running_(std::move(other.running_)),
      runner_(std::exchange(other.runner_, nullptr)),
      root_(std::exchange(other.root_, nullptr)),
      name_(other.name_),
      durability_(other.durability_),
      empty_(other.empty_),
      plan_(std::move(other.plan_)),
      events_(std::move(other.events_)),
      unsettled_(std::move(other.unsettled_)) {}

PoolBase& PoolBase::operator=(PoolBase&& other) noexcept {
  if (this != &other) {
    shut();
    running_ = std::move(other.running_);
    runner_ = std::exchange(other.runner_, nullptr);
    root_ = std::exchange(other.root_, nullptr);
    name_ = other.name_;
    durability_ = other.durability_;
    empty_ = other.empty_;
    plan_ = std::move(other.plan_);
    events_ = std::move(other.events_);
    unsettled_ = std::move(other.unsettled_);
  }
  return *this;
}

PoolBase::~PoolBase() { shut(); }

Status PoolBase::open_registered(const std::string& path, const Options& options,
                                 const detail::RootType& root,
                                 std::unique_ptr<medium::Medium>* medium, bool fresh) {
  auto opened = detail::open_pool(path, options, engine::registered(), root,
                                  medium != nullptr ? std::move(*medium) : nullptr, fresh);
  if (!opened) return opened.status();
  opened->file->drop_unless_kept();
  take(*opened, options);
  running_ = std::make_unique<detail::Running<any_engine>>(std::move(*opened));
  runner_ = running_->runner();
  return {};
}

void PoolBase::take(const detail::Opened& opened, const Options& options) {
  name_ = opened.config.instance;
  durability_ = options.durability;
  root_ = opened.file->view() + opened.file->root_offset();
  empty_ = opened.recovery.last_id == 0 && !opened.file->read_only();
  plan_ = std::make_shared<const detail::Plan>(opened.plan);
}

void PoolBase::keep() {
  running_->file().keep();
  if (backup::Archive* const archive = running_->archive(); archive != nullptr) archive->keep();
  running_->file().has_this_layout();
  running_->file().serve_readers();
}

CloseReport PoolBase::close() {
  const auto start = std::chrono::steady_clock::now();
  CloseReport report;
  running_->must_be_own();
  must_be_outside(*running_, "close()");
  report.stats = running_->stats();
  running_->close_unless_read().or_throw();
  report.clean = true;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

std::uint64_t PoolBase::refresh_within(std::optional<std::chrono::milliseconds> patience) {
  running_->must_be_own();
  must_be_outside(*running_, "refresh()");
  base::ensure_thread_slot().or_throw();
  if (engine::follow::Follower* const follower = running_->follower(); follower != nullptr) {
    if (const std::uint32_t state = running_->state() & ~engine::EngineBase::read_only_bit;
        state != 0)
      throw error(failure(Code::closed, file().path(), "refresh() of a pool that is closed"));
    return patience ? follower->refresh(*patience) : follower->refresh();
  }
  return running_->stats().last_id;
}

std::uint64_t PoolBase::refresh() { return refresh_within({}); }

bool PoolBase::wait_for(std::uint64_t id, std::chrono::milliseconds timeout) {
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + timeout;
  std::chrono::microseconds nap(100);
  for (;;) {
    using std::chrono::milliseconds;
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    const std::uint64_t seen = refresh_within(std::max(left, milliseconds(0)));
    if (seen >= id && (running_->follower() != nullptr || running_->is_durable(id))) return true;
    if (steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(nap);
    nap = std::min(nap * 2, std::chrono::microseconds(1000));
  }
}

Stats PoolBase::stats() {
  running_->must_be_own();
  return running_->stats();
}

std::uint64_t PoolBase::durable_id() {
  running_->must_be_own();
  return running_->durable_now();
}

void PoolBase::checkpoint() {
  running_->must_be_own();
  must_be_outside(*running_, "checkpoint()");
  running_->checkpoint().or_throw();
}

Trimmed PoolBase::trim(std::uint64_t max_bytes) {
  running_->must_be_own();
  must_be_outside(*running_, "trim()");
  return running_->trim(max_bytes).value();
}

ScrubReport PoolBase::scrub(const ScrubOptions& options) {
  running_->must_be_own();
  return pool::scrub(file(), options).value();
}

CheckReport PoolBase::with_pages(CheckReport report) {
  const ScrubReport pages = scrub();
  report.pages = pages.pages;
  for (const DamagedPage& page : pages.damaged) report.problems.push_back(pool::text_of(page));
  return report;
}

std::shared_ptr<engine::OpenSnapshot> PoolBase::open_snapshot(Durability durability) {
  running_->must_be_own();
  must_be_outside(*running_, "snapshot()");
  engine::Snapshots* const snapshots = running_->snapshots();
  if (snapshots == nullptr)
    throw error(failure(Code::unsupported, file().path(),
                        "snapshot() with engine '" + std::string(name_) + "'",
                        "an engine that has snapshots: shadow, shadow/stm, shadow/global_lock",
                        "open the pool with one of them if it is of their family"));
  auto snapshot = snapshots->open().value();
  if (durability != Durability::async) wait_for(snapshot->id());
  return snapshot;
}

bool PoolBase::can_open_snapshot() {
  return running_->snapshots() != nullptr &&
         (running_->state() & ~engine::EngineBase::read_only_bit) == 0 && !running_->inside();
}

pool::Header PoolBase::header() { return running_->file().header_now(); }
pool::OpenPool& PoolBase::file() { return running_->file(); }
const std::byte* PoolBase::data() { return running_->file().view(); }
std::byte* PoolBase::catalog() { return file().view() + file().header().root_offset; }
void PoolBase::refuse_rows(const std::string& problems) {
  throw error(failure(Code::exists, file().path(), problems,
                      "none, since the program declares it unique",
                      "change or erase these rows with the program that has the pool; nothing was "
                      "changed"));
}
void PoolBase::adopt_catalog(const std::byte* at, std::uint64_t bytes) {
  file().adopt_catalog(static_cast<std::uint64_t>(at - file().view()), bytes).or_throw();
}
void PoolBase::expect_blocks(detail::Copies& copies) {
  (void)pool::audit_heap(
      data(), header(),
      [&](std::uint64_t offset, std::uint64_t bytes) {
        copies.block(reinterpret_cast<std::uint64_t>(data() + offset), bytes);
      },
      &file().medium());
  if (const std::string problem = copies.problem(); !problem.empty())
    throw error(failure(Code::incompatible, file().path(), problem,
                        "blocks made by tx.make, to which pointers of one type lead: such objects "
                        "are copied",
                        "keep the struct as it is; nothing was changed"));
}
void PoolBase::owned_by_catalog(detail::Copies& copies, const pool::ReadBytes& read) {
  const auto catalog = pool::read_catalog(file().path(), header(), data(), read);
  for (const std::uint64_t block : catalog.value().blocks) copies.owned(data() + block);
}
void PoolBase::will_have_copies() {
  // mutant: copies-feature-first
  file().require_feature(pool::Feature::copied_objects).or_throw();
}
void PoolBase::refuse_copies(const detail::Copies& copies, const error& why) {
  throw error(Status(why.code(), std::string(why.what()) + "; opening needs room for " +
                                     copies.room() +
                                     ", besides what the pool has; its data is as it was"));
}
std::uint64_t detail::block_for(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t chunk = pool::chunk_bytes;
  return bytes > pool::max_small ? (bytes + chunk - 1) / chunk * chunk
                                 : pool::class_bytes(pool::size_class(bytes));
}
std::unordered_map<std::uint64_t, std::uint64_t> PoolBase::copied_objects(
    const pool::ReadBytes& read) {
  std::unordered_map<std::uint64_t, std::uint64_t> all;
  const auto catalog = pool::read_catalog(file().path(), header(), data(), read);
  for (const pool::CopyEntry& one : catalog.value().copied) all.emplace(one.old, one.made);
  return all;
}
void PoolBase::move_root(std::byte* root, std::uint64_t bytes) {
  root_ = root;
  file().set_root(static_cast<std::uint64_t>(root - file().view()), bytes);
}
std::uint64_t PoolBase::data_bytes() { return running_->file().data_bytes(); }

namespace {
void add_catalog_blocks(OwnedBlocks& owned, const pool::OpenPool& file,
                        const pool::ReadBytes& read) {
  const auto catalog = pool::read_catalog(file.path(), file.header_now(), file.view(), read);
  if (catalog.ok())
    owned.offsets.insert(owned.offsets.end(), catalog->blocks.begin(), catalog->blocks.end());
  else
    owned.problems.push_back(catalog.status().message());
}
void add_problems(CheckReport& report, OwnedBlocks& owned) {
  report.problems.insert(report.problems.end(), owned.problems.begin(), owned.problems.end());
}
}  // namespace

void PoolBase::own_catalog(OwnedBlocks& owned, const pool::ReadBytes& read) {
  add_catalog_blocks(owned, file(), read);
}
detail::SnapshotData detail::data_of(engine::OpenSnapshot& snapshot) {
  return {snapshot.file().view(), snapshot.file().data_bytes()};
}
CheckReport detail::compare_heap(engine::OpenSnapshot& snapshot, OwnedBlocks owned) {
  const pool::OpenPool& file = snapshot.file();
  rtx tx(snapshot);
  add_catalog_blocks(owned, file, [&](void* to, const std::byte* from, std::size_t n) {
    tx.read_bytes(to, from, n);
  });
  std::vector<std::uint64_t> allocated;
  pool::HeapAudit heap =
      snapshot.audit([&](const pool::HeapOp& block) { allocated.push_back(block.offset); });
  CheckReport report = compare_heap(std::move(heap), std::move(allocated), file,
                                    std::move(owned.offsets), owned.whole);
  add_problems(report, owned);
  snapshot.must_be_sound();
  return report;
}

CheckReport PoolBase::compare(OwnedBlocks owned) {
  CheckReport report = detail::compare_heap(file(), data(), std::move(owned.offsets), owned.whole);
  add_problems(report, owned);
  return report;
}

namespace {
// What the snapshot reads; valid as long as it.
pool::PoolState state_of(engine::OpenSnapshot& snapshot) {
  const pool::OpenPool& file = snapshot.file();
  pool::must_be_undamaged(file).or_throw();
  pool::PoolState state;
  state.id = snapshot.id();
  const pool::HeapAudit heap =
      snapshot.audit([&](const pool::HeapOp& block) { state.blocks.push_back(block); });
  if (!heap.problems.empty())
    throw error(failure(Code::corrupt, file.path(), heap.problems.front(), {},
                        "see check(); nothing was copied"));
  std::sort(state.blocks.begin(), state.blocks.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  state.read = [&snapshot, &file](void* to, std::uint64_t offset, std::uint64_t n) {
    snapshot.read_words(static_cast<std::uint64_t*>(to),
                        reinterpret_cast<const std::uint64_t*>(file.view() + offset), n / 8);
  };
  state.must_be_sound = [&snapshot] { snapshot.must_be_sound(); };
  return state;
}
}  // namespace

void detail::copy_to(engine::OpenSnapshot& snapshot, const std::string& path,
                     const CopyProgress& progress) {
  base::ensure_thread_slot().or_throw();  // the new file's medium counts by thread
  pool::copy_pool(snapshot.file(), path, state_of(snapshot), progress).or_throw();
}

ArchiveStats PoolBase::archive() {
  running_->must_be_own();
  const backup::Archive* const archive = running_->archive();
  return archive != nullptr ? archive->stats() : ArchiveStats{};
}

ReplicationStats PoolBase::replication() {
  running_->must_be_own();
  const replication::Primary* const primary = running_->primary();
  return primary != nullptr ? primary->stats() : ReplicationStats{};
}

void PoolBase::flush_archive() {
  running_->must_be_own();
  backup::Archive* const archive = running_->archive();
  if (archive == nullptr)
    throw error(failure(Code::invalid, file().path(),
                        "flush_archive() of a pool without an archive", "Options::archive",
                        "open the pool with it"));
  const std::uint64_t last = running_->stats().last_id;
  wait_for(last);
  archive->flush(last).or_throw();
}

BackupReport PoolBase::back_up(engine::OpenSnapshot& snapshot, const std::string& folder,
                               const pool::StateProgress& progress) {
  base::ensure_thread_slot().or_throw();
  if (&snapshot.file() != &file())
    throw error(failure(Code::invalid, file().path(), "backup() of another pool's snapshot",
                        "one of this pool", "call that pool's backup()"));
  std::shared_ptr<backup::Store> store;
  if (!folder.empty())
    store = backup::open_place(folder, true).value();
  else if (backup::Archive* const archive = running_->archive(); archive != nullptr)
    store = archive->store();
  else
    throw error(failure(Code::invalid, file().path(), "backup() without a folder",
                        "a folder, or a pool that was opened with Options::archive",
                        "name the folder"));
  return back_up(snapshot, *store, progress);
}

BackupReport PoolBase::back_up(engine::OpenSnapshot& snapshot, backup::Store& store,
                               const pool::StateProgress& progress) {
  // A backup has nothing that the pool may lose; of a replicated one, also nothing that this copy
  // may lose to the others.
  wait_for(snapshot.id());
  // mutant: backup-of-what-is-shipped
  if (running_->primary() != nullptr)
    running_->wait_acknowledged(snapshot.id(), Ack::shipped).or_throw();
  const pool::PoolState state = state_of(snapshot);
  const pool::Header header = file().header_of_clean_close(state.id);
  return backup::write_base(store, header, file().file_mode(), backup::unix_nanoseconds(), state,
                            progress)
      .value();
}

void PoolBase::begin_archive() {
  backup::Archive* const archive = running_->archive();
  if (archive == nullptr || !archive->needs_backup()) return;
  const auto state = open_snapshot(Durability::durable);
  const detail::SnapshotReader inside(*state);
  (void)back_up(*state, {}, {});
}

void PoolBase::shut() noexcept {
  if (running_ == nullptr) return;
  const std::uint32_t state = running_->state();
  if ((state & engine::EngineBase::forked_bit) == 0)
    if (engine::Snapshots* const all = running_->snapshots(); all != nullptr) all->end();
  root_ = nullptr;
  runner_ = nullptr;
  unsettled_ = nullptr;  // before something else may be mapped where the pool was
  if ((state & engine::EngineBase::forked_bit) != 0) {
    // This is a forked child's copy. There is nothing here to end, and waiting for its threads
    // would take for ever.
    (void)running_.release();
    return;
  }
  try {
    if ((state & ~engine::EngineBase::read_only_bit) == 0) (void)running_->close();
  } catch (...) {  // the next opening recovers
  }
  end_events();
  if (replication::Primary* const primary = running_->primary(); primary != nullptr) primary->end();
  running_ = nullptr;
}

}  // namespace perdure
