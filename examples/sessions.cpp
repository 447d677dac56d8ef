// SPDX-License-Identifier: BSD-3-Clause
//
// sessions FILE: a session store: users log in, one session is renewed, and those whose time is
// over are removed. Run it again: it finds the session that was left.
#include <cstdio>

#include "examples/sessions.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: sessions FILE\n"), 2;
  using namespace std::chrono_literals;
  try {
    sessions::Store store(argv[1]);
    std::printf("%llu sessions found\n", static_cast<unsigned long long>(store.size()));
    const sessions::Time now(1'700'000'000s);  // fixed, so that each run prints the same
    store.put({"abc", 7, {"admin"}, now + 1h});
    store.put({"def", 7, {}, now + 2h});
    store.put({"ghi", 8, {"reader", "writer"}, now + 3h});
    store.renew("def", now + 9h);
    std::printf("user 7, newest first:");
    for (const auto& token : store.of_user(7)) std::printf(" %s", token.c_str());
    const auto later = now + 4h;
    const bool over = !store.find("abc", later), valid = store.find("def", later).has_value();
    const auto expired = store.expire(later, 1000);
    std::printf("\n%llu expired, %llu left\n", static_cast<unsigned long long>(expired),
                static_cast<unsigned long long>(store.size()));
    return over && valid && store.pool().check().ok() ? 0 : 1;
  } catch (const perdure::error& e) {
    return std::fprintf(stderr, "sessions: %s\n", e.what()), 1;
  }
}
