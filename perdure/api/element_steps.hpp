// SPDX-License-Identifier: BSD-3-Clause
//
// ElementSteps: makes the elements of a new container from those of the container that it replaces,
// in DRAM.
//
// An element goes through the step that is declared for exactly these two types, or else through a
// chain of steps (row_steps.hpp), or is converted without a step. perdure/evolve has the code.
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
  /// Takes those steps of `all` that are for the field `path`. They must outlive this object.
  ElementSteps(const std::vector<MigrationStep>& all, std::string_view path,
               const value::Type& from, const value::Type& to);

  /// Whether the field's steps are wrong: there are some, none of them leads from one type to the
  /// other, and either a step is needed or one of them reads such an element or a part of it. Steps
  /// for earlier versions alone are not wrong.
  [[nodiscard]] bool fit_nothing() const;
  /// Whether steps make the new elements.
  [[nodiscard]] bool lead_by_steps() const noexcept { return direct_ != nullptr || chained_; }
  /// Whether the new elements can be made. Adds to `lost` the fields that one of the steps reads
  /// although its perdure_removed lists them.
  [[nodiscard]] bool lead(std::vector<std::string>& lost) const;
  /// The changes between the two types, with and without a need for a step.
  [[nodiscard]] const value::Comparison& changes() const noexcept { return *changes_; }
  /// Gives a value-initialised object of type `to` the value of one of type `from`. REQUIRES:
  /// lead().
  void make(const void* from, void* to) const;

 private:
  const value::Type &from_, &to_;
  RowSteps steps_;
  const MigrationStep* direct_ = nullptr;  ///< the step for exactly these two types
  bool chained_ = false;                   ///< several steps lead from one to the other
  std::vector<std::string> chain_lost_;    ///< what lead() adds to `lost` for these steps
  std::shared_ptr<const value::Comparison> changes_;
};

}  // namespace detail
}  // namespace perdure
