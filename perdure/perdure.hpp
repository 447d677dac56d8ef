// SPDX-License-Identifier: BSD-3-Clause
//
// Perdure: ordinary data structures, changed in transactions at memory speed, whole and durable
// after any crash.
//
// This header includes the C++ interface: pools, transactions, persistent fields, containers.
// README.md has a program of ten lines.
#pragma once

#include "perdure/api/layout.hpp"
#include "perdure/api/options.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/api/pool.hpp"
#include "perdure/api/receipt.hpp"
#include "perdure/api/tx.hpp"
#include "perdure/container/box.hpp"
#include "perdure/container/hash_map.hpp"
#include "perdure/container/list.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/queue.hpp"
#include "perdure/container/rb_tree.hpp"
#include "perdure/container/string.hpp"
#include "perdure/container/table.hpp"
#include "perdure/container/vector.hpp"
