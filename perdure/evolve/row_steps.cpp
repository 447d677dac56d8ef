// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/api/row_steps.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>

#include "perdure/api/plan.hpp"
#include "perdure/value/convert.hpp"
#include "perdure/value/parse.hpp"
#include "perdure/value/record.hpp"
#include "perdure/value/scratch.hpp"
#include "perdure/value/shapes.hpp"
#include "perdure/value/type.hpp"

namespace perdure::detail {
namespace {

using value::Need;
using value::Type;

bool by_itself(const Type& from, const Type& to) {
  return from.shape == to.shape || value::compare(from, to).need() == Need::nothing;
}

}  // namespace

RowSteps::RowSteps(const std::vector<MigrationStep>& all, std::string_view table) {
  for (const MigrationStep& one : all)
    if (one.table == table) steps_.push_back(&one);
}

// The next step for rows of type `from`. Null if none is needed, or none leads on.
const MigrationStep* RowSteps::next(const Type& from, const Type& to) const {
  if (from.shape == to.shape) return nullptr;
  for (const MigrationStep* one : steps_)
    if (one->before->shape == from.shape) return one;
  if (by_itself(from, to)) return nullptr;
  const auto found = std::find_if(steps_.rbegin(), steps_.rend(), [&](const MigrationStep* one) {
    return by_itself(from, *one->before);
  });
  return found == steps_.rend() ? nullptr : *found;
}

bool RowSteps::read(const Type& type) const {
  const std::string text = value::text_of(type);
  return std::any_of(steps_.begin(), steps_.end(), [&](const MigrationStep* one) {
    return value::text_of(*one->before) == text;
  });
}

bool RowSteps::lead(const Type& from, const Type& to, std::vector<std::string>& lost) const {
  const Type* at = &from;
  for (std::size_t n = 0; n <= steps_.size(); ++n) {
    const MigrationStep* const one = next(*at, to);
    if (one == nullptr) return n != 0 && by_itself(*at, to);
    given_up(*one->before, *one->now, lost);
    at = one->now;
  }
  return false;  // the steps lead in a circle
}

std::vector<std::pair<std::string, std::string>> RowSteps::unfit(
    const std::vector<std::string>& layouts, const Type& to) const {
  const std::string wanted = value::text_of(to);
  const auto newest = value::parse(layouts.front());
  const bool newest_by_steps =
      layouts.front() == wanted || !newest.ok() || next(newest->type(), to) != nullptr;
  std::vector<std::pair<std::string, std::string>> unfit;
  for (const MigrationStep* one : steps_) {
    const std::string before = value::text_of(*one->before), now = value::text_of(*one->now);
    std::vector<std::string> lost;
    const bool reads_some = std::find(layouts.begin(), layouts.end(), before) != layouts.end();
    if (reads_some ? before != wanted && !lead(*one->before, to, lost)
                   : !newest_by_steps && now == wanted)
      unfit.emplace_back(before, now);
  }
  return unfit;
}

bool RowSteps::passes_over(const Type& from, const Type& to) const {
  return from.shape != to.shape && next(from, to) == nullptr && by_itself(from, to);
}

void RowSteps::given_up(const Type& before, const Type& now, std::vector<std::string>& lost) {
  for (const value::Part& part : before.parts)
    if (std::find(now.removed.begin(), now.removed.end(), part.name) != now.removed.end())
      lost.emplace_back(part.name);
}

bool RowSteps::needed(value::Reader& tx, const Type& type, const value::record* from) const {
  std::uint64_t shape = 0;
  tx.read_bytes(&shape, from, sizeof shape);
  if (shape == type.shape || steps_.empty()) return false;
  return value::shapes::find(shape) != nullptr;  // an unknown one is refused when it is read
}

void RowSteps::read(value::Reader& tx, const Type& type, const value::record* from,
                    void* object) const {
  if (!needed(tx, type, from)) return value::record::read(tx, type, from, object);
  std::uint64_t shape = 0;
  tx.read_bytes(&shape, from, sizeof shape);
  const Type* at = value::shapes::find(shape);
  std::unique_ptr<value::Scratch> scratch;
  value::Reader* reader = &tx;
  // The steps may lead in a circle for a layout for which lead() was not called.
  std::size_t n = 0;
  for (const MigrationStep* one = next(*at, type); one != nullptr; one = next(*at, type)) {
    if (++n > steps_.size())
      throw error(Status(Code::incompatible, "perdure: the steps of a table lead in a circle"));
    const std::shared_ptr<void> before = one->make_before(), now = one->make_now();
    value::record::read(*reader, *one->before, from, before.get());
    value::record::read_for_step(*reader, *one->now, from, now.get());
    one->apply(before.get(), now.get());
    auto made = std::make_unique<value::Scratch>();
    from = value::record::make(*made, *one->now, now.get());
    scratch = std::move(made);
    reader = scratch.get();
    at = one->now;
  }
  value::record::read(*reader, type, from, object);
}

Status add_shapes(const std::vector<MigrationStep>& steps) {
  for (const MigrationStep& one : steps)
    for (const Type* type : {one.before, one.now})
      if (type->kind != value::Kind::structure)
        continue;
      else if (Status s = value::shapes::add(value::text_of(*type)); !s.ok())
        return s;
  return {};
}

}  // namespace perdure::detail
