// SPDX-License-Identifier: BSD-3-Clause
//
// KeyOrder: the order of keys in DRAM that a container of the pool would give them.
//
// Thread safety: its functions change nothing. Errors: std::bad_alloc, and error(invalid) for a
// variant that lost its value to an exception.
#pragma once

#include <cstddef>
#include <memory>

#include "perdure/value/type.hpp"

namespace perdure::value {

class KeyOrder {
 public:
  /// `type` must outlive this object.
  explicit KeyOrder(const Type& type) : type_(type) {}
  /// An object's image.
  [[nodiscard]] std::shared_ptr<const std::byte> image(const void* object) const;
  /// Whether an image is less than an object.
  [[nodiscard]] bool less(const std::byte* image, const void* object) const;
  /// Whether keys of a type, or parts of them, are found by an order of their class.
  [[nodiscard]] static bool own(const Type& type);

 private:
  const Type& type_;
};

}  // namespace perdure::value
