// SPDX-License-Identifier: BSD-3-Clause
//
// pmemobj: the workloads over libpmemobj (PMDK), with transactions as its users write them:
// TX_BEGIN, one snapshot of an object before the first store to it (TX_ADD's function), or of a
// field where the transaction changes only one (TX_ADD_FIELD's), none of a new object, the
// functions of TX_NEW and TX_FREE, PMEMoid links resolved by pmemobj_direct.
// Thread safety: libpmemobj does not isolate. On one thread no lock is taken; on more, a PMEMrwlock
// of the pool guards the structure, which the transaction itself takes (TX_PARAM_RWLOCK), or a
// reader takes for reading.
#pragma once

#include <libpmemobj.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <type_traits>

#include "bench/systems/host.hpp"
#include "bench/systems/pmem_delays.hpp"

namespace bench {

/// A PMEMoid with its address, resolved once, as careful users keep D_RW's result.
template <class T>
struct PmemRef {
  PMEMoid oid = OID_NULL;
  T* direct = nullptr;

  explicit operator bool() const { return direct != nullptr; }
  T& operator*() const { return *direct; }
  T* operator->() const { return direct; }
  T& operator[](std::size_t i) const { return direct[i]; }
  friend bool operator==(const PmemRef& a, const PmemRef& b) { return a.direct == b.direct; }
};

/// For a node whose type follows from its place (workloads/bplus_tree.hpp).
template <class To, class From>
PmemRef<To> recast(const PmemRef<From>& ref) noexcept {
  return {ref.oid, reinterpret_cast<To*>(ref.direct)};
}

struct PmemModel {
  template <class T>
  struct Field {
    Field(T v) : value(v) {}  // NOLINT(google-explicit-constructor)
    T value;
  };
  template <class T>
  using Ref = PmemRef<T>;
  template <class T>
  struct Link {
    Link(PmemRef<T> r) : oid(r.oid) {}  // NOLINT(google-explicit-constructor)
    PMEMoid oid;
  };
};

class PmemTx {
 public:
  template <class T>
  using Field = PmemModel::Field<T>;
  template <class T>
  using Link = PmemModel::Link<T>;

  template <class T>
  T get(const Field<T>& field) const {
    return field.value;
  }
  template <class T>
  PmemRef<T> get(const Link<T>& link) const {
    const PMEMoid oid = link.oid;
    return {oid, static_cast<T*>(pmemobj_direct(oid))};
  }
  /// One snapshot of the whole object, so that set() takes none of its fields
  /// (workloads/snapshot.hpp).
  template <class T>
  void snapshot(T& object) {
    if (has(&object, sizeof object)) return;
    pmemobj_tx_add_range_direct(&object, sizeof object);
    note(&object, sizeof object);
  }
  template <class T>
  void set(Field<T>& field, std::type_identity_t<T> value) {
    if (!has(&field, sizeof field)) pmemobj_tx_add_range_direct(&field, sizeof field);
    field.value = value;
  }
  template <class T>
  void set(Link<T>& link, std::type_identity_t<PmemRef<T>> to) {
    if (!has(&link, sizeof link)) pmemobj_tx_add_range_direct(&link, sizeof link);
    link.oid = to.oid;
  }
  template <class T, class... Args>
  PmemRef<T> make(Args... args) {
    // Aborts the transaction if there is no space.
    const PMEMoid oid = pmemobj_tx_alloc(sizeof(T), 1);
    auto* t = static_cast<T*>(pmemobj_direct(oid));
    new (t) T(args...);
    note(t, sizeof(T));
    return {oid, t};
  }
  template <class T>
  void destroy(const PmemRef<T>& ref) const {
    pmemobj_tx_free(ref.oid);
  }
  template <class T>
  PmemRef<T> allocate(std::size_t n) {
    const PMEMoid oid = pmemobj_tx_alloc(n * sizeof(T), 2);
    auto* t = static_cast<T*>(pmemobj_direct(oid));
    note(t, n * sizeof(T));
    return {oid, t};
  }

 private:
  // Addresses are compared as numbers: they may belong to different objects.
  [[nodiscard]] bool has(const void* at, std::size_t n) const noexcept {
    const auto from = reinterpret_cast<std::uintptr_t>(at);
    return from >= begin_ && from + n <= end_;
  }
  void note(const void* at, std::size_t n) noexcept {
    begin_ = reinterpret_cast<std::uintptr_t>(at);
    end_ = begin_ + n;
  }
  // The object that was last snapshotted, or made (it needs no snapshot; TX_END flushes it). What
  // lies elsewhere is left to libpmemobj, which takes no second snapshot of what has one.
  std::uintptr_t begin_ = 0, end_ = 0;
};

template <class Root>
class PmemHost : public HostDefaults {
 public:
  static constexpr std::size_t bytes = std::size_t{4} << 30;  // of a sparse file

  explicit PmemHost(const Setting& setting) : path_(setting.directory + "/pmemobj") {
    set_pmem_delays(setting.delays);
    pool_ = pmemobj_create(path_.c_str(), "perdure-bench", bytes, 0600);
    find_root();
  }
  PmemHost(const PmemHost&) = delete;
  PmemHost& operator=(const PmemHost&) = delete;
  ~PmemHost() { pmemobj_close(pool_); }

  void prepare(unsigned threads) { shared_ = threads > 1; }

  template <class F>
  auto update(F&& f) {
    using Result = std::invoke_result_t<F&, PmemTx&, Root&>;
    volatile Result result{};  // set within a region that setjmp guards
    volatile bool aborted = false;
    const enum pobj_tx_param lock = shared_ ? TX_PARAM_RWLOCK : TX_PARAM_NONE;
    TX_BEGIN_PARAM(pool_, lock, &root_->lock, TX_PARAM_NONE) {
      PmemTx tx;
      result = f(tx, *data());
    }
    TX_ONABORT { aborted = true; }
    TX_END
    if (aborted)
      throw std::runtime_error(std::string("libpmemobj: transaction aborted: ") +
                               pmemobj_errormsg());
    return static_cast<Result>(result);
  }

  template <class F>
  auto view(F&& f) {
    if (shared_) pmemobj_rwlock_rdlock(pool_, &root_->lock);
    PmemTx tx;
    auto result = f(tx, static_cast<const Root&>(*data()));
    if (shared_) pmemobj_rwlock_unlock(pool_, &root_->lock);
    return result;
  }

  bool reopen() {
    pmemobj_close(pool_);
    pool_ = pmemobj_open(path_.c_str(), "perdure-bench");
    find_root();
    return true;
  }

  [[nodiscard]] std::string describe() const {
    const char* forced = std::getenv("PMEM_IS_PMEM_FORCE");
    return "libpmemobj (API " + std::to_string(PMEMOBJ_MAJOR_VERSION) + "." +
           std::to_string(PMEMOBJ_MINOR_VERSION) +
           "), PMEM_IS_PMEM_FORCE=" + (forced != nullptr ? forced : "unset") + pmem_delays_text();
  }

 private:
  struct Whole {
    PMEMrwlock lock;
    alignas(64) std::byte root[sizeof(Root)];
  };
  Root* data() { return reinterpret_cast<Root*>(root_->root); }
  void find_root() {
    if (pool_ == nullptr) throw std::runtime_error(path_ + ": libpmemobj: " + pmemobj_errormsg());
    // It is zero at first: null links.
    root_ = static_cast<Whole*>(pmemobj_direct(pmemobj_root(pool_, sizeof(Whole))));
  }

  std::string path_;
  PMEMobjpool* pool_ = nullptr;
  Whole* root_ = nullptr;
  bool shared_ = false;
};

}  // namespace bench
