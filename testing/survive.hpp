// SPDX-License-Identifier: BSD-3-Clause
//
// survive: runs a check of memory that may be damaged. A pointer that leads nowhere ends the check,
// not the program.
// Thread safety: one call at a time per process.
#pragma once

#include <functional>
#include <string>

namespace perdure::crash {

/// Runs f(). Returns an empty string, or which signal ended it (SIGSEGV, SIGBUS, SIGABRT) and at
/// which address: then f's frames were left without their destructors.
std::string survive(const std::function<void()>& f);

}  // namespace perdure::crash
