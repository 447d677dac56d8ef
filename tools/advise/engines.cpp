// SPDX-License-Identifier: BSD-3-Clause
#include "tools/advise/engines.hpp"

#include <type_traits>

#include "papers/engines.hpp"
#include "perdure/engine/shadow/instances.hpp"

namespace perdure::tool {
namespace {

template <class... Families>
std::unique_ptr<ReplayPool> open_one_of(const std::string& path, const Options& options) {
  static_assert(std::is_same_v<typename engine::Joined<Families...>::type, all_engines>,
                "perdure advise replays on every engine: name each family here, in its order");
  std::unique_ptr<ReplayPool> pool;
  ((pool = open_family<Families>(path, options)) || ...);
  return pool;
}

}  // namespace

std::unique_ptr<ReplayPool> open_replay(const std::string& path, const Options& options) {
  auto pool = open_one_of<shadow_engines, undo_engines, volatile_engines, dudetm_engines,
                          rewind_engines, blurred_engines, softwrap_engines>(path, options);
  if (pool == nullptr)
    throw error(
        failure(Code::invalid, "", "engine '" + options.engine + "'", "one of the registry's"));
  return pool;
}

}  // namespace perdure::tool
