// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/places.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "perdure/base/at_fork.hpp"

namespace perdure::backup {
namespace {

struct Kinds {
  std::mutex mutex;
  std::map<std::string, OpenPlace> all;
};
Kinds& kinds() {
  // It is never destroyed: a static object's destructor may open a place.
  static Kinds* const all = new Kinds;
  return *all;
}
const int held = base::hold_over_fork<kinds>();

}  // namespace

Result<std::shared_ptr<Store>> open_place(const std::string& place, bool create) {
  const std::size_t end = place.find("://");
  if (end == std::string::npos) return open_folder(place, create);
  OpenPlace open;
  {
    const std::lock_guard lock(kinds().mutex);
    if (const auto found = kinds().all.find(place.substr(0, end)); found != kinds().all.end())
      open = found->second;
  }
  if (open == nullptr)
    return failure(Code::unsupported, place, "a place that this program can't open", "a folder",
                   place.starts_with("s3:") ? "link perdure::s3 and call perdure::s3::enable()"
                                            : "name a folder");
  return open(place, create);
}

void register_places(const std::string& kind, OpenPlace open) {
  const std::lock_guard lock(kinds().mutex);
  kinds().all[kind] = std::move(open);
}

}  // namespace perdure::backup
