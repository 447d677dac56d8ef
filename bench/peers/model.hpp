// SPDX-License-Identifier: BSD-3-Clause
//
// The workloads' Model (bench/workloads/models.md) over a Peer: a row of a table is a record, its
// key consists of the table's number and the row's key, its value is the row's bytes. A transaction
// works on copies of the rows that it finds; copies that were stored to are put when it ends. A
// table's number is its position in the Root, which is a record, too. An array is a table of its
// own, in which an element is a record.
// Thread safety: a PeerTx belongs to one transaction; a PeerHost is as safe as its Peer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/peers/peer.hpp"
#include "bench/systems/host.hpp"

namespace bench {

template <class T>
struct PeerArray;

struct PeerModel {
  template <class T>
  struct Field {
    Field(T v = {}) : value(v) {}  // NOLINT(google-explicit-constructor): stands where a T would
    T value;
  };
  /// Only for an array: rows refer to each other by their keys.
  template <class T>
  struct Link {
    std::uint64_t table = 0;
  };
  template <class T>
  struct Reference {
    using type = T*;
  };
  template <class T>
  struct Reference<Field<T>> {
    using type = PeerArray<T>;
  };
  template <class T>
  using Ref = typename Reference<T>::type;
};

template <class T>
struct PeerElement {
  std::uint64_t table, index;
};
template <class T>
struct PeerArray {
  std::uint64_t table = 0;
  PeerElement<T> operator[](std::uint64_t i) const { return {table, i}; }
};

/// The record key of a table's number and a row's key; it keeps their order.
inline std::string record_key(std::uint64_t table, std::uint64_t key) {
  std::string bytes(9, '\0');
  bytes[0] = static_cast<char>(table);
  for (unsigned i = 0; i < 8; ++i) bytes[1 + i] = static_cast<char>(key >> (56 - 8 * i));
  return bytes;
}
inline std::uint64_t key_of_record(std::string_view bytes) {
  std::uint64_t key = 0;
  for (unsigned i = 0; i < 8; ++i) key = key << 8 | static_cast<unsigned char>(bytes[1 + i]);
  return key;
}
inline constexpr std::uint64_t root_table = 255, first_array = 200;

class PeerTx {
 public:
  PeerTx(Peer::Transaction& transaction, const void* root, std::size_t root_bytes)
      : transaction_(transaction),
        root_(static_cast<const std::byte*>(root)),
        root_bytes_(root_bytes) {}

  template <class T>
  T get(const PeerModel::Field<T>& field) const {
    return field.value;
  }
  template <class T>
  void set(PeerModel::Field<T>& field, std::type_identity_t<T> value) {
    field.value = value;
    stored_to(&field);
  }
  template <class T>
  PeerArray<T> get(const PeerModel::Link<PeerModel::Field<T>>& link) const {
    return {link.table};
  }
  template <class T>
  void set(PeerModel::Link<PeerModel::Field<T>>& link, const PeerArray<T>& array) {
    link.table = array.table;
    stored_to(&link);
  }
  template <class T>
  T get(const PeerElement<T>& element) {
    T value{};
    if (!transaction_.get(record_key(element.table, element.index), buffer_) ||
        buffer_.size() != sizeof value)
      throw std::runtime_error("an array's element is not there");
    std::memcpy(&value, buffer_.data(), sizeof value);
    return value;
  }
  template <class T>
  void set(const PeerElement<T>& element, std::type_identity_t<T> value) {
    transaction_.put(record_key(element.table, element.index),
                     {reinterpret_cast<const char*>(&value), sizeof value});
  }
  /// An array; one per Root is enough.
  template <class Field>
  PeerModel::Ref<Field> allocate(std::uint64_t) {
    return {first_array};
  }
  template <class Row, class... Args>
  Row* make(Args... args) {
    return new (memory_.allocate(sizeof(Row), alignof(Row))) Row(args...);
  }

  // Used by PeerTable; `table` is an address within the root.
  template <class Row>
  Row* find(const void* table, std::uint64_t key) {
    const std::uint64_t number = number_of(table);
    for (const Loaded& l : rows_)
      if (l.table == number && l.key == key) return reinterpret_cast<Row*>(l.at);
    if (!transaction_.get(record_key(number, key), buffer_)) return nullptr;
    auto* const row = copy<Row>(memory_.allocate(sizeof(Row), alignof(Row)), buffer_);
    rows_.push_back({number, key, reinterpret_cast<std::byte*>(row), sizeof(Row), false});
    return row;
  }
  template <class Row>
  void insert(const void* table, std::uint64_t key, Row* row) {
    rows_.push_back({number_of(table), key, reinterpret_cast<std::byte*>(row), sizeof(Row), true});
  }
  /// Returns whether the row existed.
  bool erase(const void* table, std::uint64_t key) {
    const std::uint64_t number = number_of(table);
    const bool held = std::erase_if(rows_, [&](const Loaded& l) {
                        return l.table == number && l.key == key;
                      }) != 0;
    return transaction_.erase(record_key(number, key)) || held;
  }
  /// Calls f(key, row) for up to n rows from a key on; it does not see the changes of this
  /// transaction.
  template <class Row, class F>
  void scan(const void* table, std::uint64_t from, std::uint64_t n, F f) {
    const std::uint64_t number = number_of(table);
    alignas(Row) std::byte row[sizeof(Row)];
    transaction_.scan(record_key(number, from), [&](std::string_view key, std::string_view value) {
      if (n-- == 0 || static_cast<unsigned char>(key[0]) != number) return false;
      f(key_of_record(key), copy<Row>(row, value));
      return true;
    });
  }
  /// Called when the body has ended: puts the rows that it stored to.
  void put_changed() {
    for (const Loaded& l : rows_)
      if (l.changed)
        transaction_.put(record_key(l.table, l.key),
                         {reinterpret_cast<const char*>(l.at), l.bytes});
    if (root_changed_)
      transaction_.put(record_key(root_table, 0),
                       {reinterpret_cast<const char*>(root_), root_bytes_});
  }
  [[nodiscard]] Peer::Transaction& records() const { return transaction_; }

 private:
  struct Loaded {
    std::uint64_t table, key;
    std::byte* at;
    std::size_t bytes;
    bool changed;
  };

  template <class Row>
  static Row* copy(void* to, std::string_view bytes) {
    if (bytes.size() != sizeof(Row))
      throw std::runtime_error("found a row of " + std::to_string(bytes.size()) +
                               " bytes, expected " + std::to_string(sizeof(Row)));
    std::memcpy(to, bytes.data(), sizeof(Row));
    return static_cast<Row*>(to);
  }
  [[nodiscard]] std::uint64_t number_of(const void* table) const {
    const auto number = static_cast<std::uint64_t>(static_cast<const std::byte*>(table) - root_);
    if (number >= first_array)
      throw std::logic_error("a root of more than 200 bytes: table numbers do not suffice");
    return number;
  }
  void stored_to(const void* field) {
    const auto* const at = static_cast<const std::byte*>(field);
    for (auto l = rows_.rbegin(); l != rows_.rend(); ++l)
      if (at >= l->at && at < l->at + l->bytes) {
        l->changed = true;
        return;
      }
    // Otherwise it is a row that is not in a table yet.
    if (at >= root_ && at < root_ + root_bytes_) root_changed_ = true;
  }

  Peer::Transaction& transaction_;
  const std::byte* root_;
  std::size_t root_bytes_;
  bool root_changed_ = false;
  std::string buffer_;
  std::vector<Loaded> rows_;
  std::array<std::byte, 8192> first_;
  std::pmr::monotonic_buffer_resource memory_{first_.data(), first_.size()};
};

/// A table of rows, with the calls of tpcc_tree.hpp and open_table.hpp.
template <class Model, class Row>
class PeerTable {
 public:
  template <class Tx>
  Row* find(Tx& tx, std::uint64_t key) const {
    return tx.template find<Row>(this, key);
  }
  template <class Tx>
  void insert(Tx& tx, std::uint64_t key, Row* row) {
    tx.insert(this, key, row);
  }
  template <class Tx>
  bool erase(Tx& tx, std::uint64_t key) const {
    return tx.erase(this, key);
  }
  template <class Tx, class F>
  void scan(Tx& tx, std::uint64_t from, std::uint64_t n, F f) const {
    tx.template scan<Row>(this, from, n, f);
  }
  template <class Tx, class F>
  void each(Tx& tx, F f) const {
    scan(tx, 0, ~0ULL, f);
  }
  template <class Tx>
  void audit(Tx& tx, const std::string& name, std::vector<std::string>& problems) const {
    std::uint64_t before = 0, rows = 0, falling = 0;
    each(tx, [&](std::uint64_t key, const Row*) {
      if (rows++ != 0 && key <= before) ++falling;
      before = key;
    });
    if (falling != 0)
      problems.push_back(name + ": " + std::to_string(falling) + " rows stand behind a larger key");
  }

 private:
  char place_ = 0;  // gives the object an address of its own
};

template <class Root>
class PeerHost : public HostDefaults {
 public:
  PeerHost(const Setting& setting, const OpenPeer& open) : peer_(open(setting)) {
    static_assert(std::is_trivially_copyable_v<Root>);
  }

  template <class F>
  auto update(F&& f) {
    std::optional<std::invoke_result_t<F&, PeerTx&, Root&>> result;
    peer_->update([&](Peer::Transaction& transaction) {
      PeerTx tx(transaction, &root_, sizeof root_);
      result.emplace(f(tx, root_));
      tx.put_changed();
    });
    return std::move(*result);
  }
  template <class F>
  auto view(F&& f) {
    std::optional<std::invoke_result_t<F&, PeerTx&, const Root&>> result;
    peer_->view([&](Peer::Transaction& transaction) {
      PeerTx tx(transaction, &root_, sizeof root_);
      result.emplace(f(tx, static_cast<const Root&>(root_)));
    });
    return std::move(*result);
  }
  void filled() { peer_->filled(); }
  bool reopen() {
    peer_->reopen();
    peer_->view([&](Peer::Transaction& transaction) {
      std::string bytes;
      root_ = Root{};
      if (transaction.get(record_key(root_table, 0), bytes) && bytes.size() == sizeof root_)
        std::memcpy(&root_, bytes.data(), sizeof root_);
    });
    return true;
  }
  [[nodiscard]] std::string describe() { return peer_->describe(); }

 private:
  std::unique_ptr<Peer> peer_;
  Root root_{};
};

}  // namespace bench
