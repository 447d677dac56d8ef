// SPDX-License-Identifier: BSD-3-Clause
//
// ElementSteps: how elements of one container become those of the one that replaces it, in DRAM.
//
// They go through the step that reads and makes exactly these, or else through a chain of steps
// (row_steps.hpp), or become the new ones by themselves. perdure/evolve has the code.
// Thread safety: none; an object belongs to one call. Errors: those of the steps, std::bad_alloc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/api/migrate.hpp"
#include "perdure/api/row_steps.hpp"

namespace perdure {

namespace value {
class Comparison;
}

namespace detail {

class ElementSteps {
 public:
  /// Those of `all` that are for the field `path`. They must outlive this object.
  ElementSteps(const std::vector<MigrationStep>& all, std::string_view path,
               const value::Type& from, const value::Type& to);

  /// Whether there are steps for the field, and none of them leads from one type to the other,
  /// although one is needed, or one reads such an element or a part of it: steps of earlier
  /// versions may stay.
  [[nodiscard]] bool fit_nothing() const;
  /// Whether steps make the new elements.
  [[nodiscard]] bool lead_by_steps() const noexcept { return direct_ != nullptr || chained_; }
  /// Whether elements become the new ones. Adds to `lost` the fields that a step of the way reads,
  /// and that its perdure_removed gives up.
  [[nodiscard]] bool lead(std::vector<std::string>& lost) const;
  /// What changes between the two by itself, or would have to.
  [[nodiscard]] const value::Comparison& changes() const noexcept { return *changes_; }
  /// Gives a value-initialised object of type `to` the value of one of type `from`. REQUIRES:
  /// lead().
  void make(const void* from, void* to) const;

 private:
  const value::Type &from_, &to_;
  RowSteps steps_;
  const MigrationStep* direct_ = nullptr;  ///< reads and makes exactly these
  bool chained_ = false;                   ///< several steps lead from one to the other
  std::vector<std::string> chain_lost_;    ///< what those give up
  std::shared_ptr<const value::Comparison> changes_;
};

}  // namespace detail
}  // namespace perdure
