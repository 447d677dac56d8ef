// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/image.hpp"

#include <algorithm>
#include <string>

#include "perdure/base/status.hpp"
#include "perdure/value/sequence.hpp"
#include "perdure/value/text_block.hpp"

namespace perdure::value {
namespace {

template <class T>
T* pointer_at(const std::byte* image) {
  T* block;
  std::memcpy(&block, image, sizeof block);
  return block;
}
template <class T>
void put_pointer(std::byte* image, T* block) {
  std::memcpy(image, &block, sizeof block);
}

const std::byte* part_of(const void* object, std::size_t at) {
  return static_cast<const std::byte*>(object) + at;
}

/// The alternative of a variant, by its index.
const Part& alternative(const Type& type, std::size_t index) {
  if (index < type.parts.size()) return type.parts[index];
  throw error(Status(Code::invalid,
                     "perdure: found a std::variant without a value (an exception left it so), "
                     "expected one with a value: assign one before it is stored"));
}

/// The alternative that an image holds, by its first byte.
const Part& held(const Type& type, const std::byte* image) {
  const auto index = std::to_integer<std::size_t>(*image);
  if (index < type.parts.size()) return type.parts[index];
  throw error(Status(Code::corrupt, "perdure: found alternative " + std::to_string(index) +
                                        " of a variant that has " +
                                        std::to_string(type.parts.size()) +
                                        ": the pool's data is damaged"));
}

/// Calls f(part, its offset in the image, its offset in the object) for the parts of a structure or
/// array.
template <class F>
void each_part(const Type& type, F&& f) {
  if (type.kind == Kind::structure) {
    for (const Part& part : type.parts) f(*part.type, part.at, part.in_object);
  } else {
    const Type& element = type.element();
    for (std::size_t i = 0; i < type.count; ++i)
      f(element, i * element.size, i * element.object_bytes);
  }
}

/// Calls f(type, place) for each text and sequence of an image, whose place holds a pointer to its
/// block. What lies in the block of a sequence is not entered. Byte: std::byte, or const.
template <class Byte, class F>
void each_pointer(const Type& type, Byte* image, F&& f) {
  if (!type.owns) return;
  switch (type.kind) {
    case Kind::scalar: return;
    case Kind::text:
    case Kind::sequence: f(type, image); return;
    case Kind::optional:
      if (*image != std::byte{0}) each_pointer(type.element(), image + type.parts.front().at, f);
      return;
    case Kind::variant: {
      const Part& part = held(type, image);
      each_pointer(*part.type, image + part.at, f);
      return;
    }
    case Kind::array:
    case Kind::structure:
      each_part(type, [&](const Type& part, std::size_t at, std::size_t) {
        each_pointer(part, image + at, f);
      });
      return;
  }
}

}  // namespace

void encode(Writer& tx, const Type& type, const void* object, std::byte* image) try {
  switch (type.kind) {
    case Kind::scalar: std::memcpy(image, object, type.size); return;
    case Kind::text:
      put_pointer(image, text_block::make(tx, *static_cast<const std::string*>(object)));
      return;
    case Kind::sequence:
      put_pointer(image, sequence::make(tx, type.element(), type.operations->get(object),
                                        type.operations->count(object)));
      return;
    case Kind::optional:
      if (const void* const some = type.operations->get(object)) {
        *image = std::byte{1};
        encode(tx, type.element(), some, image + type.parts.front().at);
      }
      return;
    case Kind::variant: {
      const std::size_t index = type.operations->count(object);
      const Part& part = alternative(type, index);
      *image = static_cast<std::byte>(index);
      encode(tx, *part.type, type.operations->get(object), image + part.at);
      return;
    }
    case Kind::array:
    case Kind::structure:
      each_part(type, [&](const Type& part, std::size_t at, std::size_t in_object) {
        encode(tx, part, part_of(object, in_object), image + at);
      });
      return;
  }
} catch (...) {  // a part of it may be done
  tx.keep_refusal();
  throw;
}

void decode(Reader& tx, const Type& type, const std::byte* image, void* object) {
  if (type.plain) {
    std::memcpy(object, image, type.object_bytes);
    return;
  }
  switch (type.kind) {
    case Kind::scalar: std::memcpy(object, image, type.size); return;
    case Kind::text:
      *static_cast<std::string*>(object) = text_block::read(tx, pointer_at<text_block>(image));
      return;
    case Kind::sequence: {
      const auto* const block = pointer_at<sequence>(image);
      const Type& element = type.element();
      const sequence head = sequence::header(tx, block);
      if (block != nullptr) tx.expect(block, std::size_t{head.count} * element.size);
      auto* to = static_cast<std::byte*>(type.operations->make(object, head.count));
      sequence::each_image(tx, element, block, [&](const std::byte* one) {
        decode(tx, element, one, to);
        to += element.object_bytes;
        return true;
      });
      return;
    }
    case Kind::optional: {
      const bool some = *image != std::byte{0};
      void* const to = type.operations->make(object, some ? 1 : 0);
      if (some) decode(tx, type.element(), image + type.parts.front().at, to);
      return;
    }
    case Kind::variant: {
      const Part& part = held(type, image);
      void* const to = type.operations->make(object, std::to_integer<std::size_t>(*image));
      decode(tx, *part.type, image + part.at, to);
      return;
    }
    case Kind::array:
    case Kind::structure:
      each_part(type, [&](const Type& part, std::size_t at, std::size_t in_object) {
        decode(tx, part, image + at, static_cast<std::byte*>(object) + in_object);
      });
      return;
  }
}

void change(Writer& tx, const Type& type, std::byte* image, const void* object) try {
  switch (type.kind) {
    case Kind::scalar: std::memcpy(image, object, type.size); return;
    case Kind::text: {
      auto* const old = pointer_at<text_block>(image);
      text_block* const now =
          text_block::rewrite(tx, old, *static_cast<const std::string*>(object));
      if (now == old) return;
      put_pointer(image, now);
      if (old != nullptr) tx.free(old);
      return;
    }
    case Kind::sequence:
      put_pointer(image,
                  sequence::change(tx, type.element(), pointer_at<sequence>(image),
                                   type.operations->get(object), type.operations->count(object)));
      return;
    case Kind::optional: {
      const void* const some = type.operations->get(object);
      std::byte* const value = image + type.parts.front().at;
      if (*image != std::byte{0} && some != nullptr) return change(tx, type.element(), value, some);
      drop(tx, type, image);
      std::memset(image, 0, type.size);
      encode(tx, type, object, image);
      return;
    }
    case Kind::variant: {
      const Part& part = held(type, image);
      if (std::to_integer<std::size_t>(*image) == type.operations->count(object))
        return change(tx, *part.type, image + part.at, type.operations->get(object));
      drop(tx, type, image);
      std::memset(image, 0, type.size);
      encode(tx, type, object, image);
      return;
    }
    case Kind::array:
    case Kind::structure:
      each_part(type, [&](const Type& part, std::size_t at, std::size_t in_object) {
        change(tx, part, image + at, part_of(object, in_object));
      });
      return;
  }
} catch (...) {  // a part of it may be done
  tx.keep_refusal();
  throw;
}

void assign(Writer& tx, const Type& type, std::byte* where, const void* object) try {
  Buffer before(type.size), after(type.size);
  tx.read_bytes(before.data(), where, type.size);
  std::memcpy(after.data(), before.data(), type.size);
  change(tx, type, after.data(), object);
  write_changes(tx, where, before.data(), after.data(), type.size);
} catch (...) {  // a part of it may be done
  tx.keep_refusal();
  throw;
}

void drop(Writer& tx, const Type& type, const std::byte* image) try {
  each_pointer(type, image, [&](const Type& part, const std::byte* at) {
    if (part.kind == Kind::sequence)
      sequence::drop(tx, part.element(), pointer_at<sequence>(at));
    else if (auto* const block = pointer_at<text_block>(at))
      tx.free(block);
  });
} catch (...) {  // a part of it may be done
  tx.keep_refusal();
  throw;
}

bool free_some(Writer& tx, const Type& type, std::byte* where, std::uint64_t& blocks) try {
  if (!type.owns) return true;
  Buffer image(type.size);
  tx.read_bytes(image.data(), where, type.size);
  bool done = true;
  each_pointer(type, image.data(), [&](const Type& part, std::byte* at) {
    auto* const block = pointer_at<std::byte>(at);
    if (!done || block == nullptr) return;
    if (part.kind == Kind::sequence)
      done =
          sequence::free_elements(tx, part.element(), reinterpret_cast<sequence*>(block), blocks);
    done = done && blocks != 0;
    if (!done) return;
    tx.free(block);
    --blocks;
    const std::byte* const none = nullptr;
    tx.write_bytes(where + (at - image.data()), &none, sizeof none);
  });
  return done;
} catch (...) {  // a part of it may be done
  tx.keep_refusal();
  throw;
}

void own_blocks(Writer& tx, const Type& type, std::byte* image) try {
  each_pointer(type, image, [&](const Type& part, std::byte* at) {
    if (part.kind == Kind::sequence)
      put_pointer(at, sequence::copy(tx, part.element(), pointer_at<sequence>(at)));
    else
      put_pointer(at, text_block::make(tx, text_block::read(tx, pointer_at<text_block>(at))));
  });
} catch (...) {  // a part of it may be done
  tx.keep_refusal();
  throw;
}

void each_block(Reader& tx, const Type& type, const std::byte* image,
                const std::function<void(const void*)>& f) {
  each_pointer(type, image, [&](const Type& part, const std::byte* at) {
    const void* const block = pointer_at<const void>(at);
    if (block == nullptr) return;
    f(block);
    if (part.kind != Kind::sequence || !part.element().owns) return;
    sequence::each_image(tx, part.element(), pointer_at<sequence>(at), [&](const std::byte* one) {
      each_block(tx, part.element(), one, f);
      return true;
    });
  });
}

void write_changes(Writer& tx, std::byte* where, const std::byte* before, const std::byte* after,
                   std::size_t n) {
  const auto differs = [&](std::size_t at) {
    return std::memcmp(before + at, after + at, std::min<std::size_t>(8, n - at)) != 0;
  };
  for (std::size_t from = 0; from < n;) {
    if (!differs(from)) {
      from += 8;
      continue;
    }
    std::size_t end = from + 8;
    while (end < n && differs(end)) end += 8;
    tx.write_bytes(where + from, after + from, std::min(end, n) - from);
    from = end;
  }
}

}  // namespace perdure::value
