// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/replication/logs.hpp"

#include <thread>
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

Result<OpenedLog> connect(const ReplicateOptions& options, const std::string& path, bool create) {
  if (Status s = options.check(path); !s.ok()) return s;
  OpenedLog log{options.service, {}};
  const auto late = std::chrono::steady_clock::now() + options.patience;
  for (Status failed;;) {
    if (log.service == nullptr) {
      auto opened = open_named_log(options.log, create);
      if (opened.ok())
        log.service = std::move(*opened);
      else
        failed = opened.status();
    }
    if (log.service != nullptr) {
      auto described = log.service->describe();
      if (described.ok()) {
        log.traits = *described;
        return log;
      }
      failed = described.status();
    }
    if (!may_pass(failed)) return failed;
    if (std::chrono::steady_clock::now() >= late)
      return failure(Code::unavailable, path,
                     "no answer of the replicated log: " + failed.message(), {},
                     "see that its servers run; the pool was not changed");
    std::this_thread::sleep_for(retry_after);
  }
}

Status no_answer(const std::string& path, const LogService& log, const Status& why) {
  return failure(
      Code::unavailable, path,
      "no answer of the replicated log " + log.name() + (why.ok() ? "" : ": " + why.message()), {},
      "see that its servers run, and open the pool again");
}

void register_logs(const std::string& kind, OpenLog open) { kinds().add(kind, std::move(open)); }

}  // namespace perdure::replication
