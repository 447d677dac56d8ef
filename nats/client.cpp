// SPDX-License-Identifier: BSD-3-Clause
#include "nats/client.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sstream>

#include "perdure/base/signals.hpp"
#include "perdure/base/thread_slot.hpp"

namespace perdure::nats {
namespace {

// What is used of libnats 3 (nats.h): pointers to what only it knows, and numbers.
struct Api {
  using Code = int;  // natsStatus; 0: no error
  Code (*options_create)(void** options) = nullptr;
  void (*options_destroy)(void* options) = nullptr;
  Code (*set_servers)(void* options, const char** servers, int n) = nullptr;
  Code (*set_timeout)(void* options, std::int64_t ms) = nullptr;
  Code (*set_name)(void* options, const char* name) = nullptr;
  Code (*set_max_reconnect)(void* options, int times) = nullptr;
  Code (*set_reconnect_wait)(void* options, std::int64_t ms) = nullptr;
  Code (*set_ping_interval)(void* options, std::int64_t ms) = nullptr;
  Code (*set_max_pings_out)(void* options, int pings) = nullptr;
  Code (*set_send_asap)(void* options, bool asap) = nullptr;
  Code (*connect)(void** connection, void* options) = nullptr;
  void (*connection_destroy)(void* connection) = nullptr;
  std::int64_t (*largest)(void* connection) = nullptr;
  Code (*message_create)(void** message, const char* subject, const char* reply, const char* data,
                         int n) = nullptr;
  void (*message_destroy)(void* message) = nullptr;
  Code (*header_set)(void* message, const char* key, const char* value) = nullptr;
  Code (*header_get)(void* message, const char* key, const char** value) = nullptr;
  Code (*request)(void** answer, void* connection, void* message, std::int64_t ms) = nullptr;
  Code (*inbox_create)(char** inbox) = nullptr;
  void (*inbox_destroy)(char* inbox) = nullptr;
  Code (*subscribe)(void** subscription, void* connection, const char* subject) = nullptr;
  void (*subscription_destroy)(void* subscription) = nullptr;
  Code (*publish_request)(void* connection, const char* subject, const char* reply,
                          const void* data, int n) = nullptr;
  Code (*publish)(void* connection, const char* subject, const void* data, int n) = nullptr;
  Code (*next_message)(void** message, void* subscription, std::int64_t ms) = nullptr;
  const char* (*data)(const void* message) = nullptr;
  int (*length)(const void* message) = nullptr;
  const char* (*text)(Code code) = nullptr;
  std::string missing;  // what could not be loaded; empty: nothing
  base::Owner owner;

  Api() {
    void* library = nullptr;
    // The file's version is in its name, and has risen with each release; the calls are the same.
    for (int minor = 0; minor < 40 && library == nullptr; ++minor) {
      char name[32];
      (void)std::snprintf(name, sizeof name, "libnats.so.3.%d", minor);
      library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) {
      missing = "no libnats.so.3.*";
      return;
    }
    const auto find = [&](auto& to, const char* name) {
      void* const found = ::dlsym(library, name);
      if (found == nullptr) missing = std::string("a libnats without ") + name;
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(found);
    };
    find(options_create, "natsOptions_Create");
    find(options_destroy, "natsOptions_Destroy");
    find(set_servers, "natsOptions_SetServers");
    find(set_timeout, "natsOptions_SetTimeout");
    find(set_name, "natsOptions_SetName");
    find(set_max_reconnect, "natsOptions_SetMaxReconnect");
    find(set_reconnect_wait, "natsOptions_SetReconnectWait");
    find(set_ping_interval, "natsOptions_SetPingInterval");
    find(set_max_pings_out, "natsOptions_SetMaxPingsOut");
    find(set_send_asap, "natsOptions_SetSendAsap");
    find(connect, "natsConnection_Connect");
    find(connection_destroy, "natsConnection_Destroy");
    find(largest, "natsConnection_GetMaxPayload");
    find(message_create, "natsMsg_Create");
    find(message_destroy, "natsMsg_Destroy");
    find(header_set, "natsMsgHeader_Set");
    find(header_get, "natsMsgHeader_Get");
    find(request, "natsConnection_RequestMsg");
    find(inbox_create, "natsInbox_Create");
    find(inbox_destroy, "natsInbox_Destroy");
    find(subscribe, "natsConnection_SubscribeSync");
    find(subscription_destroy, "natsSubscription_Destroy");
    find(publish_request, "natsConnection_PublishRequest");
    find(publish, "natsConnection_Publish");
    find(next_message, "natsSubscription_NextMsg");
    find(data, "natsMsg_GetData");
    find(length, "natsMsg_GetDataLength");
    find(text, "natsStatus_GetText");
  }
};

const Api& api() {
  static const Api loaded;  // libnats has threads: it is never unloaded
  return loaded;
}

using Owned = std::unique_ptr<void, void (*)(void*)>;

Client::Answer answer_of(void* message) {
  const Api& a = api();
  Client::Answer answer;
  if (const int length = a.length(message); length > 0)
    answer.data.assign(a.data(message), static_cast<std::size_t>(length));
  const char* value = nullptr;
  if (a.header_get(message, "Status", &value) == 0 && value != nullptr) answer.status = value;
  if (a.header_get(message, "Nats-Sequence", &value) == 0 && value != nullptr)
    answer.sequence = std::strtoull(value, nullptr, 10);
  return answer;
}

}  // namespace

struct Client::Connection {
  Owned connection;
  std::string servers;
  std::chrono::milliseconds patience;
};

Client::Client(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Client::~Client() = default;

Result<std::shared_ptr<Client>> Client::connect(const std::string& servers,
                                                std::chrono::milliseconds patience) {
  // Its threads take no signals of the program.
  const base::BlockedSignals blocked;
  const Api& a = api();
  if (!a.missing.empty())
    return failure(Code::unsupported, servers, a.missing, "the C client of NATS, version 3",
                   "install it (Debian: libnats3.4)");
  // libnats's threads are the parent's. Its names for answers would be those of another child, too,
  // and one would get the other's answers.
  if (a.owner.is_parent())
    return failure(Code::unsupported, servers,
                   "a process that was forked after its parent had used NATS",
                   "one that was forked before, or has called exec()",
                   "open the log in the child first, or in a process of its own");
  std::vector<std::string> list;
  std::istringstream in(servers);
  for (std::string one; std::getline(in, one, ',');)
    if (!one.empty()) list.push_back(one);
  if (list.empty())
    return failure(Code::invalid, servers, "no server", "nats://HOST:PORT", "name one or more");
  std::vector<const char*> names;
  for (const std::string& one : list) names.push_back(one.c_str());
  void* made = nullptr;
  Api::Code code = a.options_create(&made);
  const Owned options(made, a.options_destroy);
  if (code == 0) code = a.set_servers(made, names.data(), static_cast<int>(names.size()));
  if (code == 0) code = a.set_timeout(made, patience.count());
  if (code == 0) code = a.set_name(made, "perdure");
  if (code == 0) code = a.set_max_reconnect(made, -1);
  if (code == 0) code = a.set_reconnect_wait(made, 100);
  // A server that hangs keeps its connection open: libnats then tries another one after 4 minutes,
  // where it is told nothing else.
  if (code == 0) code = a.set_ping_interval(made, patience.count());
  if (code == 0) code = a.set_max_pings_out(made, 1);
  // Otherwise libnats keeps what is published for a millisecond or more, to send it with more.
  if (code == 0) code = a.set_send_asap(made, true);
  void* connected = nullptr;
  if (code == 0) code = a.connect(&connected, made);
  if (code != 0)
    return failure(Code::io, servers, std::string("no connection: ") + a.text(code),
                   "a NATS server that answers", "see that the servers run and can be reached");
  auto connection = std::make_unique<Connection>(
      Connection{{connected, a.connection_destroy}, servers, patience});
  return std::shared_ptr<Client>(new Client(std::move(connection)));
}

Status Client::failed(const std::string& subject, int code) const {
  return failure(Code::io, connection_->servers, subject + ": " + api().text(code),
                 "an answer within " + std::to_string(connection_->patience.count()) + " ms", {});
}

Result<Client::Answer> Client::request(const std::string& subject, const void* bytes,
                                       std::uint64_t n, const Headers& headers) {
  const Api& a = api();
  if (n > static_cast<std::uint64_t>(std::numeric_limits<int>::max()))
    return failure(Code::too_big, connection_->servers,
                   "a message of " + std::to_string(n) + " bytes",
                   "at most " + std::to_string(largest()), {});
  void* made = nullptr;
  Api::Code code = a.message_create(&made, subject.c_str(), nullptr,
                                    static_cast<const char*>(bytes), static_cast<int>(n));
  const Owned message(made, a.message_destroy);
  for (const auto& [key, value] : headers)
    if (code == 0) code = a.header_set(made, key.c_str(), value.c_str());
  if (code != 0) return failed(subject, code);
  void* answered = nullptr;
  code = a.request(&answered, connection_->connection.get(), made, connection_->patience.count());
  const Owned reply(answered, a.message_destroy);
  if (code != 0) return failed(subject, code);
  return answer_of(answered);
}

Status Client::request_each(const std::string& subject, const void* bytes, std::uint64_t n,
                            const std::function<bool(Answer&&)>& f) {
  const Api& a = api();
  void* const connection = connection_->connection.get();
  char* name = nullptr;
  Api::Code code = a.inbox_create(&name);
  const std::unique_ptr<char, void (*)(char*)> inbox(name, a.inbox_destroy);
  void* made = nullptr;
  if (code == 0) code = a.subscribe(&made, connection, name);
  const Owned subscription(made, a.subscription_destroy);
  if (code == 0)
    code = a.publish_request(connection, subject.c_str(), name, bytes, static_cast<int>(n));
  while (code == 0) {
    void* next = nullptr;
    code = a.next_message(&next, made, connection_->patience.count());
    const Owned message(next, a.message_destroy);
    if (code == 0 && !f(answer_of(next))) return {};
  }
  return failed(subject, code);
}

Status Client::publish(const std::string& subject, const std::string& text) {
  const Api::Code code = api().publish(connection_->connection.get(), subject.c_str(), text.data(),
                                       static_cast<int>(text.size()));
  return code == 0 ? Status() : failed(subject, code);
}

Result<std::unique_ptr<Client::Subscription>> Client::listen(const std::string& subject) {
  void* made = nullptr;
  const Api::Code code = api().subscribe(&made, connection_->connection.get(), subject.c_str());
  if (code != 0) return failed(subject, code);
  return std::unique_ptr<Subscription>(new Subscription(made));
}

Client::Subscription::~Subscription() { api().subscription_destroy(subscription_); }

std::optional<std::string> Client::Subscription::next(std::chrono::milliseconds at_most) {
  void* next = nullptr;
  const Api::Code code = api().next_message(&next, subscription_, at_most.count());
  const Owned message(next, api().message_destroy);
  if (code != 0) return std::nullopt;
  return answer_of(next).data;
}

std::uint64_t Client::largest() const {
  return static_cast<std::uint64_t>(api().largest(connection_->connection.get()));
}

}  // namespace perdure::nats
