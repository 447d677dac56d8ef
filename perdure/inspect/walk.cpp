// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/inspect/walk.hpp"

#include <algorithm>
#include <cstring>

#include "perdure/api/hash.hpp"
#include "perdure/base/status.hpp"
#include "perdure/inspect/scalar.hpp"

namespace perdure::inspect {

Walker::Walker(value::Reader& reader, Address mapped, std::uint64_t data_bytes) noexcept
    : reader_(reader),
      mapped_(mapped),
      data_bytes_(data_bytes),
      blocks_left_(data_bytes / 16 + 1),
      bytes_left_(64 * data_bytes + (64 << 20)) {}

void Walker::use_copies(const std::vector<pool::CopyEntry>& copied) {
  for (const pool::CopyEntry& one : copied) copies_.emplace(one.old, one.made);
}

void Walker::damaged(const std::string& found, const std::string& expected) {
  throw error(failure(Code::corrupt, "", found, expected,
                      "the pool's data is damaged: `perdure check` says more; restore the pool "
                      "from a copy"));
}

void Walker::check_depth(unsigned depth) {
  if (depth > 200) damaged("values nested deeper than 200", "fewer");
}

void Walker::read_bytes(void* to, Address at, std::uint64_t n) {
  if (n + 8 > bytes_left_)
    damaged("more data than the pool can hold", "pointers that do not lead in a circle");
  bytes_left_ -= n + 8;
  reader_.read_bytes(to, reinterpret_cast<const void*>(at), n);
}

std::string Walker::text(Address block) {
  if (block == 0) return {};
  const auto n = read<std::uint32_t>(block), room = read<std::uint32_t>(block + 4);
  if (n > room)
    damaged("a text of " + std::to_string(n) + " bytes in a block for " + std::to_string(room),
            "a length up to the block's");
  if (n != 0) reader_.expect(reinterpret_cast<const void*>(block + 8), n);
  if (n > data_bytes_) damaged("a text of " + std::to_string(n) + " bytes", "one in the pool");
  std::string out(n, '\0');
  if (n != 0) read_bytes(out.data(), block + 8, n);
  return out;
}

std::uint64_t Walker::sequence_count(const Layout& sequence, Address block) {
  if (block == 0) return 0;
  const auto n = read<std::uint32_t>(block), room = read<std::uint32_t>(block + 4);
  if (n > room || n > data_bytes_ / std::max<std::uint64_t>(sequence.element().size, 1))
    damaged(std::to_string(n) + " elements in a block for " + std::to_string(room),
            "a count up to the block's");
  return n;
}

namespace {

template <class T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace

int Walker::compare(const Layout& key, Address a, Address b, unsigned depth) {
  check_depth(depth);
  int found = 0;
  switch (key.kind) {
    case Kind::scalar: {
      unsigned char x[16] = {}, y[16] = {};
      read_bytes(x, a, std::min<std::uint64_t>(key.size, 16));
      read_bytes(y, b, std::min<std::uint64_t>(key.size, 16));
      return compare_scalars(key, x, y);
    }
    case Kind::text: {
      const int order = text(read<Address>(a)).compare(text(read<Address>(b)));
      found = three_way(order, 0);
      break;
    }
    case Kind::structure:
      for (const Member& part : key.parts) {
        found = compare(*part.type, a + part.at, b + part.at, depth + 1);
        if (found != 0) break;
      }
      break;
    case Kind::array:
      for (std::uint64_t i = 0; i < key.count && found == 0; ++i)
        found = compare(key.element(), a + i * key.element().size, b + i * key.element().size,
                        depth + 1);
      break;
    case Kind::optional: {
      const auto x = read<std::uint8_t>(a), y = read<std::uint8_t>(b);
      found = x == 0 || y == 0 ? three_way<int>(x != 0 ? 1 : 0, y != 0 ? 1 : 0)
                               : compare(key.element(), a + key.parts.front().at,
                                         b + key.parts.front().at, depth + 1);
      break;
    }
    case Kind::variant: {
      const auto x = read<std::uint8_t>(a), y = read<std::uint8_t>(b);
      found = three_way(x, y);
      if (found == 0 && x < key.parts.size())
        found = compare(*key.parts[x].type, a + key.parts[x].at, b + key.parts[x].at, depth + 1);
      break;
    }
    default: break;
  }
  return key.reversed ? -found : found;
}

std::optional<std::uint64_t> Walker::hash(const Layout& key, Address at) {
  if (key.kind == Kind::text) return perdure::hash<std::string_view>::of(text(read<Address>(at)));
  unsigned char bytes[8] = {};
  if (key.kind != Kind::scalar || key.size > sizeof bytes) return std::nullopt;
  read_bytes(bytes, at, key.size);
  return scalar_hash(key, bytes);
}

std::uint64_t Walker::count(const Layout& container, Address at) {
  Visitor nobody;
  switch (container.kind) {
    case Kind::map:
    case Kind::set: return counter(at + 16, nobody);
    case Kind::multimap: return counter(at + inner_map_at + 16, nobody);
    case Kind::rb_tree: return counter(at + 8, nobody);
    case Kind::hash_map:
    case Kind::hash_set: return counter(at + 32, nobody);
    case Kind::table: return count(*container.parts[1].type, at + table_part_bytes);
    case Kind::priority_queue:
    case Kind::vector: return read<std::uint64_t>(at);
    case Kind::deque: return read<std::uint64_t>(at + 8) - read<std::uint64_t>(at);
    case Kind::hooked_list: {
      const auto ends = read<Address>(at);
      return ends == 0 ? 0 : read<std::uint64_t>(ends + 16);
    }
    case Kind::list: return read<std::uint64_t>(at + 16);
    case Kind::queue: return read<std::uint64_t>(at + 72) - read<std::uint64_t>(at + 8);
    case Kind::box: return read<Address>(at) != 0 ? 1 : 0;
    case Kind::string: {
      const auto block = read<Address>(at);
      return block == 0 ? 0 : read<std::uint32_t>(block);
    }
    default: return 0;
  }
}

Layout Walker::first_part(const Layout& table, Address at) {
  Layout part = *table.parts[1].type;
  if (part.kind != Kind::hash_map || part.element().kind != Kind::structure ||
      is_tuple(part.element()) || !part.keeps_hash)
    return part;
  // Keys that are structs of numbers lie as their bytes if they have an operator<, and then without
  // their hash. A row's shape shows which.
  class First final : public Visitor {
   public:
    Entry found;
    bool entry(const Entry& entry) override {
      found = entry;
      return false;
    }
  };
  for (const bool keeps : {false, true}) {
    part.keeps_hash = keeps;
    const std::uint64_t shift = keeps ? 0 : 8;
    part.key_at = table.parts[1].type->key_at - shift;
    part.value_at = table.parts[1].type->value_at - shift;
    part.node_bytes = table.parts[1].type->node_bytes - shift;
    First first;
    each(part, at + table_part_bytes, first);
    if (first.found.value == 0) return part;
    const auto row = read<Address>(first.found.value);
    if (row >= mapped_ && row - mapped_ < data_bytes_ - std::min<std::uint64_t>(data_bytes_, 16) &&
        structure(read<std::uint64_t>(row + 8), table.shape, *table.parts.front().type) != nullptr)
      return part;
  }
  damaged("a table whose first entry leads to no row", "a row of the table's layout");
}

void Walker::step() {
  if (blocks_left_ == 0)
    damaged("more blocks than the pool can hold", "pointers that do not lead in a circle");
  --blocks_left_;
}

void Walker::block(Visitor& visitor, Address at, std::uint64_t bytes) {
  step();
  visitor.block(at, bytes);
}

/// counter.hpp: base, address of 64 lines.
std::uint64_t Walker::counter(Address at, Visitor& visitor) {
  std::uint64_t sum = read<std::uint64_t>(at);
  const auto lines = read<Address>(at + 8);
  if (lines == 0) return sum;
  block(visitor, lines, 4096);
  for (std::uint64_t i = 0; i < 64; ++i) sum += read<std::uint64_t>(lines + 64 * i);
  return sum;
}

void Walker::each(const Layout& container, Address at, Visitor& visitor) {
  switch (container.kind) {
    case Kind::map:
    case Kind::set: return map(container, at, visitor);
    case Kind::multimap: return multimap(container, at, visitor);
    case Kind::deque: return deque(container, at, visitor);
    case Kind::priority_queue: return priority_queue(container, at, visitor);
    case Kind::hooked_list: return hooked_list(container, at, visitor);
    case Kind::rb_tree: return rb_tree(container, at, visitor);
    case Kind::hash_map:
    case Kind::hash_set: return hash_map(container, at, visitor);
    case Kind::vector: return vector(container, at, visitor);
    case Kind::list: return list(container, at, visitor);
    case Kind::queue: return queue(container, at, visitor);
    case Kind::table: return table(container, at, visitor);
    case Kind::box:
      if (read<Address>(at) != 0) (void)visitor.entry({0, at});
      return;
    case Kind::string:
      if (const auto text = read<Address>(at); text != 0)
        block(visitor, text, 8 + std::uint64_t{read<std::uint32_t>(text + 4)});
      return;
    default: return;
  }
}

void Walker::table(const Layout& table, Address at, Visitor& visitor) {
  class Rows final : public Visitor {
   public:
    Rows(Walker& walker, Visitor& outer) : walker_(walker), outer_(outer) {}
    void block(Address block, std::uint64_t bytes) override { outer_.block(block, bytes); }
    void separator(Address key) override { outer_.separator(key); }
    void problem(const std::string& text) override { outer_.problem(text); }
    bool entry(const Entry& entry) override {
      return outer_.entry({entry.key, walker_.read<Address>(entry.value)});
    }

   private:
    Walker& walker_;
    Visitor& outer_;
  };
  Rows rows(*this, visitor);
  each(first_part(table, at), at + table_part_bytes, rows);
}

}  // namespace perdure::inspect
