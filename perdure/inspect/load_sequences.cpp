// SPDX-License-Identifier: BSD-3-Clause
//
// Loader: the containers that are built by adding elements at the end: vector, priority_queue,
// list, queue, deque and multimap; and rb_tree.
#include <bit>

#include "perdure/inspect/load.hpp"
#include "perdure/inspect/load_entries.hpp"

namespace perdure::inspect {

namespace {

/// vector.hpp, priority_queue.hpp, segments.hpp: segments of doubling sizes.
class VectorEntries final : public LoadEntries {
 public:
  VectorEntries(Loader& loader, const Layout& type)
      : LoadEntries(loader),
        bytes_(stride(type.element())),
        shift_(static_cast<unsigned>(std::bit_width((bytes_ >= 64 ? 1 : 64 / bytes_) - 1))) {}
  std::byte* value() override {
    piece_.resize(piece_.size() + bytes_);
    return reinterpret_cast<std::byte*>(piece_.data() + piece_.size() - bytes_);
  }
  void add() override {
    ++n_;
    // A segment is full when the count is a power of two.
    if (piece_.size() >= piece_bytes || (n_ >> shift_ != 0 && std::has_single_bit(n_))) flush();
  }
  void finish(std::byte* image) override {
    flush();
    put(image, n_);
    put(image + 8, shift_);
    put(image + 16, first_);
    if (!table_.empty()) {
      table_.resize(segments_in_table);
      put(image + 24, store().add(table_.data(), 8 * table_.size()));
    }
  }

 private:
  static constexpr std::size_t piece_bytes = std::size_t{1} << 16, segments_in_table = 40;
  /// Writes the elements from `written_` to `n_`, which lie in one segment.
  void flush() {
    if (written_ == n_) return;
    const std::uint64_t high = written_ >> shift_;
    std::uint64_t from = 0;
    if (high == 0) {
      if (first_ == 0) first_ = segment_ = store().alloc(bytes_ << shift_);
    } else {
      const auto k = static_cast<unsigned>(std::bit_width(high)) - 1;
      from = std::uint64_t{1} << (shift_ + k);
      if (k == table_.size()) table_.push_back(segment_ = store().alloc(bytes_ << (shift_ + k)));
    }
    store().write(segment_ + (written_ - from) * bytes_, piece_.data(), piece_.size());
    written_ = n_;
    piece_.clear();
  }

  const std::uint64_t bytes_;
  const unsigned shift_;
  std::string piece_;
  std::uint64_t n_ = 0, written_ = 0;
  Address first_ = 0, segment_ = 0;
  std::vector<std::uint64_t> table_;
};

/// Blocks that each lead to the next one: list.hpp, with one element in each, and queue.hpp.
class ChainEntries final : public LoadEntries {
 public:
  ChainEntries(Loader& loader, const Layout& type)
      : LoadEntries(loader), type_(type), slots_(type.kind == Kind::list ? 1 : type.slots) {}
  std::byte* value() override {
    if (n_ % slots_ == 0) block_.assign(type_.node_bytes, '\0');
    return reinterpret_cast<std::byte*>(block_.data()) + type_.value_at +
           n_ % slots_ * stride(type_.element());
  }
  void add() override {
    if (++n_ % slots_ == 0) flush();
  }
  void finish(std::byte* image) override {
    if (n_ % slots_ != 0) flush();
    put(image, first_);
    if (type_.kind == Kind::list) {
      put(image + 8, last_);
      put(image + 16, n_);
    } else {
      put(image + 64, last_);
      put(image + 72, n_);
    }
  }

 private:
  void flush() {
    auto* const bytes = reinterpret_cast<std::byte*>(block_.data());
    if (type_.kind == Kind::list) put(bytes, last_);
    const Address at = store().add(bytes, block_.size());
    if (last_ == 0)
      first_ = at;
    else
      store().write(last_ + (type_.kind == Kind::list ? 8 : 0), &at, sizeof at);
    last_ = at;
  }

  const Layout& type_;
  const std::uint64_t slots_;
  std::string block_;
  std::uint64_t n_ = 0;
  Address first_ = 0, last_ = 0;
};

/// deque.hpp: blocks, and a map of them. The first element is at position 0.
class DequeEntries final : public LoadEntries {
 public:
  DequeEntries(Loader& loader, const Layout& type)
      : LoadEntries(loader), type_(type), blocks_(loader, *type.parts[1].type) {}
  std::byte* value() override {
    if (n_ % type_.slots == 0) block_.assign(type_.node_bytes, '\0');
    return reinterpret_cast<std::byte*>(block_.data()) + type_.value_at +
           n_ % type_.slots * stride(type_.element());
  }
  void add() override {
    if (++n_ % type_.slots == 0) flush();
  }
  void finish(std::byte* image) override {
    if (n_ % type_.slots != 0) flush();
    put(image + 8, n_);
    blocks_.finish(image + inner_map_at);
  }

 private:
  void flush() {
    put(blocks_.key(), (n_ - 1) / type_.slots);
    put(blocks_.value(), store().add(block_.data(), block_.size()));
    blocks_.add();
  }

  const Layout& type_;
  TreeEntries blocks_;
  std::string block_;
  std::uint64_t n_ = 0;
};

/// multimap.hpp: a map of (key, number).
class MultimapEntries final : public LoadEntries {
 public:
  MultimapEntries(Loader& loader, const Layout& type)
      : LoadEntries(loader),
        number_at_(type.parts[2].type->element().parts[1].at),
        entries_(loader, *type.parts[2].type) {}
  std::byte* key() override { return entries_.key(); }
  std::byte* value() override { return entries_.value(); }
  void add() override {
    put(entries_.key() + number_at_, n_++);
    entries_.add();
  }
  void finish(std::byte* image) override {
    put(image, n_);
    entries_.finish(image + inner_map_at);
  }

 private:
  const std::uint64_t number_at_;
  TreeEntries entries_;
  std::uint64_t n_ = 0;
};

/// rb.hpp: a tree in which all levels except the last are full. The nodes of the last level are
/// red.
class RbEntries final : public LoadEntries {
 public:
  RbEntries(Loader& loader, const Layout& type) : LoadEntries(loader), type_(type) { clear(); }
  std::byte* key() override { return bytes() + type_.key_at; }
  std::byte* value() override { return bytes() + type_.value_at; }
  void add() override {
    nodes_.push_back(store().add(node_.data(), node_.size()));
    clear();
  }
  void finish(std::byte* image) override {
    const auto levels = static_cast<unsigned>(std::bit_width(nodes_.size()));
    // If the last level is full, none of its nodes needs to be red.
    last_ = std::has_single_bit(nodes_.size() + 1) ? levels + 1 : levels;
    put(image, link(0, nodes_.size(), 0, 1));
    put(image + 8, nodes_.size());
  }

 private:
  void clear() { node_.assign(type_.node_bytes, '\0'); }
  [[nodiscard]] std::byte* bytes() { return reinterpret_cast<std::byte*>(node_.data()); }
  /// Makes a tree of the nodes [from, to) below `parent`, and returns its root. The sizes of the
  /// two halves differ by at most one, so that only the last level lacks nodes.
  Address link(std::size_t from, std::size_t to, Address parent, unsigned level) {
    if (from == to) return 0;
    const std::size_t middle = from + (to - from) / 2;
    const Address at = nodes_[middle];
    const Address links[4] = {link(from, middle, at, level + 1),
                              link(middle + 1, to, at, level + 1), parent,
                              level == last_ ? 1U : 0U};
    store().write(at + type_.children_at, links, sizeof links);
    return at;
  }

  const Layout& type_;
  std::string node_;
  std::vector<Address> nodes_;
  unsigned last_ = 0;
};

}  // namespace

std::unique_ptr<LoadEntries> Loader::entries_of(const Layout& type) {
  switch (type.kind) {
    case Kind::map:
    case Kind::set: return std::make_unique<TreeEntries>(*this, type);
    case Kind::hash_map:
    case Kind::hash_set: return std::make_unique<HashEntries>(*this, type);
    case Kind::table: return std::make_unique<TableEntries>(*this, type);
    case Kind::vector:
    case Kind::priority_queue: return std::make_unique<VectorEntries>(*this, type);
    case Kind::deque: return std::make_unique<DequeEntries>(*this, type);
    case Kind::multimap: return std::make_unique<MultimapEntries>(*this, type);
    case Kind::rb_tree: return std::make_unique<RbEntries>(*this, type);
    default: return std::make_unique<ChainEntries>(*this, type);
  }
}

}  // namespace perdure::inspect
