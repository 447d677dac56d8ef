// SPDX-License-Identifier: BSD-3-Clause
//
// Version 2 of the session store (sessions.hpp): a session has its device and the number of its
// logins, its user is called owner, and sessions are found by owner and device together. The index
// by user is dropped. The sessions stay, and are read in the layout of version 1. docs/version-2.md
// goes through this program.
// Thread safety: any number of threads may call anything at once.
#pragma once

#include <perdure.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sessions::v2 {

using Time = std::chrono::sys_seconds;

struct Session {
  std::string token;
  std::uint64_t owner = 0;
  std::string device = "unknown";
  std::uint32_t logins = 1;
  std::vector<std::string> roles;
  Time until;  // the first second in which it is no longer valid
  static constexpr perdure::renamed perdure_renamed[] = {{"owner", "user"}};
};

struct Root {
  perdure::table<
      Session, perdure::key<&Session::token>, perdure::dropped<perdure::indexed<&Session::owner>>,
      perdure::indexed<&Session::owner, &Session::device>, perdure::expires<&Session::until>>
      sessions;
  perdure::p<std::uint64_t> logins;
};

class Store {
 public:
  explicit Store(const std::string& path, const perdure::Options& options = {})
      : pool_(perdure::Pool<Root>::open(path, options)) {}

  // Adds a session, or one login to the session with its token. Returns the session's logins.
  std::uint32_t log_in(const Session& session) {
    return pool_
        .update([&](auto& tx, Root& root) {
          tx(root.logins) += 1;
          if (root.sessions.insert(tx, session)) return session.logins;
          root.sessions.update(tx, session.token, [&](Session& s) {
            s.until = session.until;
            s.device = session.device;
            ++s.logins;
          });
          return root.sessions.find(tx, session.token)->logins;
        })
        .value();
  }
  // The token's session, unless its time is over.
  std::optional<Session> find(std::string_view token, Time now) {
    return pool_.view([&](auto& tx, const Root& root) {
      auto session = root.sessions.find(tx, token);
      if (session && session->until <= now) session.reset();
      return session;
    });
  }
  // The tokens of an owner's sessions on one device, or on all devices in their order.
  std::vector<std::string> of_owner(std::uint64_t owner, std::optional<std::string_view> device) {
    return pool_.view([&](auto& tx, const Root& root) {
      std::vector<std::string> tokens;
      const auto add = [&](auto&& found) {
        for (auto session : found) tokens.push_back(session[&Session::token]);
      };
      if (device)
        add(root.sessions.by<&Session::owner, &Session::device>(tx, owner, *device));
      else
        add(root.sessions.by<&Session::owner>(tx, owner));
      return tokens;
    });
  }
  auto& pool() { return pool_; }

 private:
  perdure::Pool<Root> pool_;
};

}  // namespace sessions::v2
