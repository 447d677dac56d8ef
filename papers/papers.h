/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The four papers' engines from C, beside perdure.h.
 */
#ifndef PERDURE_PAPERS_H
#define PERDURE_PAPERS_H

#ifdef __cplusplus
extern "C" {
#endif

/* perdure_open() and perdure_engine_at() know the papers' engines from here on: "dudetm",
 * "rewind-1l-nfp-batch", "bppm", "softwrap" and the others. Call it at the program's beginning; a
 * second call does nothing. Any thread. Can't fail. */
void perdure_papers_register(void);

#ifdef __cplusplus
}
#endif

#endif
