// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/inspect/find.hpp"

#include <string>

#include "perdure/api/hash.hpp"
#include "perdure/base/status.hpp"
#include "perdure/inspect/scalar.hpp"

namespace perdure::inspect {
namespace {

/// Visits elements until one is the right one.
class Search final : public Visitor {
 public:
  explicit Search(const std::function<bool(const Entry&)>& is_it) : is_it_(is_it) {}
  bool entry(const Entry& entry) override {
    if (!is_it_(entry)) return true;
    found = entry;
    return false;
  }
  std::optional<Entry> found;

 private:
  const std::function<bool(const Entry&)>& is_it_;
};

[[noreturn]] void no_key(std::string_view key, const std::string& expected) {
  throw error(failure(Code::invalid, "", "the key '" + std::string(key) + "'", expected,
                      "`perdure schema` shows the types of keys"));
}

/// A typed key as the bytes that a node has.
class TypedKey {
 public:
  TypedKey(Walker& walker, const Layout& type, std::string_view key)
      : walker_(walker), type_(type) {
    if (type.kind == Kind::text)
      text_ = key;
    else if (type.size > sizeof bytes_ || !scalar_bytes(type, key, bytes_))
      no_key(key, "a value of type " + type.text);
  }
  [[nodiscard]] bool same(Address at) { return order_of(at) == 0; }
  /// Returns a negative value, zero or a positive value: the key at an address is below, equal to
  /// or above this one.
  [[nodiscard]] int order_of(Address at) {
    if (type_.kind == Kind::text) {
      const int order = walker_.text(walker_.read<Address>(at)).compare(text_);
      return type_.reversed ? -order : order;
    }
    unsigned char other[16] = {};
    walker_.read_bytes(other, at, type_.size);
    return compare_scalars(type_, other, bytes_);
  }
  /// Its hash in a hash_map, where that is known.
  [[nodiscard]] std::optional<std::uint64_t> hash() const {
    if (type_.kind == Kind::text) return perdure::hash<std::string_view>::of(text_);
    return scalar_hash(type_, bytes_);
  }

 private:
  Walker& walker_;
  const Layout& type_;
  std::string text_;
  unsigned char bytes_[16] = {};
};

}  // namespace

bool is_typed_plainly(const Layout& key) noexcept {
  return key.kind == Kind::text || (key.kind == Kind::scalar && key.size <= 16);
}

std::optional<Entry> find_if(Walker& walker, const Layout& container, Address at,
                             const std::function<bool(const Entry&)>& is_it) {
  Search search(is_it);
  walker.each(container, at, search);
  return search.found;
}

std::optional<Entry> find(Walker& walker, const Layout& container, Address at,
                          std::string_view key) {
  if (!container.is_map()) {
    Layout number;
    number.kind = Kind::scalar;
    number.size = 8;
    std::uint64_t index = 0;
    if (!scalar_bytes(number, key, reinterpret_cast<unsigned char*>(&index)))
      no_key(key, "the number of an element, counted from 0");
    return find_if(walker, container, at, [&](const Entry&) { return index-- == 0; });
  }
  TypedKey typed(walker, container.element(), key);
  const auto is_it = [&](const Entry& entry) { return typed.same(entry.key); };
  if (container.is_hashed()) {
    if (const auto hash = typed.hash()) return walker.in_bucket(container, at, *hash, is_it);
  }
  if (container.is_btree())
    return walker.in_tree(container, at, [&](Address other) { return typed.order_of(other); });
  return find_if(walker, container, at, is_it);
}

}  // namespace perdure::inspect
