// SPDX-License-Identifier: BSD-3-Clause
//
// Places: what names a Store. A path names a folder; KIND://... names a place of a kind that a
// library beside this one has registered, such as perdure::s3.
// Thread safety: any thread may call both.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "perdure/backup/store.hpp"

namespace perdure::backup {

/// Opens a place; `create`: makes it where its kind can. Errors: as open_folder(), the kind's own,
/// and `unsupported` for a kind that was not registered.
Result<std::shared_ptr<Store>> open_place(const std::string& place, bool create);

/// Opens a place of one kind, given the whole name.
using OpenPlace =
    std::function<Result<std::shared_ptr<Store>>(const std::string& place, bool create)>;
/// From here on, `kind`://... is opened so.
void register_places(const std::string& kind, OpenPlace open);

}  // namespace perdure::backup
