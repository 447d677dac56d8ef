// SPDX-License-Identifier: BSD-3-Clause
//
// Puts a whole program under the watchdog, for tests without GoogleTest such as those in C. Linking
// it is all that is needed: the limit begins before main() and holds until the program has ended.
#include <cerrno>

#include "tests/support/watchdog.hpp"

namespace {

[[gnu::constructor]] void begin() {
  perdure::test::watch(::program_invocation_short_name, perdure::test::case_limit());
}

}  // namespace
