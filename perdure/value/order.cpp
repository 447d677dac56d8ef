// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/order.hpp"

#include <cstring>
#include <string>
#include <string_view>

#include "perdure/api/hash.hpp"
#include "perdure/base/checksum.hpp"
#include "perdure/value/image.hpp"
#include "perdure/value/sequence.hpp"
#include "perdure/value/text_block.hpp"

namespace perdure::value {
namespace {

template <class T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

int compare_floating(double a, double b) {
  return number_less(a, b) ? -1 : number_less(b, a) ? 1 : 0;
}

template <class T>
T read_as(const void* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::uint64_t unsigned_value(const void* bytes, std::uint32_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, size);  // little endian, as all pools
  return value;
}
std::int64_t signed_value(const void* bytes, std::uint32_t size) {
  const unsigned unused = 64 - 8 * size;
  return static_cast<std::int64_t>(unsigned_value(bytes, size) << unused) >> unused;
}
double floating_value(const void* bytes, std::uint32_t size) {
  return size == sizeof(float) ? static_cast<double>(read_as<float>(bytes))
                               : read_as<double>(bytes);
}

int compare_scalars(const Type& type, const std::byte* image, const void* object) {
  switch (type.number) {
    case Number::unsigned_integer:
      return three_way(unsigned_value(image, type.size), unsigned_value(object, type.size));
    case Number::signed_integer:
      return three_way(signed_value(image, type.size), signed_value(object, type.size));
    case Number::floating:
      return compare_floating(floating_value(image, type.size), floating_value(object, type.size));
    case Number::opaque: break;
  }
  return std::memcmp(image, object, type.size);
}

int compare_sequences(Reader& tx, const Type& type, const std::byte* image, const void* object) {
  const auto* const block = read_as<const sequence*>(image);
  const Type& element = type.element();
  const std::size_t theirs = type.operations->count(object);
  const auto* other = static_cast<const std::byte*>(type.operations->get(object));
  int found = 0;
  std::size_t left = theirs;
  sequence::each_image(tx, element, block, [&](const std::byte* one) {
    if (left == 0) return false;
    found = compare(tx, element, one, other);
    other += element.object_bytes;
    --left;
    return found == 0;
  });
  return found != 0 ? found : three_way<std::size_t>(sequence::header(tx, block).count, theirs);
}

std::uint64_t with(std::uint64_t hash, std::uint64_t more) {
  return base::mix(hash * 0x9e3779b97f4a7c15ULL + more);
}

int compare_forwards(Reader& tx, const Type& type, const std::byte* image, const void* object) {
  if (type.operations->order != nullptr) return type.operations->order(tx, type, image, object);
  const auto* const other = static_cast<const std::byte*>(object);
  switch (type.kind) {
    case Kind::scalar: return compare_scalars(type, image, object);
    case Kind::text:
      return text_block::compare(tx, read_as<const text_block*>(image),
                                 *static_cast<const std::string*>(object));
    case Kind::sequence: return compare_sequences(tx, type, image, object);
    case Kind::optional: {
      const void* const some = type.operations->get(object);
      if (*image == std::byte{0} || some == nullptr)
        return three_way<int>(*image != std::byte{0} ? 1 : 0, some != nullptr ? 1 : 0);
      return compare(tx, type.element(), image + type.parts.front().at, some);
    }
    case Kind::variant: {
      const auto mine = std::to_integer<std::size_t>(*image);
      const std::size_t theirs = type.operations->count(object);
      if (mine != theirs || mine >= type.parts.size()) return three_way(mine, theirs);
      const Part& part = type.parts[mine];
      return compare(tx, *part.type, image + part.at, type.operations->get(object));
    }
    case Kind::array:
      for (std::size_t i = 0; i < type.count; ++i) {
        if (const int found = compare(tx, type.element(), image + i * type.element().size,
                                      other + i * type.element().object_bytes);
            found != 0)
          return found;
      }
      return 0;
    case Kind::structure:
      for (const Part& part : type.parts) {
        if (const int found = compare(tx, *part.type, image + part.at, other + part.in_object);
            found != 0)
          return found;
      }
      return 0;
  }
  return 0;
}

}  // namespace

int compare(Reader& tx, const Type& type, const std::byte* image, const void* object) {
  const int found = compare_forwards(tx, type, image, object);
  return type.reversed ? (found < 0 ? 1 : found > 0 ? -1 : 0) : found;
}

bool same(const Type& type, const void* a, const void* b) {
  const auto *const x = static_cast<const std::byte*>(a), *const y =
                                                              static_cast<const std::byte*>(b);
  switch (type.kind) {
    case Kind::scalar: return compare_scalars(type, x, y) == 0;
    case Kind::text:
      return *static_cast<const std::string*>(a) == *static_cast<const std::string*>(b);
    case Kind::sequence:
    case Kind::optional:
    case Kind::variant: {
      const std::size_t n = type.operations->count(a);
      if (n != type.operations->count(b)) return false;
      const auto* one = static_cast<const std::byte*>(type.operations->get(a));
      const auto* other = static_cast<const std::byte*>(type.operations->get(b));
      if (type.kind == Kind::variant)
        return n >= type.parts.size() || same(*type.parts[n].type, one, other);
      const Type& element = type.element();
      for (std::size_t i = 0; i < n; ++i) {
        if (!same(element, one + i * element.object_bytes, other + i * element.object_bytes))
          return false;
      }
      return true;
    }
    case Kind::array:
      for (std::size_t i = 0; i < type.count; ++i) {
        const std::size_t at = i * type.element().object_bytes;
        if (!same(type.element(), x + at, y + at)) return false;
      }
      return true;
    case Kind::structure:
      for (const Part& part : type.parts) {
        if (!same(*part.type, x + part.in_object, y + part.in_object)) return false;
      }
      return true;
  }
  return true;
}

std::uint64_t hash_of(const Type& type, const void* object) {
  if (type.operations->hash != nullptr) return type.operations->hash(object);
  const auto* const bytes = static_cast<const std::byte*>(object);
  std::uint64_t hash = 0;
  switch (type.kind) {
    case Kind::scalar:
      switch (type.number) {
        case Number::unsigned_integer: return base::mix(unsigned_value(object, type.size));
        case Number::signed_integer:
          return base::mix(static_cast<std::uint64_t>(signed_value(object, type.size)));
        case Number::floating: return perdure::hash<double>::of(floating_value(object, type.size));
        case Number::opaque: return base::hash_bytes(object, type.size, 0);
      }
      break;
    case Kind::text:
      return perdure::hash<std::string_view>::of(*static_cast<const std::string*>(object));
    case Kind::sequence: {
      const std::size_t n = type.operations->count(object);
      const auto* at = static_cast<const std::byte*>(type.operations->get(object));
      for (std::size_t i = 0; i < n; ++i, at += type.element().object_bytes)
        hash = with(hash, hash_of(type.element(), at));
      return with(hash, n);
    }
    case Kind::optional:
      if (const void* const some = type.operations->get(object))
        hash = with(hash, hash_of(type.element(), some));
      return base::mix(hash);
    case Kind::variant: {
      const std::size_t index = type.operations->count(object);
      if (index < type.parts.size())
        hash = with(hash, hash_of(*type.parts[index].type, type.operations->get(object)));
      return with(hash, index);
    }
    case Kind::array:
      for (std::size_t i = 0; i < type.count; ++i)
        hash = with(hash, hash_of(type.element(), bytes + i * type.element().object_bytes));
      return hash;
    case Kind::structure:
      for (const Part& part : type.parts)
        hash = with(hash, hash_of(*part.type, bytes + part.in_object));
      return hash;
  }
  return hash;
}

}  // namespace perdure::value
