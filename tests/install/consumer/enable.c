/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A stranger's C program with a part of the library: PART_HEADER, PART_ENABLE.
 */
#include PART_HEADER
#include <perdure.h>

int main(void) { return PART_ENABLE() == PERDURE_OK ? 0 : 1; }
