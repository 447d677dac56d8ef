// SPDX-License-Identifier: BSD-3-Clause
//
// DudetmOptions: what may be chosen of DudeTM when a pool is opened (Options::engine_options).
#pragma once

#include "perdure/engine/shadow/dudetm_options.hpp"
