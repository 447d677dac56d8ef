// SPDX-License-Identifier: BSD-3-Clause
//
// The list of pools that tests/compat keeps, and what is known of each: it is made from the
// registry, so that a new engine is in it without being named here.
// Thread safety: plain functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "papers/dudetm/options.hpp"
#include "perdure/perdure.hpp"
#include "tests/compat/workload.hpp"
#include "tests/engine/families.hpp"

namespace perdure::compat {

using TestPool = Pool<Root, engines<any_engine>>;

/// How the process that wrote a pool ended.
enum class Ended : std::uint8_t {
  closed,  ///< in order
  killed,  ///< by SIGKILL inside a transaction: everything that was stored is visible
  /// By a modelled power cut inside a transaction: each cache line has the contents that were
  /// surely durable.
  cut
};
inline constexpr const char* ended_names[] = {"closed", "killed", "cut"};
inline const char* ended_name(Ended e) { return ended_names[static_cast<std::size_t>(e)]; }

/// How a kept pool is made.
struct Spec {
  std::string name;    ///< of its file, without an extension
  std::string engine;  ///< the instance that writes it
  pool::CommitOrder order = pool::CommitOrder::strict;
  /// Grain of its log's last session: 64 is written as on memory, 4096 as on a file.
  std::uint32_t unit = 64;
  Ended ended = Ended::closed;
  std::uint32_t persist_group = 0;
  bool compress = false;
  /// At an address that the library chose, instead of one that suits the sanitizers, too.
  bool any_address = false;
  /// Not 0: its limit at creation, which the second session raises to kept_max_size.
  std::uint64_t first_max_size = 0;
  /// Each of its pages has a checksum, and each of its transactions emits an event.
  bool checksums_and_events = false;
  /// Its log is archived to a folder beside it, which is not kept.
  bool archived = false;

  [[nodiscard]] const engine::EngineInfo& entry() const { return *engine::find_instance(engine); }
  [[nodiscard]] bool durable_engine() const { return test::is_durable(entry()); }
  /// REWIND logs one record per word: objects of more than 64 KiB would not fit into the small log.
  [[nodiscard]] bool large() const {
    return !test::is_rewind(entry()) && !(test::is_undo(entry()) && unit != 64);
  }

  /// The last transactions of the three parts: before a close, before a checkpoint, after it. There
  /// are fewer if a transaction logs more, so that the whole third part is in the log and the file
  /// compresses well.
  struct Parts {
    std::uint64_t first, second, third;
  };
  [[nodiscard]] Parts parts() const {
    if (entry().family.starts_with("rewind-2l")) return {1, 2, 4};
    if (test::is_rewind(entry()) || (test::is_undo(entry()) && unit != 64)) return {8, 12, 18};
    return {20, 40, 64};
  }
};

/// The address of kept pools: builds with ThreadSanitizer can map it, and so can all others.
inline constexpr std::uint64_t kept_address = 0x550000000000;
inline constexpr std::uint64_t kept_log = 1 << 20, kept_max_size = 16 << 20;

/// The medium that writes a log of this grain, on any file.
inline const char* medium_of(std::uint32_t unit) { return unit == 64 ? "emulated" : "file"; }

inline const char* order_name(pool::CommitOrder order) {
  return order == pool::CommitOrder::strict ? "held" : "prefix";
}

inline std::string archive_of(const std::string& path) { return path + ".archive"; }

/// The options of the pool at `path`.
inline Options options_of(const Spec& s, const std::string& path) {
  Options o;
  o.engine = s.engine;
  o.isolation = s.entry().isolation;
  // A pool on a medium whose fence is a sync is made with order `prefix` if its engine has that
  // order; these pools are made as on memory.
  o.medium = "emulated";
  o.durability = s.order == pool::CommitOrder::pipelined ? group : durable;
  o.creation.max_size = kept_max_size;
  o.creation.raise_max_size = s.first_max_size != 0;
  o.creation.log_size = kept_log;
  o.creation.threads = 2;
  o.engine_options =
      papers::DudetmOptions{.persist_group = s.persist_group, .compress = s.compress};
  o.creation.base = s.any_address ? 0 : kept_address;
  o.creation.uuid_seed = base::hash_bytes(s.name.data(), s.name.size(), 1) | 1;
  o.checksums = s.checksums_and_events;
  if (s.archived) o.archive.folder = archive_of(path);
  return o;
}

/// Every family of the registry, in each order with which its instances make pools: closed, killed,
/// and cut off by a power cut. If the log contains records (log/record.hpp), also with the grain of
/// a file.
inline std::vector<Spec> all_specs() {
  std::vector<Spec> all;
  std::set<std::string> seen;
  const auto add = [&](Spec s, const std::string& suffix = {}) {
    for (const std::uint32_t unit : {64U, 4096U})
      for (const Ended ended : {Ended::closed, Ended::killed, Ended::cut}) {
        Spec one = s;
        one.unit = unit;
        one.ended = ended;
        if (unit != 64 &&
            (!one.entry().ring_records || !one.durable_engine() || ended == Ended::cut))
          continue;
        if (ended == Ended::cut && !one.durable_engine()) continue;
        // No power cut of an archive is modelled.
        if (one.archived && ended == Ended::cut) continue;
        // Only large objects make the data go beyond the limit at creation.
        if (one.first_max_size != 0 && !one.large()) continue;
        one.name = std::string(s.entry().family) + suffix + "." + order_name(s.order) + "." +
                   std::to_string(unit) + "." + ended_name(ended);
        all.push_back(std::move(one));
      }
  };
  for (const engine::EngineInfo& e : engine::registered()) {
    if (!e.runs_here().ok() || e.isolation != Isolation::full || e.tm.starts_with("htm")) continue;
    for (const Durability d : {durable, group}) {
      engine::Config config;
      config.instance = e.name;
      config.durability = d;
      const pool::CommitOrder order = e.identity(config).order;
      if (!seen.insert(std::string(e.family) + order_name(order)).second) continue;
      Spec s;
      s.engine = std::string(e.name);
      s.order = order;
      add(s);
    }
  }
  Spec combined;
  combined.engine = "dudetm";
  combined.order = pool::CommitOrder::pipelined;
  combined.persist_group = 8;
  add(combined, "+combined");
  combined.compress = true;
  add(combined, "+packed");
  Spec dependent;
  dependent.engine = "shadow/htm-stand-in";
  add(dependent, "+dependent");
  for (const char* const engine : {"shadow", "undo"}) {
    Spec raised;
    raised.engine = engine;
    raised.first_max_size = 1 << 20;
    add(raised, "+raised");
  }
  Spec checked;
  checked.engine = "shadow";
  checked.checksums_and_events = true;
  add(checked, "+checksums");
  Spec archived;
  archived.engine = "shadow";
  archived.archived = true;
  add(archived, "+archived");
  Spec elsewhere;
  elsewhere.engine = "shadow";
  elsewhere.any_address = true;
  elsewhere.name = "shadow+any-address.held.64.closed";
  all.push_back(elsewhere);
  return all;
}

/// Runs `body` in a child process that exits without any clean-up; an exception is printed, with
/// exit status 1. Returns the child's wait status.
int in_child(const std::function<void()>& body);

/// Makes the pool at `path`, and prints what is known of it as one line of JSON. Throws when it
/// could not be made as specified.
void make(const Spec& spec, const std::string& path);

/// What is recorded of a pool in the manifest.
struct Known {
  std::string name, engine, order;
  bool clean = true, large = false, survives = true;
  std::uint32_t version = 0, unit = 64;
  std::uint64_t transactions = 0, digest = 0;
  std::string refused;  ///< not empty: opening must fail with these words
};

/// Opens, recovers, checks, compares and rewrites the pool. Returns what is wrong, or an empty
/// text.
std::string check(const Known& known, const std::string& path);

}  // namespace perdure::compat
