// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/convert.hpp"

#include <cstring>

#include "perdure/base/status.hpp"
#include "perdure/value/image.hpp"
#include "perdure/value/sequence.hpp"

namespace perdure::value {
namespace {

std::byte* part_of(void* object, std::size_t at) { return static_cast<std::byte*>(object) + at; }

}  // namespace

void widen(Number kind, const std::byte* from, std::size_t bytes, void* to,
           std::size_t to_bytes) noexcept {
  if (kind == Number::floating) {
    float value = 0;
    std::memcpy(&value, from, sizeof value);
    const double wide = value;
    std::memcpy(to, &wide, sizeof wide);
    return;
  }
  const bool negative =
      kind == Number::signed_integer && (std::to_integer<unsigned>(from[bytes - 1]) & 0x80U) != 0;
  std::memset(to, negative ? 0xff : 0, to_bytes);
  std::memcpy(to, from, bytes);
}

void convert(Reader& tx, const Conversion& by, const std::byte* image, void* object) {
  using How = Conversion::How;
  switch (by.how) {
    case How::left_out: return;
    case How::same: return decode(tx, *by.to, image, object);
    case How::number: return widen(by.from->number, image, by.from->size, object, by.to->size);
    case How::sequence: {
      const sequence* block = nullptr;
      std::memcpy(&block, image, sizeof block);
      const sequence head = sequence::header(tx, block);
      const Type &old = by.from->element(), &now = by.to->element();
      if (block != nullptr) tx.expect(block->images(), std::size_t{head.count} * old.size);
      // Removes the elements that an initialiser made: the pool's take their place.
      by.to->operations->make(object, 0);
      void* const to = by.to->operations->make(object, head.count);
      std::size_t i = 0;
      sequence::each_image(tx, old, block, [&](const std::byte* one) {
        convert(tx, *by.parts.front().by, one, part_of(to, i++ * now.object_bytes));
        return true;
      });
      return;
    }
    case How::optional:
      by.to->operations->make(object, 0);
      if (*image == std::byte{0}) return;
      return convert(tx, *by.parts.front().by, image + by.parts.front().from_at,
                     by.to->operations->make(object, 1));
    case How::into_optional:
      by.to->operations->make(object, 0);  // removes what an initialiser put there
      return convert(tx, *by.parts.front().by, image, by.to->operations->make(object, 1));
    case How::variant: {
      const auto index = std::to_integer<std::size_t>(*image);
      if (index >= by.parts.size())
        throw error(Status(Code::corrupt, "perdure: found alternative " + std::to_string(index) +
                                              " of a variant that has " +
                                              std::to_string(by.parts.size()) +
                                              ": the pool's data is damaged"));
      return convert(tx, *by.parts[index].by, image + by.parts[index].from_at,
                     by.to->operations->make(object, index));
    }
    case How::array:
      for (std::size_t i = 0; i < by.from->count; ++i)
        convert(tx, *by.parts.front().by, image + i * by.from->element().size,
                part_of(object, i * by.to->element().object_bytes));
      return;
    case How::structure:
      for (const Conversion::Step& one : by.parts)
        convert(tx, *one.by, image + one.from_at, part_of(object, one.to_at));
      return;
  }
}

}  // namespace perdure::value
