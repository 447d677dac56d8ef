// SPDX-License-Identifier: BSD-3-Clause
#include "nats/nats_log.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>
#include <utility>

#include "nats/client.hpp"
#include "perdure/replication/self_test.hpp"

namespace perdure::nats {
namespace {

using Json = nlohmann::json;
using replication::Append;
using replication::AppendAnswer;
using replication::LogEnds;
using replication::LogService;
using replication::LogTraits;
using replication::Message;

// Of JetStream's answers.
constexpr int wrong_last_sequence = 10071, stream_exists = 10058, stream_missing = 10059;

int error_of(const Json& answer) {
  return answer.contains("error") ? answer["error"].value("err_code", -1) : 0;
}
std::string words_of(const Json& answer) {
  return answer.contains("error") ? answer["error"].value("description", "an error")
                                  : answer.dump();
}

class NatsLog final : public LogService {
 public:
  NatsLog(std::shared_ptr<Client> client, const LogOptions& options, std::string stream)
      : client_(std::move(client)),
        stream_(std::move(stream)),
        subject_("perdure." + stream_ + ".log"),
        name_(options.servers + "/" + stream_),
        patience_(options.patience) {}

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
    if (json.is_object() && json.value("seq", std::uint64_t{0}) == sequence)
      return {Append::done, {}};
    const Status why =
        failure(Code::exists, name_,
                "an append of message " + std::to_string(sequence) + ": " + words_of(json), {}, {});
    return {json.is_object() && error_of(json) == wrong_last_sequence ? Append::refused
                                                                      : Append::unknown,
            why};
  }

  Result<std::vector<Message>> read(std::uint64_t from, std::uint64_t bytes) override {
    const auto give_up = std::chrono::steady_clock::now() + patience_;
    std::vector<Message> messages;
    for (;;) {
      for (std::uint64_t size = 0, at = from; messages.empty() || size < bytes; ++at) {
        auto one = get(at);
        if (one.code() == Code::not_found) break;
        if (!one) return one.status();
        size += one->bytes.size();
        messages.push_back(std::move(*one));
      }
      if (!messages.empty()) return messages;
      auto all = ends();
      if (!all) return all.status();
      auto end = replication::at_end(*all, from, name_);
      if (!end) return end.status();
      if (*end) return messages;
      // It has come since the first look, or a server that is behind answered that.
      if (std::chrono::steady_clock::now() > give_up)
        return failure(Code::io, name_, "no server that has message " + std::to_string(from), {},
                       {});
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  Result<LogEnds> ends() override {
    auto info = ask("STREAM.INFO." + stream_, Json::object());
    if (!info) return info.status();
    if (!info->contains("state"))
      return failure(error_of(*info) == stream_missing ? Code::not_found : Code::io, name_,
                     "no stream: " + words_of(*info), {}, {});
    const Json& state = (*info)["state"];
    const std::uint64_t last = state.value("last_seq", std::uint64_t{0});
    return LogEnds{std::max<std::uint64_t>(state.value("first_seq", std::uint64_t{1}), 1), last};
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

  // Whether the servers sync each message before they answer, they do not say here.
  Result<LogTraits> describe() override {
    auto info = ask("STREAM.INFO." + stream_, Json::object());
    if (!info) return info.status();
    if (!info->contains("config"))
      return failure(Code::io, name_, "no stream: " + words_of(*info), {}, {});
    // The headers are part of a message.
    const std::uint64_t most = client_->largest();
    return LogTraits{(*info)["config"].value("num_replicas", 1U), false,
                     most - std::min(most, std::uint64_t{512})};
  }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }

 private:
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

  Result<Message> get(std::uint64_t sequence) {
    const std::string text = Json{{"seq", sequence}}.dump();
    auto answer = client_->request("$JS.API.DIRECT.GET." + stream_, text.data(), text.size());
    if (!answer) return answer.status();
    if (answer->status == "404")
      return failure(Code::not_found, name_, "no message " + std::to_string(sequence), {}, {});
    if (!answer->status.empty())
      return failure(Code::io, name_, "an answer with status " + answer->status, {}, {});
    const auto* const first = reinterpret_cast<const std::byte*>(answer->data.data());
    return Message{sequence, {first, first + answer->data.size()}};
  }

  const std::shared_ptr<Client> client_;
  const std::string stream_, subject_, name_;
  const std::chrono::milliseconds patience_;
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
  Status tested = one.make(options.replicas);
  if (tested.ok()) {
    tested = replication::self_test(one, other);
    (void)one.remove();
  }
  if (!tested.ok()) return tested;
  auto log = std::make_shared<NatsLog>(clients[0], options, options.stream);
  if (Status s = log->make(options.replicas); !s.ok()) return s;
  return std::shared_ptr<LogService>(std::move(log));
}

}  // namespace perdure::nats
