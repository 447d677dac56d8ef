// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/api/open.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "perdure/api/layout.hpp"
#include "perdure/backup/archive.hpp"
#include "perdure/base/signals.hpp"
#include "perdure/engine/follow/can_follow.hpp"
#include "perdure/engine/follow/follower.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/replication/primary.hpp"

namespace perdure::detail {
namespace {

using engine::EngineInfo;

std::string names(std::span<const EngineInfo> all) {
  std::string text;
  for (const auto& c : all) text.append(text.empty() ? "" : ", ").append(c.name);
  return text;
}

Status no_thread(const std::string& path, const std::system_error& e) {
  return failure(Code::too_many_threads, path, std::string("no thread can be started: ") + e.what(),
                 "one more", "let threads or processes end, or raise `ulimit -u`");
}

// Recovery does not check the result of each of its fences: where one has failed, the next one
// returns `poisoned`. In an opening that is a failure of the medium like any other.
Status of_the_medium(const Status& s) noexcept {
  return s.code() == Code::poisoned ? failure(Code::io, "", s.message()) : s;
}

// Runs before a byte is written.
Status runs_here(const std::string& path, const EngineInfo& e) {
  const Status s = e.runs_here();
  if (s.ok()) return {};
  return failure(s.code(), path, "engine '" + std::string(e.name) + "': " + s.message(), {},
                 "open it with another engine of its family, as " + std::string(e.family) +
                     "/stm: their pools are the same");
}

constexpr std::uint64_t least_resident = 16 << 10;

// Returns `invalid` if an option is not for the engine that was chosen.
Status options_fit(const std::string& path, const Options& options, const EngineInfo& chosen) {
  if (Status s = options.engine_options.fits(path, chosen); !s.ok()) return s;
  if (options.checksums && !chosen.keeps_checksums)
    return failure(Code::unsupported, path,
                   "Options::checksums with engine '" + std::string(chosen.name) + "'",
                   "an engine that keeps them: shadow", "leave it false");
  // An engine whose view is the data region itself has no copy in DRAM.
  if (options.max_resident == 0 || chosen.limits_resident ||
      chosen.view != pool::ViewPolicy::shadow)
    return {};
  return failure(Code::invalid, path,
                 "Options::max_resident for engine '" + std::string(chosen.name) + "'",
                 "an engine that can keep to it: shadow, undo", "leave it 0");
}

// Returns the candidate by name, or the first of the family (empty: any) that runs on this machine
// with the isolation asked for, otherwise the first of the family. `following`: of those behind
// virtual calls.
const EngineInfo* choose(std::span<const EngineInfo> all, std::string_view wanted,
                         std::string_view family, Isolation isolation, bool following) {
  const EngineInfo *fallback = nullptr, *absent = nullptr;
  for (const auto& c : all) {
    if (following && !c.dynamic) continue;
    if (!family.empty() && c.family != family) continue;
    if (!wanted.empty()) {
      if (c.name == wanted) return &c;
      continue;
    }
    if (!c.runs_here().ok()) {
      if (c.isolation == isolation && absent == nullptr) absent = &c;
      continue;
    }
    if (c.isolation == isolation) return &c;
    if (fallback == nullptr) fallback = &c;
  }
  // An instance that isolates serves a caller that does not ask for it; one that does not isolate
  // is chosen only by name or when asked for.
  if (fallback != nullptr && isolation == Isolation::caller) return fallback;
  return absent;  // it is refused with the reason
}

/// Makes `who` ask for a pool with this root type.
void expect_root(pool::Identity& who, const RootType& root, const Migration& migrate) {
  who.layout = root.layout;
  who.layout_any = root.any_layout;
  who.root_bytes = root.bytes;
  who.field_names = root.field_names;
  who.renamed_fields = migrate.renamed_fields;
}

Status unfinished(const std::string& path) {
  return failure(Code::incompatible, path,
                 "a pool whose change to an earlier version of the program is not finished", {},
                 "open it once with that version");
}

/// Adds a refusal for each pointer or hook that forbids the plan to move the root object (ROOT-1).
void refuse_moves(Plan& plan, const pool::CatalogContents& catalog, const pool::OpenPool& file) {
  if (plan.same()) return;
  const std::byte* const data = file.following() ? file.view() : file.medium().data();
  refuse_pointers_into_root(plan, catalog.layouts.front(), data + catalog.root_offset,
                            file.header().base + catalog.root_offset, catalog.root_bytes);
}

// Makes opened.plan. Returns `incompatible` with all refusals. It writes nothing.
Status plan_opening(const std::string& path, const Options& options, const EngineInfo& engine,
                    const RootType& root, const pool::CatalogContents& catalog, Opened& opened) {
  if (catalog.layouts.empty()) {
    // A pool that keeps no data has none to change.
    opened.plan.adds_catalog = options.migrate.add_catalog && engine.keeps_data &&
                               !opened.file->read_only() && !root.any_layout && root.bytes != 0;
    return {};
  }
  if (root.any_layout) {
    if ((!catalog.pending && catalog.copies_for == 0) || opened.file->read_only()) return {};
    if (!catalog.pending)
      return failure(
          Code::incompatible, path,
          "a pool with copies of objects for another version of its program", {},
          "open it with the program that has it, which frees them, or with that version, "
          "which uses them, or for reading only (after `perdure recover`, if it was not "
          "closed in order)");
    return failure(Code::incompatible, path,
                   "a pool whose change to another version of its program is not finished", {},
                   "open it with that version, which finishes it, or for reading only (after "
                   "`perdure recover`, if it was not closed in order)");
  }
  if (catalog.layouts.front() == root.text() && catalog.root_bytes != root.bytes)
    return failure(
        Code::corrupt, path, "a root object of " + std::to_string(catalog.root_bytes) + " bytes",
        std::to_string(root.bytes) + ", as its layout says", "restore the pool from a copy");
  // The pool may have records of the programs that had these layouts.
  for (const std::string& layout : catalog.layouts)
    if (layout != root.text())
      if (Status s = add_shapes(layout); !s.ok()) return s;
  if (Status s = add_shapes(options.migrate.steps); !s.ok()) return s;
  opened.plan = make_plan(catalog, root, options.migrate);
  refuse_moves(opened.plan, catalog, *opened.file);
  opened.plan.migrate = options.migrate;
  if (!opened.plan.said.refusals.empty()) return refused(path, root, catalog, opened.plan);
  // A program without a type (in C) has no fields that could be moved.
  if (root.named_layout.empty() && (!opened.plan.same() || catalog.pending))
    return failure(Code::incompatible, path,
                   "a pool of another version of its program" +
                       (opened.plan.same() ? std::string(", with unfinished work")
                                           : ": " + opened.plan.said.changes.front()),
                   {}, "open it with that version, or with any layout for reading only");
  if (opened.file->read_only() && !opened.plan.same())
    return failure(Code::incompatible, path,
                   "a pool of another version of the program, opened for reading only: " +
                       opened.plan.said.changes.front() +
                       (opened.plan.said.changes.size() > 1 ? ", and more" : ""),
                   {}, "open it once for writing");
  // Containers and indexes that an earlier version retired or dropped still have blocks until the
  // work of that change is done.
  if (catalog.pending && !opened.plan.same()) return unfinished(path);
  if (catalog.pending && catalog.layouts.size() > 1) {
    // A part of the rows may have gone through the steps: the others need the same steps again.
    Plan began = make_plan(catalog, root, options.migrate, 1);
    for (const std::string& field : missing_steps(catalog.notes.front(), began.notes))
      began.said.refusals.push_back(field + ": half of it has gone through other steps");
    if (!began.said.refusals.empty())
      return failure(
          Code::incompatible, path,
          "a pool whose change to this version of the program is not finished: it goes on "
          "with the steps that it began with, and no others. With those that are given "
          "now, " +
              refusals_text(began.said.refusals),
          {}, "open it with these steps");
    opened.plan.lazy = std::move(began.lazy);
  }
  if (opened.file->read_only() && catalog.pending)
    return failure(Code::read_only, path,
                   "a pool whose change to this version of the program is not finished", {},
                   "open it once for writing");
  opened.plan.pending = opened.plan.pending || catalog.pending;
  // Copies for a version that has not become the pool's: this program changes what was copied.
  opened.plan.drops_copies = catalog.copies_for != 0 && !opened.file->read_only() &&
                             catalog.copies_for != opened.plan.copies_for;
  if (opened.plan.drops_copies && root.named_layout.empty())
    return failure(Code::incompatible, path,
                   "a pool with copies of objects for another version of its program", {},
                   "open it for reading only, or with a program in C++");
  return {};
}

// With Options::replicate: opens the log.
Status open_primary(const std::string& path, const Options& options, const EngineInfo& chosen,
                    Opened& opened) {
  if (!options.replicate.wanted()) return {};
  if (opened.file->read_only())
    return failure(Code::invalid, path, "Options::replicate for a pool that is opened for reading",
                   "none: nothing is logged", "leave it out");
  if (!chosen.has_snapshots)
    return failure(Code::unsupported, path,
                   "Options::replicate with engine '" + std::string(chosen.name) + "'",
                   "an engine whose log can be followed: shadow, shadow/stm, shadow/global_lock",
                   "open the pool with one of them if it is of their family");
  auto primary = replication::Primary::open(options.replicate, *opened.file);
  if (!primary) return primary.status();
  opened.primary = std::move(*primary);
  return {};
}

// A follower that attaches anew may find that the program has become another version meanwhile.
void keep_layout(engine::follow::Follower& follower, pool::OpenPool& file,
                 const pool::CatalogContents& catalog) {
  follower.must_keep([&file, layouts = catalog.layouts, root = catalog.root_offset,
                      bytes = catalog.root_bytes, pending = catalog.pending] {
    const auto now = pool::read_catalog(file.path(), file.header(), file.view());
    if (!now.ok()) return now.status();
    if (now->layouts == layouts && now->root_offset == root && now->root_bytes == bytes &&
        now->pending == pending)
      return Status();
    return failure(Code::expired, file.path(),
                   "a pool that another version of its program has changed", {},
                   "open it again, with that version");
  });
}

// Attaches a follower, and plans the opening over what it shows. A writer may overtake it
// meanwhile: what was read then means nothing.
Status attach(const std::string& path, const Options& options, const EngineInfo& engine,
              const RootType& root, Opened& opened) {
  engine::follow::Follower& follower = *opened.config.follower;
  const auto read = [&](pool::CatalogContents& contents) {
    auto catalog = pool::read_catalog(path, opened.file->header(), opened.file->view());
    if (!catalog.ok()) return catalog.status();
    contents = std::move(*catalog);
    opened.file->set_root(contents.root_offset, contents.root_bytes);
    opened.plan = {};
    return plan_opening(path, options, engine, root, contents, opened);
  };
  constexpr int most_tries = 10;
  for (int tries = 1;; ++tries) {
    if (Status s = follower.attach(); !s.ok()) return s;
    pool::CatalogContents catalog;
    Status s = read(catalog);
    if (!follower.right() && tries == most_tries && s.ok())
      return failure(Code::busy, path, "a pool whose writer is always ahead of this process", {},
                     "try again, or give the writer a larger ReaderOptions::writer_patience");
    if (follower.right() || tries == most_tries) {
      if (s.ok()) keep_layout(follower, *opened.file, catalog);
      opened.recovery.last_id = follower.id();
      return s;
    }
  }
}

}  // namespace

Status refused(const std::string& path, const RootType& root, const pool::CatalogContents& catalog,
               const Plan& plan) {
  const bool older = std::find(catalog.layouts.begin() + 1, catalog.layouts.end(), root.text()) !=
                     catalog.layouts.end();
  return failure(Code::incompatible, path,
                 (older ? "a pool that a newer version of this program has taken over; this one "
                          "would lose what that added. "
                        : "a pool of another layout. ") +
                     refusals_text(older ? plan.refused : plan.said.refusals),
                 {}, older ? "use the newer program" : "nothing was changed");
}

Result<MigrationPlan> plan_of_file(const std::string& path, const RootType& root,
                                   const Migration& migrate) {
  try {
    pool::OpenFile how;
    how.path = path;
    how.create = false;
    how.read_only = true;
    pool::Identity who;
    who.engine_any = who.layout_any = true;
    auto file = pool::OpenPool::open(how, who);
    if (!file) return file.status();
    auto catalog = pool::read_catalog(path, (*file)->header(), (*file)->medium().data());
    if (!catalog) return catalog.status();
    if (catalog->layouts.empty() && !migrate.add_catalog)
      return failure(Code::incompatible, path, "a pool without a catalog", "one that has it",
                     "a pool without one opens with an equal layout only: open it once with that "
                     "and Options::migrate.add_catalog");
    if (catalog->layouts.empty()) {
      expect_root(who, root, migrate);
      if (Status s = pool::check_identity(path, (*file)->header(), who); !s.ok()) return s;
      return MigrationPlan{.changes = {"the pool gets a catalog"}, .refusals = {}};
    }
    Plan whole = make_plan(*catalog, root, migrate);
    refuse_moves(whole, *catalog, **file);
    MigrationPlan plan = std::move(whole.said);
    if (catalog->pending && !(plan.changes.empty() && plan.refusals.empty()))
      return unfinished(path);
    if (catalog->pending)
      plan.changes.emplace_back(
          "opening finishes the change to this version, which an earlier opening began");
    return plan;
  } catch (...) {
    return opening_failed(path);
  }
}

Result<Opened> open_pool(const std::string& path, const Options& options,
                         std::span<const EngineInfo> candidates, const RootType& root,
                         std::unique_ptr<medium::Medium> medium, bool fresh) {
  // This throws here if there are too many threads, not inside a medium's call.
  (void)base::thread_slot();
  Opened opened;
  opened.config.durability = options.durability;
  opened.config.isolation = options.isolation;
  opened.config.threads = options.creation.threads;
  opened.config.trace = options.trace;
  if (Status s = options.engine_options.check(path); !s.ok()) return s;
  opened.config.options = options.engine_options;
  opened.config.readers = options.readers;
  if (options.max_resident != 0 && options.max_resident < least_resident)
    return failure(Code::invalid, path,
                   "Options::max_resident " + std::to_string(options.max_resident),
                   "16 KiB or more, or 0 for no limit", "leave it 0");
  opened.config.max_resident = options.max_resident;
  if (options.recovery.threads > 8)
    return failure(Code::invalid, path,
                   "Options::recovery.threads " + std::to_string(options.recovery.threads),
                   "1 to 8, or 0", "leave it 0");
  if (medium != nullptr) {
    opened.config.fence_is_sync = medium->fence_is_sync();
  } else {
    std::string kind = options.medium;
    if (kind == "auto") {
      auto seen = medium::diagnose(path);
      if (!seen) return seen.status();
      kind = seen->kind;
    }
    opened.config.fence_is_sync = kind == "file";
  }
  const EngineInfo* chosen = choose(candidates, options.engine, {}, options.isolation, false);
  if (chosen == nullptr)
    return failure(Code::incompatible, path,
                   options.engine.empty() ? "no instance that isolates in the list of engines"
                                          : "engine '" + options.engine + "' is not in the list",
                   "one of: " + names(candidates),
                   "open it as Pool<Root, perdure::engines<...>> with the instance named, or "
                   "change Options::engine");
  if (Status s = runs_here(path, *chosen); !s.ok()) return s;
  // Otherwise the existing pool determines the engine; a new one is refused after it has been made.
  if (!options.engine.empty() || candidates.size() == 1)
    if (Status s = options_fit(path, options, *chosen); !s.ok()) return s;
  opened.config.instance = chosen->name;
  pool::Identity who = chosen->identity(opened.config);
  who.engine = chosen->family;
  // Which instances may open an existing pool is decided below, before anything is written.
  who.engine_any = true;
  expect_root(who, root, options.migrate);
  if (options.creation.catalog) who.catalog = root.text();
  pool::OpenFile how;
  how.path = path;
  how.create = options.create;
  how.must_create = options.must_create;
  how.read_only = options.read_only;
  how.with_log = options.replicate.wanted();
  how.max_bytes = options.creation.max_size;
  how.raise_max = options.creation.raise_max_size;
  how.initial_bytes = options.creation.initial_size;
  how.log_bytes = options.creation.log_size;
  how.checksums = options.checksums && chosen->keeps_checksums;
  how.medium = options.medium;
  how.direct = options.medium_options.direct;
  how.delays = options.medium_options.delays;
  how.base = options.creation.base;
  how.uuid_seed = options.creation.uuid_seed;
  if (options.read_only && options.readers.beside_writer)
    how.may_follow = [candidates](const pool::Header& h) {
      return engine::follow::can_follow(candidates, h);
    };
  auto file = medium != nullptr ? pool::OpenPool::open_on(std::move(medium), fresh, how, who)
                                : pool::OpenPool::open(how, who);
  if (!file) return file.status();
  opened.file = std::move(*file);
  opened.file->drop_unless_kept();
  const pool::Header& header = opened.file->header();
  const std::string family(header.engine, strnlen(header.engine, sizeof header.engine));
  if (!opened.file->created() && !fresh) {
    chosen =
        choose(candidates, options.engine, family, options.isolation, opened.file->following());
    if (chosen == nullptr && !options.engine.empty())
      return failure(Code::incompatible, path, "a pool of engine '" + family + "'",
                     "one of '" + options.engine + "', as Options::engine says",
                     "leave Options::engine empty: an existing pool says its engine");
    if (chosen == nullptr)
      return failure(Code::incompatible, path, "a pool of engine '" + family + "'",
                     "one of this program's: " + names(candidates),
                     "open it as Pool<Root, perdure::engines<perdure::" +
                         family.substr(0, family.find('-')) + ">>, or with any_engine");
  }
  if (Status s = options_fit(path, options, *chosen); !s.ok()) return s;
  if (Status s = runs_here(path, *chosen); !s.ok()) return s;
  // mutant: strict-pool-has-no-timestamps
  if (chosen->pipelined_only && header.order == pool::CommitOrder::strict)
    return failure(Code::incompatible, path,
                   "a pool of strict commit order, for engine '" + std::string(chosen->name) + "'",
                   "one of pipelined order",
                   "open it with another engine of its family, as " + family +
                       "/stm; a pool keeps the order it was made with");
  // mutant: pipelined-pool-has-no-dependencies
  if (chosen->strict_only && header.order == pool::CommitOrder::pipelined)
    return failure(
        Code::incompatible, path,
        "a pool of pipelined commit order, for engine '" + std::string(chosen->name) + "'",
        "one of strict order, with a log ring for each writer",
        "open it with another engine of its family, as " + family +
            "/stm; a pool keeps the order it was made with");
  opened.index = static_cast<std::size_t>(chosen - candidates.data());
  opened.config.instance = chosen->name;
  if (header.ring_count == 0 && chosen->identity(opened.config).rings != 0)
    return failure(Code::corrupt, path, "a pool of engine '" + family + "' without a log ring",
                   "one or more", "restore it from a copy");
  if (options.archive.wanted()) {
    if (opened.file->read_only())
      return failure(Code::invalid, path, "Options::archive for a pool that is opened for reading",
                     "none: nothing is logged", "leave it out");
    if (!chosen->has_snapshots)
      return failure(Code::unsupported, path,
                     "Options::archive with engine '" + std::string(chosen->name) + "'",
                     "an engine whose log can be followed: shadow, shadow/stm, shadow/global_lock",
                     "open the pool with one of them if it is of their family");
    auto archive = backup::Archive::open(options.archive, *opened.file);
    if (!archive) return archive.status();
    opened.archive = std::move(*archive);
  }
  if (Status s = open_primary(path, options, *chosen, opened); !s.ok()) return s;
  if (opened.file->following()) {
    if (!options.trace.empty())
      return failure(Code::invalid, path, "Options::trace for a pool that is read beside a writer",
                     "a pool that this process writes", "leave it empty");
    opened.config.follower =
        std::make_shared<engine::follow::Follower>(*opened.file, options.readers);
    if (Status s = attach(path, options, *chosen, root, opened); !s.ok()) return s;
    return opened;
  }
  if (!opened.file->read_only())
    if (Status s = engine::recover(*chosen, *opened.file, opened.recovery,
                                   {options.recovery.threads, options.recovery.progress});
        !s.ok())
      return of_the_medium(s);
  if (!opened.file->read_only() && chosen->prepare_log != nullptr)
    if (Status s = chosen->prepare_log(*opened.file); !s.ok()) return of_the_medium(s);
  auto catalog = pool::read_catalog(path, header, opened.file->medium().data());
  if (!catalog) return catalog.status();
  opened.file->set_root(catalog->root_offset, catalog->root_bytes);
  if (Status s = plan_opening(path, options, *chosen, root, *catalog, opened); !s.ok()) return s;
  // A program that is refused has deposed no other copy. What a copy has that has diverged stays
  // out of the archive.
  if (opened.primary != nullptr)
    if (Status s = opened.primary->take_over(*opened.file); !s.ok()) return s;
  if (opened.archive != nullptr)
    if (Status s = opened.archive->catch_up(*opened.file); !s.ok()) return s;
  if (options.checksums && !opened.file->read_only()) opened.file->want_checksums();
  const bool limited = chosen->limits_shadow != nullptr && chosen->limits_shadow(opened.config);
  if (chosen->serves_readers)
    if (Status s = opened.file->make_reader_words(); !s.ok()) return s;
  if (Status s = opened.file->start_session(chosen->view, limited); !s.ok())
    return of_the_medium(s);
  opened.file->keep();
  return opened;
}

void follow_log(backup::Archive* archive, replication::Primary* primary, engine::FollowedLog* log,
                pool::OpenPool& file) {
  if (primary != nullptr) primary->start(*log).or_throw();
  if (archive != nullptr) archive->start(*log, file).or_throw();
}

Status wait_acknowledged(replication::Primary* primary, const pool::OpenPool& file,
                         std::uint64_t id, Ack level) {
  if (primary != nullptr) return primary->wait(id, level);
  return failure(Code::invalid, file.path(),
                 "a wait for a level above `local` in a pool that is not replicated",
                 "Options::replicate", "open the pool with it, or wait for `local`");
}

bool is_acknowledged(const replication::Primary* primary, std::uint64_t id, Ack level) noexcept {
  return primary != nullptr && primary->has(id, level);
}

Status opening_failed(const std::string& path) {
  try {
    throw;
  } catch (const error& e) {
    return of_the_medium(e.status());
  } catch (const std::bad_alloc&) {
    return failure(Code::out_of_memory, path, "not enough memory to open the pool");
  } catch (const std::system_error& e) {
    return no_thread(path, e);
  }
}

struct Completions::Impl {
  using Clock = std::chrono::steady_clock;
  std::function<Status(std::uint64_t)> wait;
  std::mutex mutex;
  std::condition_variable changed;
  struct Waiting {
    std::function<void(Status)> f;
    Clock::time_point since;
  };
  std::multimap<std::uint64_t, Waiting> waiting;
  bool stop = false;
  std::thread thread;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return stop || !waiting.empty(); });
      if (waiting.empty()) return;
      const std::uint64_t id = waiting.begin()->first;
      lock.unlock();
      const Clock::time_point begun = Clock::now();
      const Status status = wait(id);
      lock.lock();
      // A failure is also that of those which have waited as long for a later id.
      for (auto at = waiting.begin(); at != waiting.end();) {
        if (at->first > id && (status.ok() || at->second.since > begun)) {
          if (status.ok()) break;
          ++at;
          continue;
        }
        auto f = std::move(at->second.f);
        waiting.erase(at);
        lock.unlock();
        // This is the program's code: where it uses a pool it takes a slot as any thread does.
        f(status);
        base::give_back_thread_slot();  // f may have taken one; this thread has none between calls
        lock.lock();
        at = waiting.begin();
      }
    }
  }
};

Completions::Completions(std::function<Status(std::uint64_t)> wait)
    : impl_(std::make_unique<Impl>()) {
  impl_->wait = std::move(wait);
}

Completions::~Completions() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->changed.notify_all();
  if (impl_->thread.joinable()) impl_->thread.join();
}

void Completions::add(std::uint64_t id, std::function<void(Status)> f) {
  const std::lock_guard lock(impl_->mutex);
  const auto added = impl_->waiting.emplace(id, Impl::Waiting{std::move(f), Impl::Clock::now()});
  if (!impl_->thread.joinable()) {
    try {
      const base::BlockedSignals blocked;
      impl_->thread = std::thread([this] { impl_->run(); });
    } catch (const std::system_error& e) {
      impl_->waiting.erase(added);
      throw error(no_thread("", e));
    }
  }
  impl_->changed.notify_all();
}

CheckReport compare_heap(const pool::OpenPool& file, const std::byte* data,
                         std::vector<std::uint64_t> owned, bool walked) {
  std::vector<std::uint64_t> allocated;
  auto audit = pool::audit_heap(
      data, file.header(),
      [&](std::uint64_t offset, std::uint64_t) { allocated.push_back(offset); },
      file.known_holes());
  return compare_heap(std::move(audit), std::move(allocated), file, std::move(owned), walked);
}

CheckReport compare_heap(pool::HeapAudit audit, std::vector<std::uint64_t> allocated,
                         const pool::OpenPool& file, std::vector<std::uint64_t> owned,
                         bool walked) {
  CheckReport report;
  report.blocks = audit.blocks;
  report.bytes = audit.bytes;
  report.problems = std::move(audit.problems);
  if (!walked) return report;
  owned.push_back(file.header().root_offset);
  std::sort(owned.begin(), owned.end());
  std::sort(allocated.begin(), allocated.end());
  report.reachable = owned.size();
  for (std::size_t i = 1; i < owned.size(); ++i)
    if (owned[i] == owned[i - 1]) {
      ++report.used_twice;
      report.problems.push_back("the block at data offset " + std::to_string(owned[i]) +
                                " is owned twice");
    }
  owned.erase(std::unique(owned.begin(), owned.end()), owned.end());
  std::vector<std::uint64_t> difference;
  std::set_difference(allocated.begin(), allocated.end(), owned.begin(), owned.end(),
                      std::back_inserter(difference));
  report.leaked = difference.size();
  for (const std::uint64_t offset : difference)
    if (report.problems.size() < 100)
      report.problems.push_back("the block at data offset " + std::to_string(offset) +
                                " is allocated, but nothing owns it (a leak)");
  difference.clear();
  std::set_difference(owned.begin(), owned.end(), allocated.begin(), allocated.end(),
                      std::back_inserter(difference));
  for (const std::uint64_t offset : difference)
    if (report.problems.size() < 100)
      report.problems.push_back("data offset " + std::to_string(offset) +
                                " is owned, but no allocated block starts there");
  return report;
}

}  // namespace perdure::detail
