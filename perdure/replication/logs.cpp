// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/replication/logs.hpp"

#include <utility>

#include "perdure/backup/places.hpp"
#include "perdure/base/at_fork.hpp"
#include "perdure/base/kinds.hpp"
#include "perdure/replication/store_log.hpp"

namespace perdure::replication {
namespace {

base::Kinds<OpenLog>& kinds() {
  // It is never destroyed: a static object's destructor may open a log.
  static auto* const all = new base::Kinds<OpenLog>;
  return *all;
}
const int held = base::hold_over_fork<kinds>();

}  // namespace

Result<std::shared_ptr<LogService>> open_named_log(const std::string& name, bool create) {
  if (const OpenLog open = kinds().of(name)) return open(name, create);
  if (name.starts_with("nats://"))
    return failure(Code::unsupported, name, "a log that this program can't open", "a folder",
                   "link perdure::nats and call perdure::nats::enable()");
  auto store = backup::open_place(name, create);
  if (!store) return store.status();
  return open_store_log(std::move(*store), create);
}

void register_logs(const std::string& kind, OpenLog open) { kinds().add(kind, std::move(open)); }

}  // namespace perdure::replication
