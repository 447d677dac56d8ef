/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For C programs: archives, backups and logs in S3-compatible stores (perdure::s3).
 */
#ifndef PERDURE_S3_ENABLE_H
#define PERDURE_S3_ENABLE_H

#ifdef __cplusplus
extern "C" {
#endif

/* From here on, s3://... can be named wherever a folder of archives, backups and replicated logs
 * can: perdure_options.archive and .replicate, and backups (s3/bucket.hpp). The rest is of the
 * environment. RETURNS PERDURE_OK, OUT_OF_MEMORY. THREADS: any. */
int perdure_s3_enable(void);

#ifdef __cplusplus
}
#endif

#endif
