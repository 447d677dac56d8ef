/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For C programs: replicated logs on NATS JetStream (perdure::nats).
 */
#ifndef PERDURE_NATS_ENABLE_H
#define PERDURE_NATS_ENABLE_H

#ifdef __cplusplus
extern "C" {
#endif

/* From here on, perdure_options.replicate can name a log so: nats://HOST:PORT/STREAM
 * (nats/nats_log.hpp).
 * RETURNS PERDURE_OK, OUT_OF_MEMORY. THREADS: any. */
int perdure_nats_enable(void);

#ifdef __cplusplus
}
#endif

#endif
