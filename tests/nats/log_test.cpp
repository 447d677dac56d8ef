// SPDX-License-Identifier: BSD-3-Clause
//
// The replicated log on NATS servers of this test: SERVICE-1 on one server and on three, whose
// processes are killed and stopped, and streams that are not as they must be.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "nats/client.hpp"
#include "nats/nats_log.hpp"
#include "perdure/replication/self_test.hpp"
#include "perdure/replication/stream.hpp"
#include "tests/nats/server.hpp"
#include "tests/support/comes.hpp"

namespace perdure::nats::test {
namespace {

using namespace std::chrono_literals;
using perdure::test::comes;
using replication::Append;
using replication::LogService;
using replication::Stream;

constexpr std::uint8_t pool_uuid[16] = {4, 2};

// A cluster answers when it has chosen its leaders: an election takes 4 to 9 s.
std::shared_ptr<LogService> open(const LogOptions& options) {
  for (int i = 0;; ++i) {
    auto log = open_log(options);
    if (log.ok() || i == 60) {
      EXPECT_TRUE(log.ok()) << log.status().message();
      return log.ok() ? *log : nullptr;
    }
    std::this_thread::sleep_for(500ms);
  }
}

Append append(LogService& log, std::uint64_t at, const std::string& text) {
  const auto came = log.append(at, text.data(), text.size());
  if (came.outcome == Append::unknown) std::printf("%s\n", came.why.message().c_str());
  return came.outcome;
}

// The number of the server that leads the stream; -1: none says so.
int leader_of(const Servers& servers, const std::string& stream) {
  const auto client = Client::connect(servers.urls(), 5s);
  if (!client.ok()) return -1;
  const auto info = (*client)->request("$JS.API.STREAM.INFO." + stream, "", 0);
  const std::string key = R"("leader":"server)";
  const std::size_t at = info.ok() ? info->data.find(key) : std::string::npos;
  return at == std::string::npos ? -1 : info->data[at + key.size()] - '0';
}

TEST(NatsLog, MessagesAreAppendedAtTheEndReadAndTrimmed) {
  Servers servers(1);
  const auto log = open({servers.urls(), "shop"});
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->ends().value().last, 0U);
  EXPECT_TRUE(log->read(1, 100).value().empty());
  EXPECT_EQ(append(*log, 2, "too early"), Append::refused);
  EXPECT_EQ(append(*log, 1, "one"), Append::done);
  EXPECT_EQ(append(*log, 1, "again"), Append::refused) << "the first message is compared, too";
  EXPECT_EQ(append(*log, 2, std::string("t\0wo", 4)), Append::done);
  EXPECT_EQ(append(*log, 3, std::string(900'000, 'x')), Append::done);
  const auto all = log->read(1, 1 << 20);
  ASSERT_EQ(all->size(), 3U);
  EXPECT_EQ((*all)[1].bytes.size(), 4U);
  EXPECT_EQ((*all)[2].bytes.size(), 900'000U);
  EXPECT_EQ(log->read(1, 1).value().size(), 1U);
  EXPECT_EQ(log->read(5, 1).code(), Code::not_found);
  EXPECT_GT(log->describe().value().largest, 900'000U);
  EXPECT_EQ(log->describe().value().replicas, 1U);

  const auto again = open({servers.urls(), "shop"});
  EXPECT_EQ(append(*again, 4, "four"), Append::done);
  EXPECT_TRUE(again->trim(4).ok());
  EXPECT_EQ(log->ends().value().first, 4U);
  EXPECT_EQ(log->read(3, 1).code(), Code::expired);
  EXPECT_TRUE(again->trim(100).ok());
  EXPECT_EQ(log->ends().value().first, 4U) << "the last one stays";
  EXPECT_EQ(append(*log, 5, "five"), Append::done);
  EXPECT_EQ(append(*log, 3, "old"), Append::refused);
}

// A reader sleeps until it is told of a message; one that has been read wakes nobody.
TEST(NatsLog, AReaderIsToldOfAMessage) {
  Servers servers(1);
  const auto log = open({servers.urls(), "news"});
  const auto reader = open({servers.urls(), "news"});
  ASSERT_NE(log, nullptr);
  ASSERT_NE(reader, nullptr);
  EXPECT_FALSE(reader->wait(1, 1ms)) << "nothing was appended";
  EXPECT_EQ(append(*log, 1, "one"), Append::done);
  EXPECT_TRUE(reader->wait(1, 60s));
  EXPECT_FALSE(reader->wait(2, 1ms));
  std::thread writer([&] {
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(append(*log, 2, "two"), Append::done);
    EXPECT_EQ(append(*log, 3, "three"), Append::done);
  });
  EXPECT_TRUE(reader->wait(2, 60s));
  writer.join();
  EXPECT_TRUE(reader->wait(3, 60s));
  EXPECT_FALSE(reader->wait(4, 50ms)) << "the messages up to 3 were told";
}

// A standby has to read faster than many small messages are appended.
TEST(NatsLog, ManyMessagesAreReadByFewRequests) {
  Servers servers(1);
  const auto log = open({servers.urls(), "many"});
  ASSERT_NE(log, nullptr);
  constexpr std::uint64_t all = 2500;
  for (std::uint64_t n = 1; n <= all; ++n)
    ASSERT_EQ(append(*log, n, std::to_string(n)), Append::done);
  std::uint64_t reads = 0;
  for (std::uint64_t next = 1; next <= all; ++reads) {
    const auto some = log->read(next, 4 << 20);
    ASSERT_TRUE(some.ok()) << some.status().message();
    ASSERT_FALSE(some->empty());
    for (const replication::Message& m : *some) {
      ASSERT_EQ(m.sequence, next++);
      ASSERT_EQ(std::string(reinterpret_cast<const char*>(m.bytes.data()), m.bytes.size()),
                std::to_string(m.sequence));
    }
  }
  EXPECT_LE(reads, 4U);
  const auto part = log->read(all - 10, 1000);
  ASSERT_TRUE(part.ok()) << part.status().message();
  EXPECT_EQ(part->size(), 11U);
  // As many as have the bytes, or some fewer: the server counts more than the messages' own.
  for (std::uint64_t n = all + 1; n <= all + 20; ++n)
    ASSERT_EQ(append(*log, n, std::string(1000, 'x')), Append::done);
  const auto limited = log->read(all + 1, 10'000);
  ASSERT_TRUE(limited.ok()) << limited.status().message();
  EXPECT_GE(limited->size(), 2U);
  EXPECT_LE(limited->size(), 11U);
  EXPECT_TRUE(log->read(all + 21, 1000).value().empty());
}

TEST(NatsLog, WhatIsNotAsItMustBeIsNamed) {
  Servers servers(1);
  ASSERT_NE(open({servers.urls(), "shop"}), nullptr);
  const auto client = Client::connect(servers.urls(), 5s).value();
  const std::string drops =
      R"({"name":"drops","subjects":["perdure.drops.log"],"discard":"old","max_msgs":5})";
  ASSERT_TRUE(client->request("$JS.API.STREAM.CREATE.drops", drops.data(), drops.size()).ok());
  const auto opened = open_log({servers.urls(), "drops"});
  EXPECT_EQ(opened.code(), Code::incompatible);
  EXPECT_NE(opened.status().message().find("discard"), std::string::npos)
      << opened.status().message();
  EXPECT_EQ(open_log({servers.urls(), "a.b"}).code(), Code::invalid);
  EXPECT_EQ(open_log({"", "shop"}).code(), Code::invalid);
  EXPECT_EQ(open_log({"nats://127.0.0.1:1", "shop", 1, 300ms}).code(), Code::io);
  // What the self-test has made is gone.
  const auto names = client->request("$JS.API.STREAM.NAMES", "{}", 2);
  EXPECT_EQ(names->data.find("-test-"), std::string::npos) << names->data;

  EXPECT_TRUE(check_version("", "2.15.1").ok());
  EXPECT_TRUE(check_version("", "2.12.3").ok());
  EXPECT_TRUE(check_version("", "3.0.0").ok());
  for (const char* const old : {"2.12.2", "2.9.10", "", "none"})
    EXPECT_EQ(check_version("", old).code(), Code::incompatible) << old;
}

TEST(NatsLog, AServerThatIsKilledKeepsWhatItAcknowledged) {
  Servers servers(1);
  const auto log = open({servers.urls(), "shop", 1, 500ms});
  ASSERT_NE(log, nullptr);
  std::uint64_t at = 1;
  for (; at <= 20; ++at) EXPECT_EQ(append(*log, at, std::to_string(at)), Append::done);
  servers.send(0, SIGKILL);
  EXPECT_EQ(append(*log, at, "nobody"), Append::unknown);
  EXPECT_FALSE(log->ends().ok());
  EXPECT_FALSE(log->read(1, 1).ok());
  servers.start(0);
  // Done, or refused: the append without an answer may have been sent when the server came back.
  ASSERT_TRUE(comes([&] { return append(*log, at, "after") != Append::unknown; }, 120s));
  const auto all = log->read(1, 1 << 20);
  ASSERT_TRUE(all.ok()) << all.status().message();
  ASSERT_GE(all->size(), 21U);
  for (std::uint64_t i = 1; i <= 20; ++i)
    EXPECT_EQ((*all)[i - 1].bytes.size(), std::to_string(i).size()) << i;
}

// What `quorum` needs is asked of each server that has the messages.
TEST(NatsLog, WhetherServersSyncEachMessageIsAsked) {
  for (const bool always : {true, false}) {
    Servers servers(1, always);
    LogOptions options{servers.urls(), "shop"};
    EXPECT_FALSE(open(options)->describe().value().synced) << "nobody was asked";
    options.system = "system:secret";
    EXPECT_EQ(open(options)->describe().value().synced, always);
    options.system = "system:wrong";
    EXPECT_EQ(open_log(options).code(), Code::io);
  }
}

TEST(NatsLog, NamesSayWhichLog) {
  const auto options =
      parse_log_name("nats://one:1,me:secret@two/shop?replicas=3&patience_ms=250&system=a:b");
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->servers, "nats://one:1,nats://me:secret@two");
  EXPECT_EQ(options->stream, "shop");
  EXPECT_EQ(options->replicas, 3U);
  EXPECT_EQ(options->patience, 250ms);
  EXPECT_EQ(options->system, "a:b");
  for (const char* const wrong : {"nats://one", "nats:///shop", "nats://one/", "http://one/shop",
                                  "nats://one/shop?replicas=x", "nats://one/shop?replicas=0",
                                  "nats://one/shop?colour=red", "nats://one/shop?system=a"})
    EXPECT_EQ(parse_log_name(wrong).code(), Code::invalid) << wrong;
}

TEST(NatsLog, OpensWithoutOneOfThreeServers) {
  Servers servers(3);
  LogOptions options{servers.urls(), "shop", 3, 5s, "system:secret"};
  const auto first = open(options);
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->describe().value().synced);
  servers.send(1, SIGKILL);
  const auto log = open(options);
  ASSERT_NE(log, nullptr);
  EXPECT_TRUE(log->describe().value().synced) << "two of three are a majority";
  LogOptions other = options;
  other.stream = "none";
  other.create = false;
  EXPECT_EQ(open_log(other).code(), Code::not_found);
}

// A stopped process keeps its connections: nothing but its silence shows that it hangs.
TEST(NatsClient, GoesOnWithAnotherServerWhenItsOwnHangs) {
  Servers one(1), other(1);
  std::shared_ptr<Client> client;
  ASSERT_TRUE(comes([&] {
    auto connected = Client::connect(one.urls() + "," + other.urls(), 300ms);
    if (connected.ok()) client = *connected;
    return connected.ok();
  }));
  for (Servers* const hangs : {&one, &other}) {
    hangs->send(0, SIGSTOP);
    EXPECT_TRUE(comes([&] { return client->request("$JS.API.INFO", "", 0).ok(); }));
    hangs->send(0, SIGCONT);
  }
}

// Two children of one process would get each other's answers.
TEST(NatsClient, IsRefusedInAForkOfAProcessThatHasUsedIt) {
  Servers servers(1);
  ASSERT_NE(open({servers.urls(), "shop"}), nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto again = Client::connect(servers.urls(), 5s);
    ::_exit(again.code() == Code::unsupported ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// A log that ends before a message that was read has lost its end. A server must be sure: one that
// was replaced as the leader says so of what it missed.
TEST(NatsLog, ThatItHasLostItsEndIsSaidByALeaderWithAMajority) {
  Servers servers(3);
  const auto log = open({servers.urls(), "shop", 3, 4s});
  ASSERT_NE(log, nullptr);
  for (std::uint64_t at = 1; at <= 3; ++at) ASSERT_EQ(append(*log, at, "message"), Append::done);
  EXPECT_EQ(log->read(100, 1).code(), Code::not_found);
  EXPECT_TRUE(log->read(4, 1).value().empty());
  const int leader = leader_of(servers, "shop");
  ASSERT_GE(leader, 0);
  const auto beside = open({servers.url(leader), "shop", 3, 4s});
  ASSERT_NE(beside, nullptr);
  // The leader leads for ten seconds more.
  for (const int i : {0, 1, 2})
    if (i != leader) servers.send(i, SIGKILL);
  const auto alone = beside->read(100, 1);
  EXPECT_EQ(alone.code(), Code::io) << alone.status().message();
  for (const int i : {0, 1, 2})
    if (i != leader) servers.start(i);
  Code code = Code::io;
  EXPECT_TRUE(comes([&] { return (code = log->read(100, 1).code()) != Code::io; }, 120s));
  EXPECT_EQ(code, Code::not_found);
}

// The end is where it was, whichever server is asked, also while a new leader is chosen.
TEST(NatsLog, AServerThatIsBehindDoesNotSayWhereTheLogEnds) {
  Servers servers(3);
  const auto log = open({servers.urls(), "shop", 3, 2s});
  ASSERT_NE(log, nullptr);
  std::uint64_t at = 0;
  for (int behind = 0; behind < 3; ++behind) {
    servers.send(behind, SIGKILL);
    for (const std::uint64_t to = at + 500; at < to;)
      // Refused: an append without an answer had arrived.
      if (append(*log, at + 1, "message") != Append::unknown)
        ++at;
      else
        std::this_thread::sleep_for(20ms);
    servers.start(behind);
    servers.send((behind + 1) % 3, SIGKILL);
    std::uint64_t answers = 0;
    for (const auto end = std::chrono::steady_clock::now() + 60s;
         answers < 300 && std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(1ms)) {
      const auto ends = log->ends();
      if (!ends.ok()) continue;  // no leader, for now
      ++answers;
      ASSERT_EQ(ends->last, at);
    }
    EXPECT_EQ(answers, 300U);
    servers.start((behind + 1) % 3);
  }
}

// A primary and a reader that takes over, over three servers, each of which is killed or stopped in
// turn: what was acknowledged is there, once, in order.
TEST(NatsLog, OfThreeServersOneMayBeGone) {
  Servers servers(3);
  LogOptions options{servers.urls(), "shop", 3, 2s};
  std::shared_ptr<LogService> logs[2] = {open(options), open(options)};
  ASSERT_TRUE(logs[0] && logs[1]);
  EXPECT_EQ(logs[0]->describe().value().replicas, 3U);
  std::vector<std::uint64_t> acknowledged, counted;
  const auto on_frame = [&](const backup::Frame& frame, const replication::StreamPlace&) {
    if (frame.header.kind == backup::FrameKind::group) counted.push_back(frame.header.last);
    return Status();
  };
  const auto nothing = [](const backup::Frame&, const replication::StreamPlace&) {
    return Status();
  };
  std::uint64_t id = 0, under_way = 0;
  Stream streams[2] = {{logs[0], pool_uuid, {}}, {logs[1], pool_uuid, {}}};
  for (int round = 0; round < 3; ++round) {
    Stream& writer = streams[round % 2];
    // While a cluster chooses a leader, its answers are late, or say at once that nobody is there.
    const auto late = std::chrono::steady_clock::now() + 120s;
    for (;;) {
      (void)writer.claim("round " + std::to_string(round), nothing);
      if (writer.primary()) break;
      ASSERT_LT(std::chrono::steady_clock::now(), late) << writer.why().message();
      std::this_thread::sleep_for(20ms);
    }
    id = std::max(id, writer.place().end.last);
    const auto step = [&] {
      if (!writer.under_way()) {
        backup::FrameHeader h{};
        h.kind = backup::FrameKind::group;
        h.last = under_way = ++id;
        h.transactions = 1;
        const auto state = writer.append(h, &id, sizeof id);
        if (state.ok() && *state == Stream::State::in_log) acknowledged.push_back(under_way);
        return;
      }
      const auto state = writer.settle();
      if (state.ok() && *state == Stream::State::in_log) acknowledged.push_back(under_way);
    };
    for (int i = 0; i < 20; ++i) step();
    const bool kill = round != 1;
    servers.send(round, kill ? SIGKILL : SIGSTOP);
    const std::size_t before = acknowledged.size();
    while (acknowledged.size() < before + 20) {
      ASSERT_LT(std::chrono::steady_clock::now(), late)
          << "no progress without one server: " << writer.why().message();
      step();
      if (writer.under_way()) std::this_thread::sleep_for(20ms);
    }
    kill ? servers.start(round) : servers.send(round, SIGCONT);
  }
  Stream reader(logs[0], pool_uuid, {});
  Status read;
  ASSERT_TRUE(comes([&] { return (read = reader.read(on_frame)).ok(); })) << read.message();
  EXPECT_TRUE(std::is_sorted(counted.begin(), counted.end()));
  EXPECT_EQ(std::adjacent_find(counted.begin(), counted.end()), counted.end()) << "twice";
  for (const std::uint64_t one : acknowledged)
    EXPECT_TRUE(std::binary_search(counted.begin(), counted.end(), one)) << one << " is lost";
  EXPECT_GE(acknowledged.size(), 120U);
}

}  // namespace
}  // namespace perdure::nats::test
