// SPDX-License-Identifier: BSD-3-Clause
//
// Perdure: ordinary data structures, changed in transactions at memory speed, whole and durable
// after any crash.
//
// This header includes the C++ interface: pools, transactions, persistent fields, containers.
// Containers that fewer programs use are included by their own headers, under perdure/container/:
// set.hpp, hash_set.hpp, multimap.hpp, deque.hpp, priority_queue.hpp, hooked_list.hpp; erase_if.hpp
// has erase_if() of all containers, rebuilt.hpp what makes one container of another.
// README.md has a program of ten lines.
#pragma once

#include "perdure/api/layout.hpp"
#include "perdure/api/migrate.hpp"
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
#include "perdure/container/retired.hpp"
#include "perdure/container/string.hpp"
#include "perdure/container/table.hpp"
#include "perdure/container/vector.hpp"
#include "perdure/evolve/step.hpp"
