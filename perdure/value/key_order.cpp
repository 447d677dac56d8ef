// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/key_order.hpp"

#include <algorithm>
#include <set>

#include "perdure/value/image.hpp"
#include "perdure/value/order.hpp"
#include "perdure/value/scratch.hpp"

namespace perdure::value {
namespace {

/// An image with the blocks that it points to.
struct Kept {
  explicit Kept(const Type& type) : bytes(type.size) {}
  Scratch blocks;
  Buffer bytes;
};

}  // namespace

std::shared_ptr<const std::byte> KeyOrder::image(const void* object) const {
  const auto kept = std::make_shared<Kept>(type_);
  encode(kept->blocks, type_, object, kept->bytes.data());
  return {kept, kept->bytes.data()};
}

bool KeyOrder::less(const std::byte* image, const void* object) const {
  Scratch reader;
  return compare(reader, type_, image, object) < 0;
}

bool KeyOrder::own(const Type& type) {
  std::set<const Type*> seen;  // a struct may hold itself in a sequence
  const auto find = [&](const auto& self, const Type& one) -> bool {
    if (!seen.insert(&one).second) return false;
    if (one.operations != nullptr && one.operations->order != nullptr) return true;
    return std::any_of(one.parts.begin(), one.parts.end(),
                       [&](const Part& part) { return self(self, *part.type); });
  };
  return find(find, type);
}

}  // namespace perdure::value
