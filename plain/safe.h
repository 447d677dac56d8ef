/* SPDX-License-Identifier: BSD-3-Clause
 *
 * PERDURE_TRANSACTION_SAFE: the mark of functions that blocks of other files may call, on the
 * declaration and on the definition, whose file is compiled for blocks, too.
 */
#ifndef PERDURE_PLAIN_SAFE_H
#define PERDURE_PLAIN_SAFE_H

#ifdef __clang__
#define PERDURE_TRANSACTION_SAFE __attribute__((annotate("perdure_transaction_safe")))
#else
#define PERDURE_TRANSACTION_SAFE __attribute__((transaction_safe))
#endif

#endif
