// SPDX-License-Identifier: BSD-3-Clause
//
// How a store of an example program is opened, whatever it is on. Thread safety: a function.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "examples/jobs.hpp"

namespace bench::apps {

/// Opens a store at a path. `how`: what its constructor takes last.
template <class Store, class How>
std::unique_ptr<Store> open_store(const std::string& path, const How& how) {
  if constexpr (std::is_constructible_v<Store, const std::string&, const jobs::Policy&, const How&>)
    return std::make_unique<Store>(path, jobs::Policy{}, how);
  else
    return std::make_unique<Store>(path, how);
}

}  // namespace bench::apps
