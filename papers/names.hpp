// SPDX-License-Identifier: BSD-3-Clause
//
// The papers' namespaces, one per folder. What is in them is written with the engine kit's and the
// logs' names, without a prefix.
#pragma once

namespace perdure::engine {}
namespace perdure::log {}

// The papers are no part of the library's namespaces, so that a name says which system it is of.
// NOLINTBEGIN(google-build-using-namespace)
namespace perdure::papers::blurred {
using namespace engine;
using namespace log;
}  // namespace perdure::papers::blurred
namespace perdure::papers::dudetm {
using namespace engine;
using namespace log;
}  // namespace perdure::papers::dudetm
namespace perdure::papers::rewind {
using namespace engine;
using namespace log;
}  // namespace perdure::papers::rewind
namespace perdure::papers::softwrap {
using namespace engine;
using namespace log;
}  // namespace perdure::papers::softwrap
// NOLINTEND(google-build-using-namespace)
