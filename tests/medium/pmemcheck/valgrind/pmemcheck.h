/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A stand-in for pmemcheck's header: it counts the requests that Perdure makes, and records their
 * arguments. The test provides the functions. It is found before a real one, which Debian does not
 * have.
 */
#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
void pmc_map(const void* at, size_t n);
void pmc_unmap(const void* at, size_t n);
void pmc_flush(const void* at, size_t n);
void pmc_fence(void);
#ifdef __cplusplus
}
#endif
#define VALGRIND_PMC_REGISTER_PMEM_MAPPING(at, n) pmc_map((at), (n))
#define VALGRIND_PMC_REMOVE_PMEM_MAPPING(at, n) pmc_unmap((at), (n))
#define VALGRIND_PMC_DO_FLUSH(at, n) pmc_flush((at), (n))
#define VALGRIND_PMC_DO_FENCE pmc_fence()
