// SPDX-License-Identifier: BSD-3-Clause
//
// The systems of DudeTM's figures: Volatile-STM is volatile/stm; DudeTM and its forms over the same TM; both again over the library's own (biased), and over
// hardware transactions (Volatile-HTM, DudeTM-HTM) where the processor has them; and the default engine beside them.
#pragma once

#include "bench/systems/perdure.hpp"

namespace bench {

using dude_engines = perdure::engines<perdure::volatile_, perdure::volatile_stm, perdure::volatile_htm, perdure::dudetm,
                                      perdure::dudetm_stm, perdure::dudetm_htm, perdure::shadow>;

// One source a pair: they compile side by side.
std::unique_ptr<Session> open_dude_inserts(const Setting& setting, const PerdureChoice& choice);     // ht, bpt
std::unique_ptr<Session> open_dude_new_orders(const Setting& setting, const PerdureChoice& choice);  // tpcch, tpccb
std::unique_ptr<Session> open_dude_rows(const Setting& setting, const PerdureChoice& choice);        // tatph, tatpb, session, store

}  // namespace bench
