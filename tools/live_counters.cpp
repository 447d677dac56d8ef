// SPDX-License-Identifier: BSD-3-Clause
#include "tools/live_counters.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "tools/text.hpp"

namespace perdure::tool {
namespace {

// By ReplicationRole.
constexpr std::array<std::string_view, 5> roles{"none", "primary", "deposed", "standby", "ended"};

// A counter of a section; 0 if the program's build writes no such section. The load pairs with
// nothing: these are counters.
template <class Section>
std::uint64_t get(const Section* section, engine::StatCounter Section::* counter) {
  return section != nullptr ? (section->*counter).load(std::memory_order_relaxed) : 0;
}

double seconds_since(std::uint64_t ns) {
  const std::uint64_t now = engine::monotonic_ns();
  return ns == 0 || ns > now ? 0.0 : static_cast<double>(now - ns) * 1e-9;
}

// `newest`: the newest transaction that is known.
Json describe_replication(const engine::ReplicationCounters* c, std::uint64_t newest) {
  using Counters = engine::ReplicationCounters;
  using Role = engine::ReplicationRole;
  const std::uint64_t role = get(c, &Counters::role);
  Json j;
  if (role == 0 || role >= roles.size()) return j;
  j["role"] = roles[role];
  j["term"] = get(c, &Counters::term);
  j["message"] = get(c, &Counters::sequence);
  const std::uint64_t id = get(c, &Counters::id);
  j["id"] = id;
  const bool writes =
      static_cast<Role>(role) == Role::primary || static_cast<Role>(role) == Role::deposed;
  if (writes) {
    j["lag"] = newest > id ? newest - id : 0;
    j["lag_bytes"] = get(c, &Counters::behind_bytes);
  }
  j["lag_seconds"] = seconds_since(get(c, &Counters::behind_since_ns));
  j["messages"] = get(c, &Counters::messages);
  j["bytes"] = get(c, &Counters::bytes);
  if (writes) {
    j["append_seconds"] = static_cast<double>(get(c, &Counters::append_us)) * 1e-6;
    j["last_append_seconds"] = static_cast<double>(get(c, &Counters::last_append_us)) * 1e-6;
    j["unanswered"] = get(c, &Counters::unanswered);
    j["waits"] = get(c, &Counters::waits);
  }
  return j;
}

struct Named {
  const char* key;   // of the JSON document
  const char* name;  // of the metric
  const char* help;
};
constexpr Named counters[] = {
    {"commits", "perdure_commits_total", "Transactions that changed something."},
    {"aborts", "perdure_conflicts_total", "Transactions that met another one and ran again."},
    {"checkpoints", "perdure_checkpoints_total", "Checkpoints of the data region."},
    {"fences", "perdure_fences_total", "Fences of the medium."},
    {"syncs", "perdure_syncs_total", "Calls of fdatasync and msync."},
    {"written_bytes", "perdure_written_bytes_total", "Bytes written to the medium."}};
constexpr Named gauges[] = {
    {"age_seconds", "perdure_counters_age_seconds", "Since the program last showed its counters."},
    {"last_id", "perdure_last_id", "The newest transaction."},
    {"durable_id", "perdure_durable_id", "Every transaction up to it is durable."},
    {"checkpoint_id", "perdure_checkpoint_id", "The data region has every one up to it."},
    {"log_used_bytes", "perdure_log_used_bytes", "Bytes in the pool's log."},
    {"log_capacity_bytes", "perdure_log_capacity_bytes", "Size of the pool's log."},
    {"heap_used", "perdure_heap_used_bytes", "Bytes in blocks."},
    {"data_bytes", "perdure_data_bytes", "Length of the data region."}};
constexpr Named of_replication[] = {
    {"messages", "perdure_replication_messages_total",
     "Messages of the replicated log, appended or applied since opening."},
    {"bytes", "perdure_replication_bytes_total", "Bytes of these."},
    {"append_seconds", "perdure_replication_append_seconds_total",
     "How long answered appends took together."},
    {"unanswered", "perdure_replication_unanswered_total", "Appends without an answer."},
    {"waits", "perdure_replication_waits_total", "Commits that waited for the replicated log."}};
constexpr Named gauges_of_replication[] = {
    {"term", "perdure_replication_term", "The number of changes of the primary."},
    {"message", "perdure_replication_message", "The last message of the log that is known here."},
    {"id", "perdure_replication_id",
     "Of a primary: every transaction up to it is in the log; of a standby: here."},
    {"lag", "perdure_replication_lag_transactions", "Not in the replicated log yet."},
    {"lag_bytes", "perdure_replication_lag_bytes", "Bytes of the pool's log not in it yet."},
    {"lag_seconds", "perdure_replication_lag_seconds",
     "Of a primary: how long the oldest waits; of a standby: since it had all."},
    {"last_append_seconds", "perdure_replication_last_append_seconds",
     "How long the last answered append took."}};

}  // namespace

std::optional<engine::StatReader> open_counters(const std::string& path,
                                                const pool::Header& header) {
  auto reader = engine::StatReader::open(header.uuid, path);
  if (reader.ok()) return std::move(*reader);
  if (reader.code() != Code::not_found) reader.status().or_throw();
  return {};
}

Json describe(const engine::StatReader& reader, const std::string& path,
              const pool::Header& header) {
  const engine::StatHead& head = reader.head();
  Json j;
  j["pool"] = path;
  j["uuid"] = uuid_text(header.uuid);
  j["running"] = reader.alive();
  j["pid"] = head.pid;
  j["engine"] = std::string(head.engine);
  j["age_seconds"] = seconds_since(head.updated_ns.load(std::memory_order_relaxed));
  using Transactions = engine::TransactionCounters;
  const auto* const transactions = reader.section<Transactions>();
  const std::uint64_t last = get(transactions, &Transactions::last_id),
                      safe = get(transactions, &Transactions::durable_id);
  j["commits"] = get(transactions, &Transactions::commits);
  j["aborts"] = get(transactions, &Transactions::aborts);
  j["last_id"] = last;
  j["durable_id"] = safe;
  j["checkpoint_id"] = get(transactions, &Transactions::checkpoint_id);
  j["lag"] = last > safe ? last - safe : 0;
  const auto* const log = reader.section<engine::LogCounters>();
  j["log_used_bytes"] = get(log, &engine::LogCounters::used_bytes);
  j["log_capacity_bytes"] = get(log, &engine::LogCounters::capacity_bytes);
  j["checkpoints"] = get(log, &engine::LogCounters::checkpoints);
  const auto* const heap = reader.section<engine::HeapCounters>();
  j["heap_used"] = get(heap, &engine::HeapCounters::used_bytes);
  j["data_bytes"] = get(heap, &engine::HeapCounters::data_bytes);
  const auto* const medium = reader.section<engine::MediumCounters>();
  j["fences"] = get(medium, &engine::MediumCounters::fences);
  j["syncs"] = get(medium, &engine::MediumCounters::syncs);
  j["written_bytes"] = get(medium, &engine::MediumCounters::written_bytes);
  const auto* const replication = reader.section<engine::ReplicationCounters>();
  if (Json r = describe_replication(replication, std::max(last, safe)); !r.is_null())
    j["replication"] = std::move(r);
  return j;
}

Metrics metrics_of(const Json& j, const std::string& path) {
  Metrics m("pool", path);
  const bool runs = !j.is_null() && j["running"].get<bool>();
  m.gauge("perdure_up", "Whether a program has the pool open for writing.", runs ? 1 : 0);
  if (!runs) return m;
  for (const Named& n : counters) m.counter(n.name, n.help, j[n.key].get<double>());
  for (const Named& n : gauges) m.gauge(n.name, n.help, j[n.key].get<double>());
  if (!j.contains("replication")) return m;
  const Json& r = j["replication"];
  m.states("perdure_replication_role", "What this copy does.", "role", roles,
           r["role"].get<std::string>());
  for (const Named& n : of_replication)
    if (r.contains(n.key)) m.counter(n.name, n.help, r[n.key].get<double>());
  for (const Named& n : gauges_of_replication)
    if (r.contains(n.key)) m.gauge(n.name, n.help, r[n.key].get<double>());
  return m;
}

}  // namespace perdure::tool
