// SPDX-License-Identifier: BSD-3-Clause
#include "nats/nats_log.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "nats/client.hpp"
#include "nats/enable.h"
#include "perdure/replication/logs.hpp"
#include "perdure/replication/self_test.hpp"

namespace perdure::nats {
namespace {

using Json = nlohmann::json;
using replication::Append;
using replication::AppendAnswer;
using replication::Confirmed;
using replication::LogEnds;
using replication::LogService;
using replication::LogTraits;
using replication::Message;

// Of JetStream's answers.
constexpr int wrong_last_sequence = 10071, stream_exists = 10058, stream_missing = 10059;

// nats://HOST,nats://HOST, each with this USER:PASSWORD in place of another.
std::string with_user(const std::string& servers, const std::string& user) {
  constexpr std::string_view scheme = "nats://";
  std::string all;
  std::istringstream in(servers);
  for (std::string one; std::getline(in, one, ',');) {
    std::string_view host = one;
    if (host.starts_with(scheme)) host.remove_prefix(scheme.size());
    if (const std::size_t at = host.rfind('@'); at != std::string_view::npos)
      host.remove_prefix(at + 1);
    all.append(all.empty() ? "" : ",").append(scheme).append(user).append("@").append(host);
  }
  return all;
}

int error_of(const Json& answer) {
  return answer.contains("error") ? answer["error"].value("err_code", -1) : 0;
}
std::string words_of(const Json& answer) {
  return answer.contains("error") ? answer["error"].value("description", "an error")
                                  : answer.dump();
}

// The names of the servers that have the stream's messages.
std::vector<std::string> servers_of(const Json& info) {
  std::vector<std::string> names;
  if (!info.contains("cluster")) return names;
  const Json& cluster = info["cluster"];
  names.push_back(cluster.value("leader", ""));
  if (cluster.contains("replicas"))
    for (const Json& one : cluster["replicas"]) names.push_back(one.value("name", ""));
  return names;
}

// Why the server with this information does not speak for its stream; empty: it does.
std::string no_majority(const Json& info) {
  if (!info.contains("cluster") || !info["cluster"].contains("replicas")) return {};
  const Json& cluster = info["cluster"];
  const std::string leader = cluster.value("leader", "");
  std::size_t heard = 1, all = 1;
  for (const Json& one : cluster["replicas"]) {
    ++all;
    // The answer leaves out the server that gives it.
    if (one.value("name", "") == leader) return "an answer of a server that is not the leader";
    const auto ago = std::chrono::nanoseconds(one.value("active", std::int64_t{0}));
    if (ago.count() > 0 && ago < std::chrono::seconds(3)) ++heard;
  }
  if (leader.empty()) return "no leader";
  return heard > all / 2 ? "" : "a leader that has heard of no majority for 3 s";
}

class NatsLog final : public LogService {
 public:
  NatsLog(std::shared_ptr<Client> client, const LogOptions& options, std::string stream)
      : client_(std::move(client)),
        stream_(std::move(stream)),
        subject_("perdure." + stream_ + ".log"),
        standbys_("perdure." + stream_ + ".standbys"),
        news_("perdure." + stream_ + ".news"),
        name_(options.servers + "/" + stream_),
        patience_(options.patience) {}
  /// From here on, describe() asks the servers through this connection.
  void ask_servers(std::shared_ptr<Client> system) { system_ = std::move(system); }

  /// Makes the stream, or sees that it is as it must be.
  Status make(unsigned replicas) {
    const Json config = {{"name", stream_},
                         {"subjects", {subject_}},
                         {"retention", "limits"},
                         {"storage", "file"},
                         // A full stream refuses messages, instead of dropping the first ones.
                         {"discard", "new"},
                         {"num_replicas", replicas},
                         {"max_consumers", -1},
                         {"max_msgs", -1},
                         {"max_bytes", -1},
                         {"max_age", 0},
                         {"allow_direct", true},
                         {"deny_delete", true}};
    auto made = ask("STREAM.CREATE." + stream_, config);
    if (!made) return made.status();
    if (const int error = error_of(*made); error != 0 && error != stream_exists)
      return failure(Code::io, name_, "no stream: " + words_of(*made), {}, {});
    auto info = ask("STREAM.INFO." + stream_, Json::object());
    if (!info) return info.status();
    if (!info->contains("config"))
      return failure(Code::io, name_, "no stream: " + words_of(*info), {}, {});
    const Json& is = (*info)["config"];
    std::string version;
    if (is.contains("metadata")) version = is["metadata"].value("_nats.ver", "");
    if (Status s = check_version(name_, version); !s.ok()) return s;
    for (const char* const key :
         {"subjects", "retention", "storage", "discard", "max_msgs", "max_bytes", "max_age"})
      if (is.contains(key) && is[key] != config[key])
        return failure(Code::incompatible, name_,
                       std::string("a stream with ") + key + " " + is[key].dump(),
                       config[key].dump(),
                       "name another stream, or change this one with the server's own tools");
    if (is.value("num_replicas", 1U) < replicas)
      return failure(Code::incompatible, name_,
                     "a stream with " + std::to_string(is.value("num_replicas", 1U)) + " replicas",
                     std::to_string(replicas), "change the stream, or ask for fewer");
    return {};
  }
  Status remove() { return ask("STREAM.DELETE." + stream_, Json::object()).status(); }

  AppendAnswer append(std::uint64_t sequence, const void* bytes, std::uint64_t n) override {
    // libnats itself would leave the header out for the first message.
    auto answer = client_->request(subject_, bytes, n,
                                   {{"Nats-Expected-Stream", stream_},
                                    {"Nats-Expected-Last-Sequence", std::to_string(sequence - 1)}});
    if (!answer) return {Append::unknown, answer.status()};
    const Json json = Json::parse(answer->data, nullptr, false);
    if (json.is_object() && json.value("seq", std::uint64_t{0}) == sequence) {
      // For wait(), by a message that is not stored. One that is lost costs a reader time.
      (void)client_->publish(news_, std::to_string(sequence));
      return {Append::done, {}};
    }
    const Status why =
        failure(Code::exists, name_,
                "an append of message " + std::to_string(sequence) + ": " + words_of(json), {}, {});
    return {json.is_object() && error_of(json) == wrong_last_sequence ? Append::refused
                                                                      : Append::unknown,
            why};
  }

  Result<std::vector<Message>> read(std::uint64_t from, std::uint64_t bytes) override {
    const auto begun = std::chrono::steady_clock::now();
    auto lost_since = begun;
    std::chrono::microseconds nap(250);
    std::vector<Message> messages;
    for (;;) {
      auto first = get(from);
      if (first.ok()) {
        messages.push_back(std::move(*first));
        read_on(messages, bytes);
        return messages;
      }
      if (first.code() != Code::not_found) return first.status();
      auto end = last();
      if (!end) return end.status();
      if (*end + 1 == from) return messages;
      auto all = ends(*end);
      if (!all) return all.status();
      const auto is = replication::at_end(*all, from, name_);
      const auto now = std::chrono::steady_clock::now();
      if (!is.ok()) {
        if (is.code() != Code::not_found) return is.status();
        // A leader that was replaced behind a cut network may not know it for ten seconds. The log
        // has lost its end if that is said throughout the patience, and by one with a majority.
        if (now - lost_since > patience_) {
          if (Status s = check_majority(); !s.ok()) return s;
          return is.status();
        }
      } else {
        lost_since = now;
        // It is on its way, or a server that is behind has answered get().
        if (now - begun > patience_)
          return failure(Code::io, name_, "no server that has message " + std::to_string(from), {},
                         {});
      }
      std::this_thread::sleep_for(nap);
      nap = std::min<std::chrono::microseconds>(nap * 2, std::chrono::milliseconds(5));
    }
  }

  Result<LogEnds> ends() override {
    auto end = last();
    if (!end) return end.status();
    return ends(*end);
  }

  bool wait(std::uint64_t from, std::chrono::microseconds at_most) override {
    using std::chrono::milliseconds;
    const auto until = std::chrono::steady_clock::now() + at_most;
    const std::lock_guard lock(news_mutex_);
    if (hears_ == nullptr)
      if (auto made = client_->listen(news_); made.ok()) hears_ = std::move(*made);
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
      const auto text =
          hears_ == nullptr ? std::nullopt : hears_->next(std::max(left, milliseconds(0)));
      if (text && std::strtoull(text->c_str(), nullptr, 10) >= from) return true;
      if (text && left.count() > 0) continue;
      std::this_thread::sleep_until(until);
      return false;
    }
  }

  Status trim(std::uint64_t below) override {
    auto all = ends();
    if (!all) return all.status();
    const std::uint64_t to = std::min(below, all->last);
    if (to <= all->first) return {};
    auto done = ask("STREAM.PURGE." + stream_, Json{{"seq", to}});
    if (!done) return done.status();
    return error_of(*done) == 0 ? Status()
                                : failure(Code::io, name_, "no trim: " + words_of(*done), {}, {});
  }

  Result<LogTraits> describe() override {
    auto info = ask("STREAM.INFO." + stream_, Json::object());
    if (!info) return info.status();
    if (!info->contains("config"))
      return failure(Code::io, name_, "no stream: " + words_of(*info), {}, {});
    // The headers are part of a message.
    const std::uint64_t most = client_->largest();
    LogTraits traits{(*info)["config"].value("num_replicas", 1U), false,
                     most - std::min(most, std::uint64_t{512}), true};
    if (system_ == nullptr) return traits;
    const std::vector<std::string> servers = servers_of(*info);
    // A server that is gone acknowledges nothing; the others are a majority, or nothing is.
    std::size_t sync = 0;
    bool all = true;
    for (const std::string& server : servers) {
      const auto syncs = syncs_each_message(server);
      if (syncs.ok()) all = all && *syncs;
      sync += syncs.ok() && *syncs ? 1 : 0;
    }
    traits.synced = all && sync > traits.replicas / 2;
    return traits;
  }
  // A message that is not stored: COPY ID.
  Status confirm(const Confirmed& standby) override {
    return client_->publish(standbys_, standby.copy + " " + std::to_string(standby.id));
  }
  Result<std::vector<Confirmed>> confirmed() override {
    const std::lock_guard lock(mutex_);
    if (listens_ == nullptr) {
      auto made = client_->listen(standbys_);
      if (!made) return made.status();
      listens_ = std::move(*made);
    }
    while (const auto text = listens_->next()) {
      std::istringstream in(*text);
      Confirmed one;
      if (in >> one.copy >> one.id) said_[one.copy] = one.id;
    }
    std::vector<Confirmed> all;
    for (const auto& [copy, id] : said_) all.push_back({copy, id});
    return all;
  }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }

 private:
  // A stream's information does not say it: the server's own does.
  Result<bool> syncs_each_message(const std::string& server) {
    const std::string body = Json{{"server_name", server}, {"exact_match", true}}.dump();
    auto answer = system_->request("$SYS.REQ.SERVER.PING.VARZ", body.data(), body.size());
    if (!answer) return answer.status();
    const Json json = Json::parse(answer->data, nullptr, false);
    using Pointer = Json::json_pointer;
    if (!json.is_object() || json.value(Pointer("/server/name"), "") != server)
      return failure(Code::io, name_, "no answer of the server " + server + " about itself",
                     "one, for the user of the system account that was named", {});
    return json.value(Pointer("/data/jetstream/config/sync_always"), false);
  }

  Result<Json> ask(const std::string& call, const Json& body) {
    const std::string text = body.dump();
    auto answer = client_->request("$JS.API." + call, text.data(), text.size());
    if (!answer) return answer.status();
    Json json = Json::parse(answer->data, nullptr, false);
    if (!json.is_object())
      return failure(Code::io, name_, call + " answers '" + answer->data + "'", "JSON",
                     "see that JetStream is switched on");
    return json;
  }

  // A stream's information, with its state.
  Result<Json> information() {
    auto info = ask("STREAM.INFO." + stream_, Json::object());
    if (!info || info->contains("state")) return info;
    return failure(error_of(*info) == stream_missing ? Code::not_found : Code::io, name_,
                   "no stream: " + words_of(*info), {}, {});
  }

  // The number of the last message. A stream's information may come from a server that is behind:
  // for its first seconds, one answers although it does not lead, and a new leader does before it
  // has stored all that is in the log. An append is answered by a leader that has stored all; this
  // one is refused, with the number of the last message.
  Result<std::uint64_t> last() {
    auto answer = client_->request(subject_, "", 0,
                                   {{"Nats-Expected-Stream", stream_},
                                    {"Nats-Expected-Last-Sequence",
                                     std::to_string(std::numeric_limits<std::int64_t>::max())}});
    if (answer.ok()) {
      const Json json = Json::parse(answer->data, nullptr, false);
      if (json.is_object() && error_of(json) == wrong_last_sequence) {
        const std::string words = words_of(json);  // wrong last sequence: N
        std::uint64_t n = 0;
        const char* const end = words.data() + words.size();
        if (std::from_chars(words.data() + words.rfind(' ') + 1, end, n).ptr == end) return n;
      }
    }
    // No such stream, or servers that take no message at all: what they say otherwise.
    auto info = information();
    if (!info) return info.status();
    if (!answer) return answer.status();
    return (*info)["state"].value("last_seq", std::uint64_t{0});
  }
  Result<LogEnds> ends(std::uint64_t last) {
    auto info = information();
    if (!info) return info.status();
    const auto first = (*info)["state"].value("first_seq", std::uint64_t{1});
    return LogEnds{std::clamp<std::uint64_t>(first, 1, last + 1), last};
  }

  // Whether the server that answers for the stream leads it and has heard of a majority, itself
  // included, so recently that no other can have been chosen: that takes 4 s without it.
  Status check_majority() {
    auto info = information();
    if (!info) return info.status();
    if (const std::string problem = no_majority(*info); !problem.empty())
      return failure(Code::io, name_, problem, "one that leads the stream and has a majority", {});
    return {};
  }

  Result<Message> get(std::uint64_t sequence) {
    const std::string text = Json{{"seq", sequence}}.dump();
    auto answer = client_->request("$JS.API.DIRECT.GET." + stream_, text.data(), text.size());
    if (!answer) return answer.status();
    if (answer->status == "404")
      return failure(Code::not_found, name_, "no message " + std::to_string(sequence), {}, {});
    if (!answer->status.empty())
      return failure(Code::io, name_, "an answer with status " + answer->status, {}, {});
    return message_of(sequence, *answer);
  }

  static Message message_of(std::uint64_t sequence, const Client::Answer& answer) {
    const auto* const first = reinterpret_cast<const std::byte*>(answer.data.data());
    return {sequence, {first, first + answer.data.size()}};
  }

  // Adds the messages behind the last one, until all together have `bytes` bytes: one request, which
  // the server answers with one message after the other and a status at their end. What does not
  // come is read later.
  void read_on(std::vector<Message>& messages, std::uint64_t bytes) {
    constexpr std::uint64_t most = 1000;  // libnats holds more
    const std::uint64_t size = messages.back().bytes.size();
    if (size >= bytes) return;
    const std::string text =
        Json{{"seq", messages.back().sequence + 1}, {"batch", most}, {"max_bytes", bytes - size}}
            .dump();
    (void)client_->request_each(
        "$JS.API.DIRECT.GET." + stream_, text.data(), text.size(), [&](Client::Answer&& answer) {
          if (!answer.status.empty() || answer.sequence != messages.back().sequence + 1)
            return false;
          messages.push_back(message_of(answer.sequence, answer));
          return true;
        });
  }

  const std::shared_ptr<Client> client_;
  std::shared_ptr<Client> system_;  // null: the servers are not asked
  const std::string stream_, subject_, standbys_, news_, name_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<Client::Subscription> listens_;
  std::map<std::string, std::uint64_t> said_;  // by copy
  std::mutex news_mutex_;                      // guards what follows
  std::unique_ptr<Client::Subscription> hears_;
};

}  // namespace

Status check_version(const std::string& servers, std::string_view version) {
  int major = 0, minor = 0, patch = 0;
  const bool said =
      std::sscanf(std::string(version).c_str(), "%d.%d.%d", &major, &minor, &patch) == 3;
  if (said && std::tuple(major, minor, patch) >= std::tuple(2, 12, 3)) return {};
  return failure(Code::incompatible, servers,
                 said ? "nats-server " + std::string(version)
                      : "a nats-server that does not say its version, as those before 2.11",
                 "2.12.3 or newer",
                 "older ones lose what they have acknowledged, or let two writers win; Debian 12's "
                 "2.9.10 can't sync before it answers: install a newer one");
}

Result<std::shared_ptr<LogService>> open_log(const LogOptions& options) {
  if (options.stream.empty() ||
      options.stream.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != std::string::npos)
    return failure(Code::invalid, options.servers, "a stream's name '" + options.stream + "'",
                   "letters, digits, '-' and '_'", "name it so");
  std::shared_ptr<Client> clients[2];
  for (auto& client : clients) {
    auto connected = Client::connect(options.servers, options.patience);
    if (!connected) return connected.status();
    client = std::move(*connected);
  }
  const std::string scratch = options.stream + "-test-" + replication::random_name();
  NatsLog one(clients[0], options, scratch), other(clients[1], options, scratch);
  if (!options.create)
    if (auto there = NatsLog(clients[0], options, options.stream).ends(); !there)
      return there.status();
  Status tested = one.make(options.replicas);
  // With a server gone, a new stream may find too few of them.
  if (tested.code() == Code::io && options.replicas > 1) tested = one.make(1);
  if (tested.ok()) {
    tested = replication::self_test(one, other);
    (void)one.remove();
  }
  // Where the test could not be made, as by servers without room: who made the log has tested it,
  // and it can be read and trimmed.
  if (!tested.ok() && (options.create || tested.code() != Code::io)) return tested;
  auto log = std::make_shared<NatsLog>(clients[0], options, options.stream);
  if (Status s = log->make(options.replicas); !s.ok()) return s;
  if (!options.system.empty()) {
    auto system = Client::connect(with_user(options.servers, options.system), options.patience);
    if (!system) return system.status();
    log->ask_servers(std::move(*system));
  }
  return std::shared_ptr<LogService>(std::move(log));
}

Result<LogOptions> parse_log_name(const std::string& name) {
  const auto wrong = [&](const std::string& what) {
    return failure(Code::invalid, name, what,
                   "nats://HOST[:PORT][,HOST[:PORT]...]/STREAM[?KEY=VALUE[&KEY=VALUE...]] with the "
                   "keys replicas, patience_ms and system",
                   "name the log so");
  };
  constexpr std::string_view scheme = "nats://";
  LogOptions options;
  if (!name.starts_with(scheme)) return wrong("another kind of name");
  const std::size_t slash = name.find('/', scheme.size());
  if (slash == std::string::npos) return wrong("no stream");
  std::istringstream hosts(name.substr(scheme.size(), slash - scheme.size()));
  for (std::string host; std::getline(hosts, host, ',');)
    if (!host.empty())
      options.servers += (options.servers.empty() ? "" : ",") + std::string(scheme) + host;
  const std::size_t question = std::min(name.find('?', slash), name.size());
  options.stream = name.substr(slash + 1, question - slash - 1);
  if (options.servers.empty() || options.stream.empty()) return wrong("no server or no stream");
  std::istringstream pairs(name.substr(std::min(question + 1, name.size())));
  for (std::string pair; std::getline(pairs, pair, '&');) {
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string key = pair.substr(0, equals),
                      value = pair.substr(std::min(equals + 1, pair.size()));
    std::uint64_t number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool is_number = read.ec == std::errc() && read.ptr == value.data() + value.size() &&
                           number > 0 && number < 1'000'000'000;
    if (key == "system" && value.find(':') != std::string::npos)
      options.system = value;
    else if (key == "replicas" && is_number)
      options.replicas = static_cast<unsigned>(number);
    else if (key == "patience_ms" && is_number)
      options.patience = std::chrono::milliseconds(number);
    else
      return wrong("'" + pair + "'");
  }
  return options;
}

void enable() {
  replication::register_logs(
      "nats", [](const std::string& name, bool create) -> Result<std::shared_ptr<LogService>> {
        auto options = parse_log_name(name);
        if (!options) return options.status();
        options->create = create;
        return open_log(*options);
      });
}

}  // namespace perdure::nats

int perdure_nats_enable(void) {
  try {
    perdure::nats::enable();
    return static_cast<int>(perdure::Code::ok);
  } catch (const std::bad_alloc&) {
    return static_cast<int>(perdure::Code::out_of_memory);
  }
}
