// SPDX-License-Identifier: BSD-3-Clause
//
// What tests of whole pools include, precompiled (PERDURE_PRECOMPILED_HEADERS). A test includes
// what it uses all the same.
#pragma once

#include "tests/engine/suite.hpp"
#include "tests/support/precompiled.hpp"
