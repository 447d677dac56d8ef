// SPDX-License-Identifier: BSD-3-Clause
//
// Loader: hashes, orders and copies keys by their layouts, as perdure/api/hash.hpp, value/order.hpp
// and value/image.hpp do by their types.
#include <algorithm>
#include <set>

#include "perdure/api/hash.hpp"
#include "perdure/base/checksum.hpp"
#include "perdure/inspect/load.hpp"
#include "perdure/inspect/load_entries.hpp"

namespace perdure::inspect {
namespace {

std::uint64_t with(std::uint64_t hash, std::uint64_t more) {
  return base::mix(hash * 0x9e3779b97f4a7c15ULL + more);
}

std::uint64_t integer(const Layout& type, const std::byte* image) {
  std::uint64_t value = 0;
  std::memcpy(&value, image, type.size);
  if (type.number != value::Number::signed_integer) return value;
  const unsigned unused = static_cast<unsigned>(64 - 8 * type.size);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
}

template <class F>
F floating(const std::byte* image) {
  F value;
  std::memcpy(&value, image, sizeof value);
  return value;
}

/// Calls f(type, place) for each text and sequence of an image that has a block.
template <class F>
void each_block_of(const Layout& type, std::byte* image, F&& f) {
  if (!type.leads) return;
  switch (type.kind) {
    case Kind::text:
    case Kind::sequence:
      if (word_at(image) != 0) f(type, image);
      return;
    case Kind::optional:
      if (*image != std::byte{0}) each_block_of(type.element(), image + type.parts.front().at, f);
      return;
    case Kind::variant: {
      const Member& part = type.parts[std::to_integer<std::size_t>(*image)];
      return each_block_of(*part.type, image + part.at, f);
    }
    case Kind::array:
      for (std::uint64_t i = 0; i < type.count; ++i)
        each_block_of(type.element(), image + i * type.element().size, f);
      return;
    case Kind::structure:
      for (const Member& part : type.parts) each_block_of(*part.type, image + part.at, f);
      return;
    default: return;
  }
}

}  // namespace

std::string Loader::stored_text(const std::byte* image) {
  const Address block = word_at(image);
  if (block == 0) return {};
  std::uint32_t n = 0;
  store_.read(&n, block, sizeof n);
  std::string text(n, '\0');
  store_.read(text.data(), block + 8, n);
  return text;
}

void Loader::own_blocks(const Layout& key, std::byte* image) {
  each_block_of(key, image, [&](const Layout& type, std::byte* place) {
    const Address from = word_at(place);
    std::uint32_t head[2];
    store_.read(head, from, sizeof head);
    const bool text = type.kind == Kind::text;
    const std::uint64_t element = text ? 1 : stride(type.element());
    std::vector<std::byte> bytes((8 + head[0] * element + 15) & ~std::uint64_t{15});
    store_.read(bytes.data(), from, 8 + head[0] * element);
    const auto capacity = static_cast<std::uint32_t>((bytes.size() - 8) / element);
    std::memcpy(bytes.data() + 4, &capacity, sizeof capacity);
    for (std::uint32_t i = 0; !text && i < head[0]; ++i)
      own_blocks(type.element(), bytes.data() + 8 + i * element);
    put(place, store_.add(bytes.data(), bytes.size()));
  });
}

std::uint64_t Loader::hash(const Layout& map, const std::byte* key) {
  const Layout& type = map.element();
  if (map.keeps_hash) return part_hash(type, key);
  const bool number = type.kind == Kind::scalar && type.size <= 8;
  if (number && type.number == value::Number::floating)
    return type.size == 4 ? perdure::hash<float>::of(floating<float>(key))
                          : perdure::hash<double>::of(floating<double>(key));
  // A time is a class in C++, so its bytes are hashed.
  if (number && type.meaning != Meaning::time && type.meaning != Meaning::local &&
      type.meaning != Meaning::span)
    return base::mix(integer(type, key));
  if (type.kind == Kind::pointer) return base::mix(word_at(key));
  return base::hash_bytes(key, type.size, 0);
}

std::uint64_t Loader::part_hash(const Layout& type, const std::byte* image) {
  std::uint64_t hash = 0;
  switch (type.kind) {
    case Kind::scalar:
      if (type.number != value::Number::floating) return base::mix(integer(type, image));
      return perdure::hash<double>::of(type.size == 4 ? static_cast<double>(floating<float>(image))
                                                      : floating<double>(image));
    case Kind::text: return perdure::hash<std::string_view>::of(stored_text(image));
    case Kind::sequence: {
      const Address block = word_at(image);
      std::uint32_t n = 0;
      if (block != 0) store_.read(&n, block, sizeof n);
      std::vector<std::byte> one(type.element().size);
      for (std::uint32_t i = 0; i < n; ++i) {
        store_.read(one.data(), block + 8 + i * one.size(), one.size());
        hash = with(hash, part_hash(type.element(), one.data()));
      }
      return with(hash, n);
    }
    case Kind::optional:
      if (*image != std::byte{0})
        hash = with(hash, part_hash(type.element(), image + type.parts.front().at));
      return base::mix(hash);
    case Kind::variant: {
      const auto index = std::to_integer<std::size_t>(*image);
      const Member& part = type.parts[index];
      return with(with(hash, part_hash(*part.type, image + part.at)), index);
    }
    case Kind::array:
      for (std::uint64_t i = 0; i < type.count; ++i)
        hash = with(hash, part_hash(type.element(), image + i * type.element().size));
      return hash;
    case Kind::structure:
      for (const Member& part : type.parts)
        hash = with(hash, part_hash(*part.type, image + part.at));
      return hash;
    default: return base::hash_bytes(image, type.size, 0);
  }
}

namespace {

bool sorts(const Layout& key, std::set<const Layout*>& seen) {
  if (key.own_order) return false;
  if (!seen.insert(&key).second) return true;  // a struct within itself
  switch (key.kind) {
    case Kind::scalar: return key.size <= 8 || key.number != value::Number::floating;
    case Kind::text: return true;
    case Kind::sequence:
    case Kind::optional:
    case Kind::array:
    case Kind::variant:
    case Kind::structure:
      return std::all_of(key.parts.begin(), key.parts.end(),
                         [&](const Member& part) { return sorts(*part.type, seen); });
    default: return false;
  }
}

}  // namespace

bool sorts(const Layout& key) {
  std::set<const Layout*> seen;
  return sorts(key, seen);
}

std::string sort_key(const Layout& key, const std::byte* image, value::Reader& reader) {
  std::string out;
  const auto part = [&](const Layout& type, const std::byte* at) {
    out += sort_key(type, at, reader);
  };
  switch (key.kind) {
    case Kind::scalar: {
      // Big-endian. The upper bit of signed numbers and of positive floating point is inverted, and
      // all bits of negative floating point. NaN is above all others.
      std::vector<unsigned char> bytes(key.size);
      for (std::uint64_t i = 0; i < key.size; ++i)
        bytes[key.size - 1 - i] = std::to_integer<unsigned char>(image[i]);
      if (key.number == value::Number::signed_integer) bytes[0] ^= 0x80;
      if (key.number == value::Number::floating) {
        const double number =
            key.size == 4 ? static_cast<double>(floating<float>(image)) : floating<double>(image);
        if (number != number)
          bytes.assign(key.size, 0xff);
        else if (number == 0)
          bytes.assign(key.size, 0), bytes[0] = 0x80;
        else if (number > 0)
          bytes[0] ^= 0x80;
        else
          for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(~byte);
      }
      out.append(bytes.begin(), bytes.end());
      break;
    }
    case Kind::text: {
      // A zero byte becomes 00 ff, and the end is 00 00, so that a text is below all longer texts
      // that begin with it.
      const auto* const block = reinterpret_cast<const std::byte*>(word_at(image));
      std::uint32_t n = 0;
      if (block != nullptr) reader.read_bytes(&n, block, sizeof n);
      std::string text(n, '\0');
      if (n != 0) reader.read_bytes(text.data(), block + 8, n);
      for (const char c : text) {
        out += c;
        if (c == '\0') out += '\xff';
      }
      out.append(2, '\0');
      break;
    }
    case Kind::sequence: {
      const auto* const block = reinterpret_cast<const std::byte*>(word_at(image));
      std::uint32_t n = 0;
      if (block != nullptr) reader.read_bytes(&n, block, sizeof n);
      std::vector<std::byte> one(key.element().size);
      for (std::uint32_t i = 0; i < n; ++i) {
        reader.read_bytes(one.data(), block + 8 + i * one.size(), one.size());
        out += '\1';
        part(key.element(), one.data());
      }
      out += '\0';
      break;
    }
    case Kind::optional:
      out += *image == std::byte{0} ? '\0' : '\1';
      if (*image != std::byte{0}) part(key.element(), image + key.parts.front().at);
      break;
    case Kind::variant: {
      const Member& held = key.parts[std::to_integer<std::size_t>(*image)];
      out += static_cast<char>(*image);
      part(*held.type, image + held.at);
      break;
    }
    case Kind::array:
      for (std::uint64_t i = 0; i < key.count; ++i)
        part(key.element(), image + i * key.element().size);
      break;
    default:
      for (const Member& member : key.parts) part(*member.type, image + member.at);
      break;
  }
  if (key.reversed)
    for (char& c : out) c = static_cast<char>(~c);
  return out;
}

}  // namespace perdure::inspect
