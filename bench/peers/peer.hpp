// SPDX-License-Identifier: BSD-3-Clause
//
// What Perdure is compared with, as workloads see it: an ordered store of byte strings with
// transactions. A new peer is a source with a Peer; every workload runs on it then (workloads.cpp).
// See docs/benchmarks.md.
// Thread safety: update and view are called by many threads at once, where add_peer says so; the
// others by one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "bench/harness/session.hpp"

namespace bench {

class Peer {
 public:
  /// f(key, value); false ends a scan. What the two refer to lasts for the call.
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;

  class Transaction {
   public:
    virtual ~Transaction() = default;
    /// False: no such key. What was put in this transaction is seen.
    virtual bool get(std::string_view key, std::string& value) = 0;
    virtual void put(std::string_view key, std::string_view value) = 0;
    /// Whether it was there.
    virtual bool erase(std::string_view key) = 0;
    /// In the order of keys, from the first that is not before `from`.
    virtual void scan(std::string_view from, const Visit& visit) = 0;
  };
  using Body = std::function<void(Transaction&)>;

  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;

  /// One transaction: isolated, run again where the store says so, undone where the body throws;
  /// durable when it returns, if the mode waits.
  virtual void update(const Body& body) = 0;
  virtual void view(const Body& body) = 0;
  /// The store was filled, in transactions that waited for nothing: from now on as the mode says.
  virtual void filled() = 0;
  /// Closes and opens again, whose data is durable then.
  virtual void reopen() = 0;
  [[nodiscard]] virtual std::string describe() = 0;
};

using OpenPeer = std::function<std::unique_ptr<Peer>(const Setting&)>;
/// A system that has every workload of workloads.cpp.
void add_peer(Systems& systems, const std::string& name, const std::string& about,
              unsigned max_threads, OpenPeer open);

// void add_NAME(Systems&) of each peer that CMakeLists.txt lists.
#define PEER(name) void add_##name(Systems& systems);
#include "peers.inc"
#undef PEER

}  // namespace bench
