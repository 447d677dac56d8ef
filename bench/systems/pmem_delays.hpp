// SPDX-License-Identifier: BSD-3-Clause
//
// The emulated medium's delays under libpmemobj: what it writes back and when it drains is charged
// as Perdure's own (perdure/medium/delay.hpp). Its calls of libpmem are interposed: a symbol of the
// executable comes before a shared library's.
// Thread safety: set before the pool is made; the rest from any thread.
#pragma once

#include <string>

namespace bench {

/// "none", or a paper's (medium::Delays::named). Throws perdure::error for a name that there is
/// not.
void set_pmem_delays(const std::string& name);
/// ", delays dudetm", or nothing.
std::string pmem_delays_text();

}  // namespace bench
