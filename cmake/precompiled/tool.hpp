// SPDX-License-Identifier: BSD-3-Clause
//
// What tools/ includes of fmt, nlohmann/json and the standard library, precompiled
// (cmake/PerdurePrecompiled.cmake). A source includes what it uses all the same.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <stdexcept>
#include <tuple>
#include <unordered_map>

#include "cmake/precompiled/standard.hpp"
