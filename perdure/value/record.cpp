// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/record.hpp"

#include <array>
#include <cstring>

#include "perdure/base/status.hpp"
#include "perdure/value/image.hpp"

namespace perdure::value {
namespace {

/// Throws error(corrupt) if the record has another shape.
void check_shape(Reader& tx, const Type& type, const record* from) {
  std::uint64_t shape = 0;
  tx.read_bytes(&shape, from, sizeof shape);
  if (shape != type.shape) {
    throw error(Status(Code::corrupt,
                       "perdure: found a value that was written with another layout than " +
                           text_of(type) +
                           ": the pool's data is damaged, or a program wrote it that declares the "
                           "container with another struct"));
  }
}

/// Reads the record's image to DRAM. The shape is read first: a record of another shape may be
/// shorter.
void read_image(Reader& tx, const Type& type, const record* from, std::byte* image) {
  check_shape(tx, type, from);
  tx.read_bytes(image, from->image(), type.size);
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

record* record::make(Writer& tx, const Type& type, const void* object) {
  return reinterpret_cast<record*>(store<1>(tx, {type.shape}, type, object));
}

std::byte* record::make_behind(Writer& tx, std::uint64_t word, const Type& type,
                               const void* object) {
  return store<2>(tx, {word, type.shape}, type, object);
}

void record::read_part(Reader& tx, const Type& type, const record* from, const Part& part,
                       void* image) {
  check_shape(tx, type, from);
  tx.read_bytes(image, from->image() + part.at, part.type->size);
}

void record::read(Reader& tx, const Type& type, const record* from, void* object) {
  Buffer image(type.size);
  read_image(tx, type, from, image.data());
  decode(tx, type, image.data(), object);
}

void record::assign(Writer& tx, const Type& type, record* to, const void* object) {
  check_shape(tx, type, to);
  value::assign(tx, type, to->image(), object);
}

void record::drop(Writer& tx, const Type& type, record* block) {
  if (block == nullptr) return;
  drop_parts(tx, type, block);
  tx.free(block);
}

void record::drop_parts(Writer& tx, const Type& type, const record* from) {
  if (!type.owns) return;
  Buffer image(type.size);
  read_image(tx, type, from, image.data());
  value::drop(tx, type, image.data());
}

void record::each_block(Reader& tx, const Type& type, const record* block,
                        const std::function<void(const void*)>& f) {
  if (block == nullptr) return;
  f(block);
  each_part_block(tx, type, block, f);
}

void record::each_part_block(Reader& tx, const Type& type, const record* from,
                             const std::function<void(const void*)>& f) {
  if (!type.owns) return;
  Buffer image(type.size);
  read_image(tx, type, from, image.data());
  value::each_block(tx, type, image.data(), f);
}

}  // namespace perdure::value
