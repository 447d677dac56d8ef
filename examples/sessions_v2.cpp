// SPDX-License-Identifier: BSD-3-Clause
//
// sessions_v2 plan|open|kill FILE: version 2 of the session store takes over a pool of version 1.
#include "examples/sessions_v2.hpp"

#include <cstdio>

#include "examples/version_2.hpp"

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  using sessions::v2::Root;
  return version_2::run<Root>(argc, argv, {}, [&](const perdure::Options& options) {
    sessions::v2::Store store(argv[2], options);
    const sessions::v2::Time now(1'700'000'000s);  // fixed, so that each run prints the same
    const auto old = store.find("def", now);       // a session of version 1
    const auto logins = store.log_in({"jkl", 7, "phone", 1, {}, now + 9h});
    std::printf("session def: owner %llu, device %s, %u logins; jkl: %u logins\n",
                static_cast<unsigned long long>(old ? old->owner : 0),
                old ? old->device.c_str() : "none", old ? old->logins : 0, logins);
    std::printf("owner 7 has %zu sessions, %zu on a phone\n", store.of_owner(7, {}).size(),
                store.of_owner(7, "phone").size());
    return store.pool().check().ok() ? 0 : 1;
  });
}
