// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/sequence.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "perdure/base/status.hpp"
#include "perdure/value/image.hpp"

namespace perdure::value {
namespace {

std::size_t block_size(const Type& element, std::size_t n) {
  if (n > (sequence::longest - sizeof(sequence)) / std::max(element.size, 1U)) {
    throw error(Status(Code::too_big, "perdure: found a std::vector of " + std::to_string(n) +
                                          " elements of " + std::to_string(element.size) +
                                          " bytes, expected at most 4 GiB in all; hold them in a "
                                          "perdure::vector"));
  }
  return (sizeof(sequence) + n * element.size + 15) & ~std::size_t{15};
}

/// Counts the sequences around the one that is being made.
class Nested {
 public:
  Nested() {
    if (++depth <= sequence::deepest) return;
    --depth;
    throw error(Status(Code::too_big,
                       "perdure: found a value of more than " + std::to_string(sequence::deepest) +
                           " std::vectors in each other, expected at most so many; hold deep "
                           "structures in boxes or in rows that name each other by key"));
  }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;
  ~Nested() { --depth; }

 private:
  static inline constinit thread_local unsigned depth = 0;
};

/// Makes a block with room for `capacity` elements or more, whose first `n` images are `images`.
sequence* store(Writer& tx, const Type& element, const std::byte* images, std::size_t n,
                std::size_t capacity) {
  const std::size_t bytes = block_size(element, capacity);
  const sequence head{
      static_cast<std::uint32_t>(n),
      static_cast<std::uint32_t>((bytes - sizeof(sequence)) / std::max(element.size, 1U))};
  auto* const block = reinterpret_cast<sequence*>(tx.alloc(bytes));
  tx.write_bytes(block, &head, sizeof head);
  if (n != 0) tx.write_bytes(block->images(), images, n * element.size);
  return block;
}

/// Encodes objects [from, to) to their places behind `images`.
void encode_some(Writer& tx, const Type& element, const void* objects, std::size_t from,
                 std::size_t to, std::byte* images) {
  for (std::size_t i = from; i < to; ++i)
    encode(tx, element, static_cast<const std::byte*>(objects) + i * element.object_bytes,
           images + i * element.size);
}

}  // namespace

sequence sequence::header(Reader& tx, const sequence* block) {
  sequence head{0, 0};
  if (block != nullptr) tx.read_bytes(&head, block, sizeof head);
  if (head.count > head.capacity) {
    throw error(Status(Code::corrupt, "perdure: found " + std::to_string(head.count) +
                                          " elements in a block for " +
                                          std::to_string(head.capacity) +
                                          ": the pool's data is damaged"));
  }
  return head;
}

sequence* sequence::make(Writer& tx, const Type& element, const void* objects, std::size_t n) {
  if (n == 0) return nullptr;
  const Nested nested;
  (void)block_size(element, n);
  Buffer images(n * element.size);
  encode_some(tx, element, objects, 0, n, images.data());
  return store(tx, element, images.data(), n, n);
}

sequence* sequence::change(Writer& tx, const Type& element, sequence* block, const void* objects,
                           std::size_t n) {
  if (block == nullptr) return make(tx, element, objects, n);
  if (n == 0) {
    drop(tx, element, block);
    return nullptr;
  }
  const Nested nested;
  (void)block_size(element, n);
  const sequence head = header(tx, block);
  const std::size_t old = head.count, both = std::min(old, n);
  Buffer before(old * element.size), after(std::max(old, n) * element.size);
  tx.read_bytes(before.data(), block->images(), old * element.size);
  std::memcpy(after.data(), before.data(), old * element.size);
  for (std::size_t i = 0; i < both; ++i)
    value::change(tx, element, after.data() + i * element.size,
                  static_cast<const std::byte*>(objects) + i * element.object_bytes);
  for (std::size_t i = n; i < old; ++i) value::drop(tx, element, before.data() + i * element.size);
  // Bytes of an element that was dropped are zero before another one is made of them.
  encode_some(tx, element, objects, old, n, after.data());

  if (n > head.capacity || head.capacity > 2 * n + 64 / std::max(element.size, 1U)) {
    const std::size_t largest = (longest - sizeof(sequence)) / std::max(element.size, 1U);
    const std::size_t grown = n > head.capacity ? std::max(n, std::min(old + old / 2, largest)) : n;
    sequence* const now = store(tx, element, after.data(), n, grown);
    tx.free(block);
    return now;
  }
  write_changes(tx, block->images(), before.data(), after.data(), both * element.size);
  if (n > old)
    tx.write_bytes(block->images() + old * element.size, after.data() + old * element.size,
                   (n - old) * element.size);
  if (n != old) {
    const auto count = static_cast<std::uint32_t>(n);
    tx.write_bytes(&block->count, &count, sizeof count);
  }
  return block;
}

void sequence::drop(Writer& tx, const Type& element, sequence* block) {
  if (block == nullptr) return;
  if (element.owns)
    each_image(tx, element, block, [&](const std::byte* image) {
      value::drop(tx, element, image);
      return true;
    });
  tx.free(block);
}

bool sequence::free_elements(Writer& tx, const Type& element, sequence* block,
                             std::uint64_t& blocks) {
  if (!element.owns) return true;
  const std::uint32_t n = header(tx, block).count;
  std::uint32_t left = n;
  while (left != 0 &&
         free_some(tx, element, block->images() + std::size_t{left - 1} * element.size, blocks))
    --left;
  if (left != n) tx.write_bytes(&block->count, &left, sizeof left);
  return left == 0;
}

sequence* sequence::copy(Writer& tx, const Type& element, const sequence* block) {
  if (block == nullptr) return nullptr;
  const std::size_t n = header(tx, block).count;
  Buffer images(n * element.size);
  tx.read_bytes(images.data(), block->images(), n * element.size);
  for (std::size_t i = 0; i < n; ++i) own_blocks(tx, element, images.data() + i * element.size);
  return store(tx, element, images.data(), n, n);
}

void sequence::each_image(Reader& tx, const Type& element, const sequence* block,
                          const std::function<bool(const std::byte*)>& f) {
  const std::size_t n = header(tx, block).count;
  const std::size_t batch = std::max<std::size_t>(1, 4096 / std::max(element.size, 1U));
  for (std::size_t from = 0; from < n; from += batch) {
    const std::size_t some = std::min(batch, n - from);
    Buffer images(some * element.size);
    tx.read_bytes(images.data(), block->images() + from * element.size, some * element.size);
    for (std::size_t i = 0; i < some; ++i)
      if (!f(images.data() + i * element.size)) return;
  }
}

}  // namespace perdure::value
