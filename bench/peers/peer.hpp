// SPDX-License-Identifier: BSD-3-Clause
//
// The stores that Perdure is compared with, as workloads see them: an ordered store of byte strings
// with transactions. A new peer is a source with a Peer; every workload then runs on it
// (workloads.cpp). See docs/benchmarks.md.
// Thread safety: many threads call update and view at once if add_peer says so; one thread calls
// the others.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "bench/harness/session.hpp"

namespace bench {

class Peer {
 public:
  /// f(key, value); false ends a scan. The two arguments are valid during the call.
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;

  class Transaction {
   public:
    virtual ~Transaction() = default;
    /// Returns false if the key does not exist. It sees what was put in this transaction.
    virtual bool get(std::string_view key, std::string& value) = 0;
    virtual void put(std::string_view key, std::string_view value) = 0;
    /// Returns whether the key existed.
    virtual bool erase(std::string_view key) = 0;
    /// In key order, from the first key that is not before `from`.
    virtual void scan(std::string_view from, const Visit& visit) = 0;
  };
  using Body = std::function<void(Transaction&)>;

  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;

  /// Runs one transaction: isolated, run again if the store demands it, undone if the body throws;
  /// durable when it returns, if the mode waits.
  virtual void update(const Body& body) = 0;
  virtual void view(const Body& body) = 0;
  /// The store was filled, in transactions that did not wait: from now on transactions wait as the
  /// mode says.
  virtual void filled() = 0;
  /// Closes and opens again; the data is durable then.
  virtual void reopen() = 0;
  [[nodiscard]] virtual std::string describe() = 0;
};

using OpenPeer = std::function<std::unique_ptr<Peer>(const Setting&)>;
/// Adds a system that has every workload of workloads.cpp, and these programs.
void add_peer(Systems& systems, const std::string& name, const std::string& about,
              unsigned max_threads, OpenPeer open, Programs programs = {});

// Declares void add_NAME(Systems&) for each peer that CMakeLists.txt lists.
#define PEER(name) void add_##name(Systems& systems);
#include "peers.inc"
#undef PEER

}  // namespace bench
