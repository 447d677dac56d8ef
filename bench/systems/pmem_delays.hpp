// SPDX-License-Identifier: BSD-3-Clause
//
// The emulated medium's delays under libpmemobj: its write-backs and drains are charged like
// Perdure's own (perdure/medium/delay.hpp). Its calls of libpmem are interposed: a symbol of the
// executable takes precedence over a shared library's.
// Thread safety: set the delays before the pool is made; the rest from any thread.
#pragma once

#include <string>

namespace bench {

/// "none", or a paper's (medium::Delays::named). Throws perdure::error for an unknown name.
void set_pmem_delays(const std::string& name);
/// Returns ", delays dudetm", or an empty string.
std::string pmem_delays_text();

}  // namespace bench
