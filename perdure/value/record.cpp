// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/record.hpp"

#include <array>
#include <cstring>

#include "perdure/base/status.hpp"
#include "perdure/value/convert.hpp"
#include "perdure/value/image.hpp"
#include "perdure/value/late.hpp"
#include "perdure/value/shapes.hpp"

namespace perdure::value {
namespace {

/// The type of a record: `type`, or that of an earlier version of the program. Throws
/// error(corrupt) if the shape is unknown.
const Type& layout_in(Reader& tx, const Type& type, const record* from) {
  std::uint64_t shape = 0;
  tx.read_bytes(&shape, from, sizeof shape);
  if (__builtin_expect(shape == type.shape, 1)) return type;
  if (const Type* const before = shapes::find(shape)) {
    tx.expect(from->image(), before->size);
    return *before;
  }
  throw error(Status(Code::corrupt,
                     "perdure: found a value that was written with another layout than " +
                         text_of(type) +
                         ": the pool's data is damaged, or a program wrote it that declares the "
                         "container with another struct"));
}

/// How to read an earlier version's value as one of type `now`. Throws error(incompatible) if that
/// is not possible.
const Conversion& conversion(const Type& before, const Type& now) {
  const Comparison& changes = shapes::between(before, now);
  if (changes.need() != Need::nothing) {
    throw error(Status(Code::incompatible,
                       "perdure: found a value of another version of the program, which this one "
                       "can't read:\n" +
                           changes.lines(Need::step)));
  }
  return changes.conversion();
}

/// Makes a block of N words and an object's image.
template <std::size_t N>
std::byte* store(Writer& tx, const std::array<std::uint64_t, N>& head, const Type& type,
                 const void* object) {
  Buffer bytes(sizeof head + type.size);
  std::memcpy(bytes.data(), head.data(), sizeof head);
  encode(tx, type, object, bytes.data() + sizeof head);
  std::byte* const block = tx.alloc(sizeof head + type.size);
  tx.write_bytes(block, bytes.data(), sizeof head + type.size);
  return block;
}

}  // namespace

record* record::make(Writer& tx, const Type& type, const void* object) try {
  return reinterpret_cast<record*>(store<1>(tx, {type.shape}, type, object));
} catch (...) {  // a part of it may be done
  tx.keep_refusal();
  throw;
}

std::byte* record::make_behind(Writer& tx, std::uint64_t word, const Type& type,
                               const void* object) try {
  return store<2>(tx, {word, type.shape}, type, object);
} catch (...) {  // a part of it may be done
  tx.keep_refusal();
  throw;
}

bool record::read_part(Reader& tx, const Type& type, const record* from, const Part& part,
                       void* image) {
  if (&layout_in(tx, type, from) != &type) return false;
  tx.read_bytes(image, from->image() + part.at, part.type->size);
  return true;
}

void record::read(Reader& tx, const Type& type, const record* from, void* object) {
  const Type& lies = layout_in(tx, type, from);
  // A step may add to what would be converted without it: it comes first, whatever differs.
  if (__builtin_expect(&lies != &type, 0))
    if (const auto make = late::find(from, type); make != nullptr && (*make)(tx, from, object))
      return;
  Buffer image(lies.size);
  tx.read_bytes(image.data(), from->image(), lies.size);
  if (&lies == &type)
    decode(tx, type, image.data(), object);
  else
    convert(tx, conversion(lies, type), image.data(), object);
}

void record::read_for_step(Reader& tx, const Type& type, const record* from, void* object) {
  const Type& lies = layout_in(tx, type, from);
  if (&lies == &type) return read(tx, type, from, object);
  Buffer image(lies.size);
  tx.read_bytes(image.data(), from->image(), lies.size);
  convert(tx, shapes::between(lies, type).conversion(), image.data(), object);
}

bool record::is_of(Reader& tx, const Type& type, const record* from) {
  return &layout_in(tx, type, from) == &type;
}

bool record::has_part(Reader& tx, const Type& type, const record* from, const Part& part) {
  const Type& lies = layout_in(tx, type, from);
  if (&lies == &type) return true;
  for (const Conversion::Step& step : shapes::between(lies, type).conversion().parts)
    if (step.to_at == part.in_object) return text_of(*step.by->from) == text_of(*part.type);
  return false;
}

record* record::assign(Writer& tx, const Type& type, record* to, const void* object) try {
  if (&layout_in(tx, type, to) == &type) {
    value::assign(tx, type, to->image(), object);
    return to;
  }
  record* const now = make(tx, type, object);
  drop(tx, type, to);
  return now;
} catch (...) {  // a part of it may be done
  tx.keep_refusal();
  throw;
}

std::byte* record::assign_behind(Writer& tx, const Type& type, std::byte* block,
                                 const void* object) try {
  auto* const old = reinterpret_cast<record*>(block + sizeof(std::uint64_t));
  if (&layout_in(tx, type, old) == &type) {
    value::assign(tx, type, old->image(), object);
    return block;
  }
  std::uint64_t word = 0;
  tx.read_bytes(&word, block, sizeof word);
  std::byte* const now = make_behind(tx, word, type, object);
  drop_parts(tx, type, old);
  tx.free(block);
  return now;
} catch (...) {  // a part of it may be done
  tx.keep_refusal();
  throw;
}

void record::drop(Writer& tx, const Type& type, record* block) try {
  if (block == nullptr) return;
  drop_parts(tx, type, block);
  tx.free(block);
} catch (...) {  // a part of it may be done
  tx.keep_refusal();
  throw;
}

void record::drop_parts(Writer& tx, const Type& type, const record* from) try {
  const Type& lies = layout_in(tx, type, from);
  if (!lies.owns) return;
  Buffer image(lies.size);
  tx.read_bytes(image.data(), from->image(), lies.size);
  value::drop(tx, lies, image.data());
} catch (...) {  // a part of it may be done
  tx.keep_refusal();
  throw;
}

bool record::free_parts(Writer& tx, const Type& type, record* block, std::uint64_t& blocks) try {
  const Type& lies = layout_in(tx, type, block);
  return free_some(tx, lies, block->image(), blocks);
} catch (...) {  // a part of it may be done
  tx.keep_refusal();
  throw;
}

void record::each_block(Reader& tx, const Type& type, const record* block,
                        const std::function<void(const void*)>& f) {
  if (block == nullptr) return;
  f(block);
  each_part_block(tx, type, block, f);
}

void record::each_part_block(Reader& tx, const Type& type, const record* from,
                             const std::function<void(const void*)>& f) {
  const Type& lies = layout_in(tx, type, from);
  if (!lies.owns) return;
  Buffer image(lies.size);
  tx.read_bytes(image.data(), from->image(), lies.size);
  value::each_block(tx, lies, image.data(), f);
}

}  // namespace perdure::value
