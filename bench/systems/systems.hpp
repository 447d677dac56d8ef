// SPDX-License-Identifier: BSD-3-Clause
//
// The systems that the executables of bench/ put into their lists; one line per system, each
// defined in its own source file.
#pragma once

#include "bench/harness/session.hpp"

namespace bench {

void add_plain(Systems& systems);    ///< plain.cpp
void add_nvm(Systems& systems);      ///< nvm.cpp
void add_ceiling(Systems& systems);  ///< ceiling.cpp
void add_bound(Systems& systems);    ///< bound.cpp
void add_raw(Systems& systems);      ///< raw.cpp
void add_perdure(Systems& systems);  ///< perdure.cpp: every engine of the registry, in every mode
void add_pmemobj(Systems& systems);  ///< pmemobj.cpp, an executable of its own
// The stores of bench/peers/ are in another executable.

}  // namespace bench
