// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/record.hpp"

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

}  // namespace

record* record::make(Writer& tx, const Type& type, const void* object) {
  Buffer bytes(sizeof(record) + type.size);
  std::memcpy(bytes.data(), &type.shape, sizeof type.shape);
  encode(tx, type, object, bytes.data() + sizeof(record));
  auto* const block = reinterpret_cast<record*>(tx.alloc(sizeof(record) + type.size));
  tx.write_bytes(block, bytes.data(), sizeof(record) + type.size);
  return block;
}

std::byte* record::make_behind(Writer& tx, std::uint64_t word, const Type& type,
                               const void* object) {
  constexpr std::size_t head = sizeof word + sizeof(record);
  Buffer bytes(head + type.size);
  std::memcpy(bytes.data(), &word, sizeof word);
  std::memcpy(bytes.data() + sizeof word, &type.shape, sizeof type.shape);
  encode(tx, type, object, bytes.data() + head);
  std::byte* const block = tx.alloc(head + type.size);
  tx.write_bytes(block, bytes.data(), head + type.size);
  return block;
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
  Buffer before(type.size), after(type.size);
  read_image(tx, type, to, before.data());
  std::memcpy(after.data(), before.data(), type.size);
  change(tx, type, after.data(), object);
  write_changes(tx, to->image(), before.data(), after.data(), type.size);
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
