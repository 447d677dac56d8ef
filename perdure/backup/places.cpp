// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/places.hpp"

#include <utility>

#include "perdure/base/at_fork.hpp"
#include "perdure/base/kinds.hpp"

namespace perdure::backup {
namespace {

base::Kinds<OpenPlace>& kinds() {
  // It is never destroyed: a static object's destructor may open a place.
  static auto* const all = new base::Kinds<OpenPlace>;
  return *all;
}
const int held = base::hold_over_fork<kinds>();

}  // namespace

Result<std::shared_ptr<Store>> open_place(const std::string& place, bool create) {
  if (place.find("://") == std::string::npos) return open_folder(place, create);
  if (const OpenPlace open = kinds().of(place)) return open(place, create);
  return failure(Code::unsupported, place, "a place that this program can't open", "a folder",
                 place.starts_with("s3:") ? "link perdure::s3 and call perdure::s3::enable()"
                                          : "name a folder");
}

void register_places(const std::string& kind, OpenPlace open) {
  kinds().add(kind, std::move(open));
}

}  // namespace perdure::backup
