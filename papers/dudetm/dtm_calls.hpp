// SPDX-License-Identifier: BSD-3-Clause
//
// DudeTM's calls as the paper has them (ASPLOS '17, section 3.2, Algorithms 1 and 2): dtmBegin,
// dtmEnd, dtmAbort, dtmRead, dtmWrite. They are for programs that are written, or generated,
// against the paper; other programs use pool.update.
//
//     perdure::DudeTM<Root> dtm(path);
//     dtm.transaction([&] {
//       dtm.dtmBegin();
//       dtm.dtmWrite(&dtm.root().x, dtm.dtmRead(&dtm.root().x) + 1);
//       dtm.dtmEnd();                      // durable, or (Options::durability async) durable when
//                                          durableId() has reached the ID that it returned
//     });
//
// The paper's calls name no pool and no thread. Here they are members of a pool's object, and a
// transaction belongs to the calling thread. When transactions conflict, TinySTM returns to
// dtmBegin by a long jump; here the call rolls back and throws DtmConflict, and transaction() runs
// its function again. dtmAbort does not run it again. A scalar smaller than a word is stored with
// the rest of its word. pmalloc and pfree (3.5) and the durable id (3.2) are in the paper's text,
// not in its five calls. Errors: those of Pool, and std::bad_alloc from the constructor; `invalid`
// for a call that is not allowed at this point. After any other exception the transaction has been
// rolled back. Thread safety: any thread may make any call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "papers/names.hpp"
#include "perdure/api/layout.hpp"
#include "perdure/api/options.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::papers::dudetm {

/// Thrown when the transaction conflicted with another one, or lacked log space for a moment. It
/// has been rolled back, and may be begun again.
struct DtmConflict {};

/// The part that does not depend on the root's type.
class DtmCalls {
 public:
  DtmCalls(const DtmCalls&) = delete;
  DtmCalls& operator=(const DtmCalls&) = delete;
  /// Aborts this thread's open transaction, and closes the pool. An error is not reported: the next
  /// opening recovers the pool.
  ~DtmCalls();

  void dtmBegin();
  /// Returns the transaction's ID. If it wrote nothing, returns the ID of the newest transaction
  /// that it may have seen.
  std::uint64_t dtmEnd();
  void dtmAbort();
  template <class T>
  [[nodiscard]] T dtmRead(const T* address) {
    static_assert(plain_value<T>, "perdure::paper: a value is trivially copyable");
    std::remove_cv_t<T> value;
    read(&value, address, sizeof value);
    return value;
  }
  template <class T>
  void dtmWrite(T* address, std::type_identity_t<T> value) {
    static_assert(plain_value<T>, "perdure::paper: a value is trivially copyable");
    write(address, &value, sizeof value);
  }
  /// Returns a block whose contents are undefined. It is freed if the transaction is aborted.
  [[nodiscard]] void* pmalloc(std::size_t bytes);
  /// Frees the block when the transaction commits.
  void pfree(void* block);
  /// Calls f until it does not throw DtmConflict. f calls dtmBegin first, and dtmEnd or dtmAbort
  /// last.
  template <class F>
  decltype(auto) transaction(F&& f) {
    for (;;) try {
        return f();
      } catch (const DtmConflict&) {
        again();
      }
  }

  /// Returns the ID up to which every transaction is durable (3.2).
  [[nodiscard]] std::uint64_t durableId();
  /// Returns when durableId() is at least `id`. Throws error(invalid) for an ID that no transaction
  /// has.
  void wait(std::uint64_t id);
  [[nodiscard]] engine::Stats stats();
  [[nodiscard]] pool::OpenPool& file() noexcept;
  /// Closes the pool. Throws error(invalid) while a transaction is open.
  void close();

  class State;

 protected:
  DtmCalls(const std::string& path, const Options& options, const detail::RootType& root,
           std::unique_ptr<medium::Medium> medium);
  [[nodiscard]] void* root_address() const noexcept;

 private:
  void read(void* to, const void* source, std::size_t n);
  void write(void* destination, const void* from, std::size_t n);
  void must_be_in_pool(const void* address, std::size_t n);
  void again() noexcept;
  std::unique_ptr<State> state_;
};

/// One pool with a root of type Root: a plain struct, with a `layout_id` that names its layout.
/// Programs read it by dtmRead.
template <class Root>
class DudeTM : public DtmCalls {
  static_assert(plain_value<Root>, "perdure::DudeTM: a root is a plain struct");

 public:
  /// Opens and recovers the pool, or creates it. `options.engine` is one of dudetm's variants. With
  /// `medium`, which tests use, a new pool is made on it.
  explicit DudeTM(const std::string& path, const Options& options = {},
                  std::unique_ptr<medium::Medium> medium = nullptr)
      : DtmCalls(path, options, detail::root_type<Root>(), std::move(medium)) {}
  /// Where the shadow is paged, a plain read of the root shows at least what has been replayed
  /// (Reproduced).
  [[nodiscard]] Root& root() const noexcept { return *static_cast<Root*>(root_address()); }
};

}  // namespace perdure::papers::dudetm
