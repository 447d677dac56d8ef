// SPDX-License-Identifier: BSD-3-Clause
#include "tools/unmapped_pool.hpp"

#include <functional>
#include <string>
#include <utility>

#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/engine/follow/can_follow.hpp"
#include "tools/command.hpp"
#include "tools/progress.hpp"
#include "tools/raw_pool.hpp"

namespace perdure::tool {

namespace {

using MayFollow = std::function<bool(const pool::Header&)>;

std::unique_ptr<pool::OpenPool> open(const PoolArguments& arguments, bool read_only, bool with_log,
                                     MayFollow may_follow) {
  pool::OpenFile how;
  how.with_log = with_log;
  how.may_follow = std::move(may_follow);
  how.path = arguments.path;
  how.create = false;
  how.read_only = read_only;
  how.medium = arguments.medium;
  how.direct = !arguments.no_direct;
  pool::Identity who;
  who.engine_any = true;
  who.layout_any = true;
  return pool::OpenPool::open(how, who).value();
}

}  // namespace

std::unique_ptr<pool::OpenPool> open_unmapped(const PoolArguments& arguments, bool read_only,
                                              bool with_log) {
  return open(arguments, read_only, with_log, {});
}

std::unique_ptr<pool::OpenPool> open_unmapped_beside(const PoolArguments& arguments) {
  return open(arguments, true, false, [](const pool::Header& h) {
    return engine::follow::can_follow(engine::registered(), h);
  });
}

engine::Recovery put_in_order(pool::OpenPool& file, const PoolArguments& arguments) {
  const std::string engine = engine_of(file.header());
  const engine::EngineInfo* const entry = engine::find_family(engine);
  if (entry == nullptr)
    failure(Code::incompatible, arguments.path, "a pool of engine '" + engine + "'",
            "one that this build knows", "use the perdure command of the program's own build")
        .or_throw();
  engine::Recovery report;
  report.was_clean = file.header().clean == 1;
  if (!report.was_clean) {
    engine::recover(*entry, file, report, {0, show_recovery(arguments.path)}).or_throw();
    file.start_session(pool::ViewPolicy::none).or_throw();
    file.close_clean(report.last_id).or_throw();
  }
  return report;
}

}  // namespace perdure::tool
