// SPDX-License-Identifier: BSD-3-Clause
//
// What tests must know about an engine, by its family: the only place with families' names.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/engine/dynamic_engine.hpp"

namespace perdure::test {

using engine::EngineInfo;

inline bool is_durable(const EngineInfo& e) { return e.keeps_data; }
inline bool isolates(const EngineInfo& e) { return e.isolation == Isolation::full; }
inline bool is_shadow(const EngineInfo& e) { return e.family == "shadow"; }
inline bool is_dudetm(const EngineInfo& e) { return e.family == "dudetm"; }
/// Whether its ids are timestamps: they rise in commit order with gaps, and recovery counts with
/// numbers of its own.
inline bool has_timestamps(const EngineInfo& e) { return e.tm.starts_with("htm"); }
/// Whether a view may run exclusively, so that every writer waits for its end: with the biased TM,
/// or with the lock to which hardware transactions fall back.
inline bool views_may_run_alone(const EngineInfo& e) {
  return e.tm == "biased" || has_timestamps(e);
}
inline bool is_undo(const EngineInfo& e) { return e.family == "undo"; }
/// REWIND with force: its log is never full.
inline bool clears_at_commit(const EngineInfo& e) {
  return e.family.find("-fp-") != std::string_view::npos;
}
inline bool is_rewind(const EngineInfo& e) { return e.family.starts_with("rewind"); }
/// Blurred Persistence's systems: they write back, to one torn-bit log per thread.
inline bool is_blurred(const EngineInfo& e) {
  return e.family.starts_with("bppm") || e.family.starts_with("redo-");
}

/// SoftWrAP's two variants. With aliasing for all, a ring is a thread's three buckets.
inline bool is_softwrap(const EngineInfo& e) { return e.family.starts_with("softwrap"); }
inline bool aliases_for_all(const EngineInfo& e) { return e.family == "softwrap"; }
/// Whether the data region may have words of a log's last record, so that damage to the record,
/// which is taken for a torn write, may leave them there: softwrap-local stores to the data region
/// at once, dudetm's Reproduce as soon as the record is durable.
inline bool stores_last_record_at_once(const EngineInfo& e) {
  return e.family == "softwrap-local" || is_dudetm(e);
}

/// Whether no thread sees a transaction before it is durable: what isolates it is held through the
/// fence.
inline bool is_durable_when_seen(const EngineInfo& e) {
  return is_undo(e) || is_rewind(e) || is_blurred(e) || is_softwrap(e) ||
         e.name.starts_with("dudetm-sync");
}

/// Whether each commit has a record and a fence of its own, whatever durability is asked for, and
/// other threads see it before that.
inline bool is_seen_before_its_own_fence(const EngineInfo& e) {
  return e.name.starts_with("shadow/htm");
}

/// How many times as long as others a transaction takes, and as many events on a medium, at most:
/// the size of a test is divided by it.
inline unsigned heavy(const EngineInfo& e) {
  return e.family.starts_with("rewind-2l") ? 20 : is_rewind(e) ? 4 : 1;
}
/// Whether it runs on this machine; if not, the first call prints the reason.
inline bool runs_here(const EngineInfo& e) {
  const Status s = e.runs_here();
  if (s.ok()) return true;
  static std::set<std::string_view> told;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (told.insert(e.name).second)
    std::fprintf(stderr, "engine %s is left out: %s\n", std::string(e.name).c_str(),
                 s.message().c_str());
  return false;
}
/// One of DudeTM's variants except its first: they are one type per TM, and differ in how they
/// persist.
inline bool is_additional_variant(const EngineInfo& e) {
  return is_dudetm(e) && !e.name.starts_with("dudetm/") && e.name != "dudetm";
}
/// With `none` REWIND's compositions are one type, Blurred Persistence's systems two, which differ
/// from those that isolate in their TM alone: one of each represents all. The same holds for
/// DudeTM's variants with the library's own TM and those with another one.
inline bool is_stood_for(const EngineInfo& e) {
  if (is_additional_variant(e) && e.tm != "biased") return true;
  return !isolates(e) && ((is_rewind(e) && e.family != "rewind-1l-nfp-batch") ||
                          (is_blurred(e) && e.family != "bppm" && e.family != "redo-mne-async"));
}

/// Whether tests run on the engine: on all, or, where PERDURE_TEST_ENGINES is `product`, on the
/// product's. ./dev test sets it; --all and --label do not.
inline bool is_chosen(const EngineInfo& e) {
  static const bool product = [] {
    const char* const text = std::getenv("PERDURE_TEST_ENGINES");
    return text != nullptr && std::string_view(text) == "product";
  }();
  return !product || is_shadow(e) || is_undo(e) || !is_durable(e);
}
/// The engines that are registered at the first call and that tests run on.
inline std::span<const EngineInfo> chosen_engines() {
  static const std::vector<EngineInfo> chosen = [] {
    std::vector<EngineInfo> found;
    std::ranges::copy_if(engine::registered(), std::back_inserter(found), is_chosen);
    return found;
  }();
  return chosen;
}

/// The bytes of a ring: the requested number, or the minimum of the engine.
inline std::uint64_t ring_of_at_least(const EngineInfo& e, std::uint64_t bytes) {
  engine::Config config;
  config.instance = e.name;
  return std::max(bytes, e.identity(config).min_ring);
}

/// Prints, for an engine on RTM, how many transactions the hardware committed: `./dev explore
/// --htm` demands at least one.
inline void print_hardware_commits(const engine::EngineInfo& e, const engine::Stats& stats) {
  if (e.tm == "htm")
    std::printf("[          ] htm: %llu transactions committed without the lock\n",
                static_cast<unsigned long long>(stats.without_lock));
}

}  // namespace perdure::test
