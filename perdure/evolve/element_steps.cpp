// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/api/element_steps.hpp"

#include <algorithm>

#include "perdure/value/convert.hpp"
#include "perdure/value/image.hpp"
#include "perdure/value/record.hpp"
#include "perdure/value/scratch.hpp"
#include "perdure/value/shapes.hpp"

namespace perdure::detail {

ElementSteps::ElementSteps(const std::vector<MigrationStep>& all, std::string_view path,
                           const value::Type& from, const value::Type& to)
    : from_(from),
      to_(to),
      steps_(all, path),
      changes_(std::make_shared<const value::Comparison>(value::compare(from, to))) {
  const std::string before = value::text_of(from), now = value::text_of(to);
  for (const MigrationStep& one : all) {
    if (one.table == path && value::text_of(*one.before) == before &&
        value::text_of(*one.now) == now)
      direct_ = &one;
  }
  if (from.kind == value::Kind::structure) value::shapes::add(before).or_throw();
  chained_ = direct_ == nullptr && from.kind == value::Kind::structure &&
             to.kind == value::Kind::structure && steps_.lead(from, to, chain_lost_);
}

bool ElementSteps::fit_nothing() const {
  if (steps_.empty() || lead_by_steps()) return false;
  if (changes_->need() != value::Need::nothing) return true;
  if (steps_.read(from_)) return true;
  return std::any_of(from_.parts.begin(), from_.parts.end(),
                     [&](const value::Part& part) { return steps_.read(*part.type); });
}

bool ElementSteps::lead(std::vector<std::string>& lost) const {
  if (direct_ == nullptr) {
    lost.insert(lost.end(), chain_lost_.begin(), chain_lost_.end());
    return chained_ || changes_->need() == value::Need::nothing;
  }
  RowSteps::given_up(*direct_->before, *direct_->now, lost);
  // In a map's element, also the fields of its key and value.
  for (std::size_t i = 0; i < std::min(from_.parts.size(), to_.parts.size()); ++i)
    if (from_.parts[i].name == "first" || from_.parts[i].name == "second")
      RowSteps::given_up(*from_.parts[i].type, *to_.parts[i].type, lost);
  return true;
}

void ElementSteps::make(const void* from, void* to) const {
  value::Scratch scratch;
  if (chained_) {
    steps_.read(scratch, to_, value::record::make(scratch, from_, from), to);
    return;
  }
  value::Buffer image(from_.size);
  value::encode(scratch, from_, from, image.data());
  value::convert(scratch, changes_->conversion(), image.data(), to);
  if (direct_ != nullptr) direct_->apply(from, to);
}

}  // namespace perdure::detail
