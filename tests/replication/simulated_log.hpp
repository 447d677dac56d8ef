// SPDX-License-Identifier: BSD-3-Clause
//
// A log in memory that keeps SERVICE-1 and is as unpleasant as it may be: appends arrive late, more
// than once, or never; answers are lost; reads show an older state. And, where a test asks for it,
// one that breaks SERVICE-1.
// Thread safety: none.
#pragma once

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "perdure/replication/log_service.hpp"

namespace perdure::replication::test {

/// How often something goes wrong, of 100 calls.
struct Faults {
  unsigned lost = 0;        ///< an append never arrives
  unsigned late = 0;        ///< it arrives at some later call, without an answer
  unsigned unanswered = 0;  ///< it has arrived, and the answer is lost
  unsigned doubled = 0;     ///< it arrives, and once more later
  unsigned stale = 0;       ///< a read shows less
};

class SimulatedLog final : public LogService {
 public:
  explicit SimulatedLog(std::uint64_t seed, Faults faults = {}) : random_(seed), faults_(faults) {}

  AppendAnswer append(std::uint64_t sequence, const void* bytes, std::uint64_t n) override {
    const auto* const first = static_cast<const std::byte*>(bytes);
    const Message message{sequence, {first, first + n}};
    deliver_some();
    if (happens(faults_.lost)) return unknown();
    if (happens(faults_.late)) {
      late_.push_back(message);
      return unknown();
    }
    if (happens(faults_.doubled)) late_.push_back(message);
    const bool done = take(message);
    if (happens(faults_.unanswered)) return unknown();
    if (done) return {Append::done, {}};
    return {Append::refused, failure(Code::exists, name_, "an append to another place", {}, {})};
  }

  Result<std::vector<Message>> read(std::uint64_t from, std::uint64_t bytes) override {
    deliver_some();
    if (from <= trimmed) return failure(Code::expired, name_, "trimmed", {}, {});
    if (from > messages.size() + 1) return failure(Code::not_found, name_, "no end", {}, {});
    std::uint64_t to = messages.size();
    if (happens(faults_.stale)) to = std::max(from - 1, to - std::min(to, random_() % 4));
    std::vector<Message> found;
    for (std::uint64_t at = from, size = 0; at <= to && (found.empty() || size < bytes); ++at) {
      found.push_back({at, messages[at - 1]});
      size += found.back().bytes.size();
    }
    return found;
  }

  Result<LogEnds> ends() override { return LogEnds{trimmed + 1, messages.size()}; }
  Status trim(std::uint64_t below) override {
    trimmed = std::max(trimmed, std::min<std::uint64_t>(below, messages.size()) - 1);
    return {};
  }
  Result<LogTraits> describe() override { return LogTraits{3, true, largest, confirms}; }
  Status confirm(const Confirmed& standby) override {
    if (happens(faults_.lost)) return {};
    said[standby.copy] = standby.id;
    return {};
  }
  Result<std::vector<Confirmed>> confirmed() override {
    std::vector<Confirmed> all;
    for (const auto& [copy, id] : said) all.push_back({copy, id});
    return all;
  }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }

  std::vector<std::vector<std::byte>> messages;  ///< tests look, and change what must not change
  std::map<std::string, std::uint64_t> said;     ///< by standbys, how far they are
  bool confirms = true;                          ///< it carries that
  std::uint64_t trimmed = 0;                     ///< the last one that is gone
  std::uint64_t largest = 1 << 20;               ///< of a message, in bytes
  /// It appends to its end whatever place is named.
  bool compares_nothing = false;

 private:
  bool happens(unsigned of_100) { return of_100 != 0 && random_() % 100 < of_100; }
  static AppendAnswer unknown() {
    return {Append::unknown, failure(Code::io, "simulated", "no answer", {}, {})};
  }
  bool take(const Message& message) {
    if (message.sequence != messages.size() + 1 && !compares_nothing) return false;
    messages.push_back(message.bytes);
    return true;
  }
  void deliver_some() {
    while (!late_.empty() && random_() % 3 == 0) {
      std::swap(late_[random_() % late_.size()], late_.back());
      (void)take(late_.back());
      late_.pop_back();
    }
  }

  const std::string name_ = "simulated log";
  std::mt19937_64 random_;
  const Faults faults_;
  std::vector<Message> late_;
};

}  // namespace perdure::replication::test
