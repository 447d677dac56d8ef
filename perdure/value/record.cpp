// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/record.hpp"

#include <cstring>

#include "perdure/base/status.hpp"
#include "perdure/value/image.hpp"

namespace perdure::value {
namespace {

/// Reads the record's image to DRAM. The shape is read first: a record of another shape may be
/// shorter.
void read_image(Reader& tx, const Type& type, const record* from, std::byte* image) {
  std::uint64_t shape = 0;
  tx.read_bytes(&shape, from, sizeof shape);
  if (shape != type.shape) {
    throw error(Status(Code::corrupt,
                       "perdure: found a value that was written with another layout than " +
                           text_of(type) +
                           ": the pool's data is damaged, or a program wrote it that declares the "
                           "container with another struct"));
  }
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
  if (type.owns) {
    Buffer image(type.size);
    read_image(tx, type, block, image.data());
    value::drop(tx, type, image.data());
  }
  tx.free(block);
}

void record::each_block(Reader& tx, const Type& type, const record* block,
                        const std::function<void(const void*)>& f) {
  if (block == nullptr) return;
  f(block);
  if (!type.owns) return;
  Buffer image(type.size);
  read_image(tx, type, block, image.data());
  value::each_block(tx, type, image.data(), f);
}

}  // namespace perdure::value
