/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program without GoogleTest that waits for ever; watchdog_test runs it.
 */
#include <unistd.h>

__attribute__((noinline)) void waits_in_c(void) {
  for (;;) pause(); /* a signal ends it, also the watchdog's own */
}

int main(void) {
  waits_in_c();
  return 0;
}
