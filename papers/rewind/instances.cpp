// SPDX-License-Identifier: BSD-3-Clause
#include <string_view>

#include "papers/rewind/rewind_impl.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"

namespace perdure::papers::rewind {

Composition composition_of(const pool::Header& header, std::uint32_t group) noexcept {
  Composition how =
      composition_of(std::string_view(header.engine, strnlen(header.engine, sizeof header.engine)));
  if (group != 0) how.group = group;
  return how;
}

Composition composition_of(std::string_view name) noexcept {
  name = name.substr(0, name.find('/'));
  Composition how;
  how.layers = name.find("-2l-") != std::string_view::npos ? 2 : 1;
  how.force = name.find("-fp-") != std::string_view::npos;
  how.version = name.ends_with("simple")      ? LogVersion::simple
                : name.ends_with("optimized") ? LogVersion::optimized
                                              : LogVersion::batch;
  return how;
}

template class Rewind<tm::GlobalLock>;
template class Rewind<tm::Stm>;
template class Rewind<tm::None>;

static_assert(Engine<Rewind<tm::GlobalLock>>);
static_assert(Engine<Rewind<tm::Stm>>);

}  // namespace perdure::papers::rewind
