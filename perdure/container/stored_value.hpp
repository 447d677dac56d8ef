// SPDX-License-Identifier: BSD-3-Clause
//
// stored_image<T>, stored_record<T>: a key, value or element that lies in a container as its image,
// and a struct that is a record. stored.hpp says what the members mean.
//
// Both hand their work to the functions of value/, which are compiled once for all types.
// Thread safety: that of the transaction.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "perdure/api/hash.hpp"
#include "perdure/api/layout.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/container/key_bound.hpp"
#include "perdure/value/access.hpp"
#include "perdure/value/image.hpp"
#include "perdure/value/order.hpp"
#include "perdure/value/record.hpp"
#include "perdure/value/type_of.hpp"

namespace perdure::detail {

/// The bytes of a T's image.
template <class T>
struct alignas(value::extent_of<T>().align) image_bytes_of {
  std::byte bytes[std::max<std::size_t>(1, value::extent_of<T>().size)];
};

/// A T as its image.
template <class T>
struct stored_image {
  using raw = image_bytes_of<T>;
  using field = p<raw>;
  using arg = const T&;
  using kept = T;
  /// Hashing again would read the blocks that the key owns.
  static constexpr bool keeps_hash = true;

  template <class Tx>
  static raw make(Tx& tx, arg value) {
    value::WriterOver<Tx> writer(tx);
    raw image{};
    value::encode(writer, type(), &value, image.bytes);
    return image;
  }
  template <class Tx>
  static void drop(Tx& tx, const raw& image) {
    value::WriterOver<Tx> writer(tx);
    value::drop(writer, type(), image.bytes);
  }
  template <class Tx>
  static bool free_some(Tx& tx, field& f, std::uint64_t& blocks) {
    value::WriterOver<Tx> writer(tx);
    return value::free_some(writer, type(), reinterpret_cast<std::byte*>(access::address(f)),
                            blocks);
  }
  template <class Tx>
  static T value(Tx& tx, const raw& image) {
    value::ReaderOver<Tx> reader(tx);
    T out{};
    value::decode(reader, type(), image.bytes, &out);
    return out;
  }
  template <class Tx>
  static T read(Tx& tx, const field& f) {
    return value(tx, tx.read(f));
  }
  template <class Tx>
  static void assign(Tx& tx, field& f, arg value) {
    value::WriterOver<Tx> writer(tx);
    value::assign(writer, type(), reinterpret_cast<std::byte*>(access::address(f)), &value);
  }
  template <class Tx, class F>
  static void change(Tx& tx, field& f, F& by) {
    T value = read(tx, f);
    by(value);
    assign(tx, f, value);
  }
  template <class Tx>
  static bool less(Tx& tx, const field& f, arg key) {
    return compare(tx, f, key) < 0;
  }
  template <class Tx>
  static bool above(Tx& tx, const field& f, arg key) {
    return compare(tx, f, key) > 0;
  }
  template <class Tx>
  static bool equal(Tx& tx, const field& f, arg key) {
    return compare(tx, f, key) == 0;
  }
  template <class Tx>
  static int compare(Tx& tx, const field& f, arg key) {
    value::ReaderOver<Tx> reader(tx);
    const raw image = tx.read(f);
    return value::compare(reader, type(), image.bytes, &key);
  }
  /// The same, of a bound that has a number of parts (key_bound.hpp).
  template <class Tx>
  static bool less(Tx& tx, const field& f, const key_bound<T>& bound) {
    const int found = compare_parts(tx, f, bound);
    return found < 0 || (found == 0 && bound.behind);
  }
  template <class Tx>
  static bool above(Tx& tx, const field& f, const key_bound<T>& bound) {
    const int found = compare_parts(tx, f, bound);
    return found > 0 || (found == 0 && !bound.behind);
  }
  static std::uint64_t hash(arg key) {
    if constexpr (requires { typename perdure::hash<T>::by_its_bytes; })
      return value::hash_of(type(), &key);
    else
      return perdure::hash<T>::of(key);
  }
  template <class Tx, class F>
  static void each_block(Tx& tx, const raw& image, F&& f) {
    value::ReaderOver<Tx> reader(tx);
    value::each_block(reader, type(), image.bytes, [&](const void* block) { f(block); });
  }
  template <class Tx>
  static raw separator(Tx& tx, const raw&, const raw& right) {
    value::WriterOver<Tx> writer(tx);
    raw image = right;
    value::own_blocks(writer, type(), image.bytes);
    return image;
  }
  static std::string name(LayoutNames&) { return value::text_of(type()); }

 private:
  static const value::Type& type() { return value::type_of<T>(); }
  template <class Tx>
  static int compare_parts(Tx& tx, const field& f, const key_bound<T>& bound) {
    value::ReaderOver<Tx> reader(tx);
    const raw image = tx.read(f);
    const auto* const object = reinterpret_cast<const std::byte*>(std::addressof(bound.key));
    for (unsigned i = 0; i < bound.parts; ++i) {
      const value::Part& part = type().parts[i];
      const int found =
          value::compare(reader, *part.type, image.bytes + part.at, object + part.in_object);
      if (found != 0) return found;
    }
    return 0;
  }
};

/// A struct T as a record.
template <class T>
struct stored_record {
  using raw = value::record*;
  using field = ptr<value::record>;
  using arg = const T&;
  using kept = T;

  template <class Tx>
  static raw make(Tx& tx, arg value) {
    value::WriterOver<Tx> writer(tx);
    return value::record::make(writer, type(), &value);
  }
  template <class Tx>
  static void drop(Tx& tx, raw block) {
    value::WriterOver<Tx> writer(tx);
    value::record::drop(writer, type(), block);
  }
  template <class Tx>
  static bool free_some(Tx& tx, field& f, std::uint64_t& blocks) {
    const raw block = tx.read(f);
    if (block == nullptr) return true;
    value::WriterOver<Tx> writer(tx);
    if (!value::record::free_parts(writer, type(), block, blocks) || blocks == 0) return false;
    --blocks;
    tx.free(block);
    tx.write(f, nullptr);
    return true;
  }
  template <class Tx>
  static T value(Tx& tx, raw block) {
    value::ReaderOver<Tx> reader(tx);
    T out{};
    value::record::read(reader, type(), block, &out);
    return out;
  }
  template <class Tx>
  static T read(Tx& tx, const field& f) {
    return value(tx, tx.read(f));
  }
  template <class Tx>
  static void assign(Tx& tx, field& f, arg value) {
    value::WriterOver<Tx> writer(tx);
    value::record* const old = tx.read(f);
    value::record* const now = value::record::assign(writer, type(), old, &value);
    if (now != old) tx.write(f, now);
  }
  template <class Tx, class F>
  static void change(Tx& tx, field& f, F& by) {
    T value = read(tx, f);
    by(value);
    assign(tx, f, value);
  }
  template <class Tx, class F>
  static void each_block(Tx& tx, raw block, F&& f) {
    value::ReaderOver<Tx> reader(tx);
    value::record::each_block(reader, type(), block, [&](const void* one) { f(one); });
  }
  static std::string name(LayoutNames& names) {
    names.note_record(type());
    return "rec<" + value::text_of(type()) + ">";
  }

 private:
  static const value::Type& type() { return value::type_of<T>(); }
};

}  // namespace perdure::detail
