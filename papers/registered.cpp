// SPDX-License-Identifier: BSD-3-Clause
//
// A program with this object knows the papers' engines before main() begins. For the project's own
// tests and benchmarks, which go over all engines that are registered; others call
// register_engines().
#include "papers/engines.hpp"

namespace {

[[maybe_unused]] const bool registered = (perdure::papers::register_engines(), true);

}  // namespace
