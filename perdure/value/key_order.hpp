// SPDX-License-Identifier: BSD-3-Clause
//
// KeyOrder: compares keys in DRAM by the order that a container in the pool would use.
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
  /// Makes the image of an object.
  [[nodiscard]] std::shared_ptr<const std::byte> image(const void* object) const;
  /// Whether an image is less than an object.
  [[nodiscard]] bool less(const std::byte* image, const void* object) const;
  /// Whether a class with an order of its own orders keys of this type, or parts of them.
  [[nodiscard]] static bool own(const Type& type);

 private:
  const Type& type_;
};

}  // namespace perdure::value
