/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A stranger's C program.
 */
#include <perdure.h>
#include <stdio.h>

int main(void) {
  printf("perdure %s\n", perdure_version());
  return 0;
}
