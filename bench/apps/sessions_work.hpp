// SPDX-License-Identifier: BSD-3-Clause
//
// sessions-90: calls of a session store, one per operation: 90 % look a token up; of the others
// half renew a session, a quarter are logins, an eighth are logouts, and an eighth remove up to 8
// sessions whose time is over. There are 100,000 tokens; the sessions of half of them are there at
// first. Four tokens share a user. Time passes with the operations: 1,000 are a second, and a
// session ends 1,000 seconds after its login or renewal.
// Invariant: each session that is there is what its token says, is among its user's, and is one of
// those that were there plus those added minus those removed.
// Thread safety: any number of threads call step; a process has one session of this structure.
#pragma once

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/harness/rng.hpp"
#include "bench/harness/session.hpp"
#include "bench/harness/timed.hpp"
#include "examples/sessions.hpp"

namespace bench::apps {

struct SessionsWork {
  static constexpr const char* structure = "sessions";
  static constexpr std::uint64_t tokens = 100'000, per_user = 4, per_second = 1000;
  static constexpr std::int64_t lifetime = 1000;

  static sessions::Time time(std::int64_t seconds) {
    return sessions::Time(std::chrono::seconds(1'700'000'000 + seconds));
  }
  static std::string token_of(std::uint64_t n) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string token;
    for (const std::uint64_t half : {mix(n + 1), mix(n + tokens + 1)})
      for (int shift = 60; shift >= 0; shift -= 4) token.push_back(digits[half >> shift & 15]);
    return token;
  }
  static sessions::Session session_of(std::uint64_t n, sessions::Time until) {
    sessions::Session s{token_of(n), n / per_user, {}, until};
    for (std::uint64_t role = 0; role < n % 3; ++role)
      s.roles.push_back("role-" + std::to_string(role));
    return s;
  }

  template <class Host>
  static void fill(Host& host, const Setting&) {
    constexpr std::uint64_t a_batch = 10;
    for (std::uint64_t from = 0; from < tokens; from += 2 * a_batch)
      host.batch([&] {
        for (std::uint64_t n = from; n < from + 2 * a_batch; n += 2)
          host.store().put(session_of(n, time(1 + static_cast<std::int64_t>(n) % lifetime)));
      });
  }
  static void check_parameter(unsigned percent) { check_percent(structure, percent); }
  template <class Host>
  static Step step(Host& host, const Cell&, unsigned percent, Rng& rng) {
    const auto second =
        static_cast<std::int64_t>(clock_.fetch_add(1, std::memory_order_relaxed) / per_second);
    const std::uint64_t n = rng.below(tokens);
    if (rng.below(100) < percent) {
      const auto found = host.store().find(token_of(n), time(second));
      if (found && found->user != n / per_user)
        throw std::runtime_error("sessions: found another user's session");
      return {};
    }
    const std::uint64_t kind = rng.below(8);
    if (kind < 4) return {.wrote = host.store().renew(token_of(n), time(second + lifetime))};
    if (kind < 6) {
      const bool added = host.store().put(session_of(n, time(second + lifetime)));
      return {.wrote = true, .grown = added ? 1 : 0};
    }
    if (kind == 6) {
      const bool ended = host.store().end(token_of(n));
      return {.wrote = ended, .grown = ended ? -1 : 0};
    }
    const auto removed = static_cast<int>(host.store().expire(time(second), 8));
    return {.wrote = removed != 0, .grown = -removed};
  }
  template <class Host>
  static std::vector<std::string> audit(Host& host, std::int64_t grown) {
    std::vector<std::string> problems;
    std::uint64_t found = 0, wrong = 0, listed = 0;
    for (std::uint64_t n = 0; n < tokens; n += per_user) {
      std::vector<std::string> there;
      for (std::uint64_t of = n; of < n + per_user; ++of) {
        const auto session = host.store().find(token_of(of), sessions::Time{});
        if (!session) continue;
        ++found;
        there.push_back(token_of(of));
        const auto right = session_of(of, session->until);
        wrong += session->user != right.user || session->roles != right.roles ? 1U : 0U;
      }
      auto own = host.store().of_user(n / per_user);
      listed += own.size();
      std::sort(own.begin(), own.end());
      std::sort(there.begin(), there.end());
      if (own != there) ++wrong;
    }
    const std::uint64_t expected = static_cast<std::uint64_t>(tokens / 2 + grown);
    if (found != expected || listed != expected || host.store().size() != expected || wrong != 0)
      problems.push_back("sessions: found " + std::to_string(found) + " by token, " +
                         std::to_string(listed) + " by user, a size of " +
                         std::to_string(host.store().size()) + " and " + std::to_string(wrong) +
                         " that are wrong, expected " + std::to_string(expected));
    return problems;
  }

 private:
  static inline std::atomic<std::uint64_t> clock_{0};  // operations; only the order of times counts
};

}  // namespace bench::apps
