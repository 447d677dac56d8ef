// SPDX-License-Identifier: BSD-3-Clause
//
// sessions::Store: a web site's session store: by token, by user, with expiry. The program is
// sessions.cpp; the same store on LMDB and on SQLite is in bench/apps.
// Thread safety: any number of threads may call anything at once.
#pragma once

#include <perdure.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

namespace sessions {

using Time = std::chrono::sys_seconds;

struct Session {
  std::string token;
  std::uint64_t user = 0;
  std::vector<std::string> roles;
  Time until;  // the first second in which it is no longer valid
};

struct Root {
  perdure::table<Session, perdure::key<&Session::token>, perdure::indexed<&Session::user>,
                 perdure::expires<&Session::until>>
      sessions;
};

class Store {
 public:
  explicit Store(const std::string& path, const perdure::Options& options = {})
      : pool_(perdure::Pool<Root>::open(path, options)) {}

  // Adds a session, or replaces the one of this token. Returns whether it was added.
  bool put(const Session& session) {
    return pool_.update([&](auto& tx, Root& root) { return bool(root.sessions.put(tx, session)); })
        .value();
  }
  // The token's session, unless its time is over.
  std::optional<Session> find(std::string_view token, Time now) {
    return pool_.view([&](auto& tx, const Root& root) -> std::optional<Session> {
      const auto session = root.sessions.at(tx, token);
      if (!session || (*session)[&Session::until] <= now) return {};
      return session->value();
    });
  }
  // Returns whether there is such a session.
  bool renew(std::string_view token, Time until) {
    return pool_
        .update([&](auto& tx, Root& root) {
          return root.sessions.update(tx, token, [&](Session& s) { s.until = until; });
        })
        .value();
  }
  // Returns whether there was such a session.
  bool end(std::string_view token) {
    return pool_.update([&](auto& tx, Root& root) { return root.sessions.erase(tx, token); })
        .value();
  }
  // The tokens of a user's sessions, newest first.
  std::vector<std::string> of_user(std::uint64_t user) {
    return pool_.view([&](auto& tx, const Root& root) {
      std::vector<std::string> tokens;
      for (auto session : root.sessions.by<&Session::user>(tx, user) | std::views::reverse)
        tokens.push_back(session[&Session::token]);
      return tokens;
    });
  }
  // Removes up to `most` sessions whose time is over, oldest first. Returns how many.
  std::uint64_t expire(Time now, std::uint64_t most) {
    return pool_.update([&](auto& tx, Root& root) { return root.sessions.expire(tx, now, most); })
        .value();
  }
  std::uint64_t size() {
    return pool_.view([](auto& tx, const Root& root) { return root.sessions.size(tx); });
  }
  auto& pool() { return pool_; }

 private:
  perdure::Pool<Root> pool_;
};

}  // namespace sessions
