// SPDX-License-Identifier: BSD-3-Clause
//
// Says whether this is a build with ThreadSanitizer, which knows neither membarrier nor hardware
// transactions.
#pragma once

namespace perdure::base {

#if defined(__has_feature)
#define PERDURE_HAS_FEATURE(x) __has_feature(x)
#else
#define PERDURE_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || PERDURE_HAS_FEATURE(thread_sanitizer)
inline constexpr bool under_thread_sanitizer = true;
#else
inline constexpr bool under_thread_sanitizer = false;
#endif
#undef PERDURE_HAS_FEATURE

}  // namespace perdure::base
