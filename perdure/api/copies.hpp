// SPDX-License-Identifier: BSD-3-Clause
//
// Copies: what opening does with structs behind pointers whose layout changes. Their objects are
// copied to new blocks before the switch; the switch gives the pool a root object that leads to the
// copies; after it the old objects are freed. perdure/evolve has the code.
//
// MOVE-1: before the switch nothing writes an object that the root object leads to, and the copies
// lead to copies only. So at each instant the root object leads to objects of one version, whole.
// Pointers that are values of the root's containers are the exception: they lead to the old objects
// until the work that follows the switch is done, and the list of copies says which copies they
// stand for. The old objects are freed only then.
// MOVE-2: the transaction that allocates a copy's block adds it to the catalog's list, and the one
// that frees a block of the list takes it from there. The list owns the copies before the switch,
// and the old objects after it. So after a crash at any point nothing is lost or owned twice, and
// the next opening continues; before the switch the program that has the pool may also go on: its
// opening frees the copies.
//
// Memory: about 64 bytes for each object that is copied.
// Thread safety: the opening's thread; no other thread has the pool yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "perdure/api/named_tx.hpp"
#include "perdure/api/plan.hpp"
#include "perdure/pool/catalog.hpp"

namespace perdure::detail {

/// An update's transaction of any type, behind virtual calls. Errors: those of Tx.
class CopyTx {
 public:
  CopyTx(const CopyTx&) = delete;
  CopyTx& operator=(const CopyTx&) = delete;
  /// As those of Tx.
  virtual void read_bytes(void* to, const void* from, std::size_t n) = 0;
  virtual void write_bytes(void* to, const void* from, std::size_t n) = 0;
  [[nodiscard]] virtual std::byte* alloc(std::size_t n) = 0;
  virtual void free(void* block) = 0;

 protected:
  CopyTx() = default;
  ~CopyTx() = default;
};
/// A CopyTx over a transaction.
template <class Tx>
class CopyTxOver final : public CopyTx {
 public:
  explicit CopyTxOver(Tx& tx) noexcept : tx_(tx) {}
  void read_bytes(void* to, const void* from, std::size_t n) override {
    tx_.read_bytes(to, from, n);
  }
  void write_bytes(void* to, const void* from, std::size_t n) override {
    tx_.write_bytes(to, from, n);
  }
  [[nodiscard]] std::byte* alloc(std::size_t n) override { return tx_.alloc(n); }
  void free(void* block) override { tx_.free(block); }

 private:
  Tx& tx_;
};

/// The size of the block that an object of `bytes` bytes gets.
[[nodiscard]] std::uint64_t block_for(std::uint64_t bytes) noexcept;

/// Frees up to `n` of the blocks that the list of copies owns. Returns whether none is left.
/// `catalog`: the catalog in the mapping.
[[nodiscard]] bool free_copies(CopyTx& tx, std::byte* catalog, std::uint64_t n);

/// The calls in the order of their use. Those before go_on() write nothing.
class Copies {
 public:
  /// The plan must outlive this object.
  Copies(const Plan& plan, std::byte* catalog) noexcept : plan_(plan), catalog_(catalog) {}

  /// The three calls by which all objects that have to be copied are found: begin(), lead_from()
  /// for each pointer in a container of the plan, and find(), which also finds the copies that an
  /// earlier opening made. `tx`: its reads are checked (checked.hpp). begin() may be called again.
  void begin();
  void lead_from(const PointerContainer& container, const void* to);
  void find(rtx& tx, const std::byte* root);
  /// Call it after find(), for each block that a container or the catalog owns.
  void owned(const void* block);
  /// Call it for each block of the pool's heap, with its address.
  void block(std::uint64_t address, std::uint64_t bytes);
  /// Why the objects can't be copied; empty: they can.
  [[nodiscard]] std::string problem();
  /// Whether the copies that are there can be used. Otherwise call free_copies(), then drop().
  [[nodiscard]] bool go_on() const noexcept { return go_on_; }
  void drop();
  [[nodiscard]] bool none() const noexcept { return objects_.empty(); }
  /// What the copying takes: "copies of 3 objects and their list, at least 4192 bytes".
  [[nodiscard]] std::string room() const;

  /// Allocates blocks for up to `n` further copies. `tx` may be rolled back: call reserved() when
  /// it has committed.
  void reserve(CopyTx& tx, std::uint64_t n);
  void reserved();
  [[nodiscard]] bool all_reserved() const noexcept { return next_ == objects_.size(); }

  /// Writes up to `n` further copies, if they are not as they should be. Call copied() when `tx`
  /// has committed.
  void copy(CopyTx& tx, std::uint64_t n);
  /// Calls `progress` with the name and the number of the copies so far of each struct of which the
  /// transaction had some.
  void copied(const Migration& migrate);
  [[nodiscard]] bool all_copied() const noexcept { return written_ == objects_.size(); }

  /// Makes the pointers in a new root object lead to the copies.
  void lead_to_copies(std::byte* root) const { lead_to_copies(root, plan_.root_pointers); }

 private:
  struct Object {
    std::uint64_t at, copy;  ///< addresses; copy 0: it has none yet
    std::uint32_t kind;      ///< the index in Plan::copied
    bool is_block;           ///< a block of the heap begins there, large enough
  };
  void add(std::uint64_t at, std::size_t kind, const std::string& from);
  void find_list(rtx& tx);
  void lead_to_copies(std::byte* object, const std::vector<PointerPlace>& pointers) const;
  void image(CopyTx& tx, const Object& object);

  const Plan& plan_;
  std::byte* const catalog_;
  std::vector<Object> objects_;
  std::unordered_map<std::uint64_t, std::size_t> by_address_;
  std::vector<std::uint64_t> others_;  ///< pointers to objects that are not copied
  std::uint64_t root_ = 0;
  bool go_on_ = true;
  std::string problem_;
  std::size_t next_ = 0, written_ = 0;  ///< of objects_
  std::size_t tried_ = 0;               ///< objects that the last copy() handled
  std::vector<std::pair<std::size_t, std::uint64_t>> made_;  ///< by the last reserve()
  std::vector<std::uint64_t> counts_;                        ///< copies so far, by struct
  std::vector<std::byte> image_;
  std::byte* image_at_ = nullptr;  ///< in image_, at a multiple of 64
};

}  // namespace perdure::detail
