// SPDX-License-Identifier: BSD-3-Clause
//
// DudeTM's calls as the paper has them (papers: DudeTM, ASPLOS '17, section 3.2, Algorithms 1 and
// 2): dtmBegin, dtmEnd, dtmAbort, dtmRead, dtmWrite. For programs that are written, or generated,
// against the paper; others have pool.update.
//
//     perdure::paper::DudeTM<Root> dtm(path);
//     dtm.transaction([&] {
//       dtm.dtmBegin();
//       dtm.dtmWrite(&dtm.root().x, dtm.dtmRead(&dtm.root().x) + 1);
//       dtm.dtmEnd();                      // durable, or (Options::durability async) durable when
//                                          durableId() has got to what it returned
//     });
//
// The paper's calls name no pool and no thread; here they are a pool's, and a transaction is the
// calling thread's. TinySTM goes back to dtmBegin by a long jump when transactions conflict; here
// the call throws DtmConflict, rolled back, and transaction() runs its function again. dtmAbort
// does not run again. A scalar smaller than a word is stored with the rest of its word.
// Not in the paper's five, though in its text: pmalloc and pfree (3.5), the durable id (3.2).
// Errors: as Pool's, and std::bad_alloc from the constructor, too; `invalid` for a call out of
// place. Whatever else a call throws: the transaction has been rolled back.
// Thread safety: every call from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "perdure/api/layout.hpp"
#include "perdure/api/options.hpp"
#include "perdure/pool/pool_file.hpp"

namespace perdure::paper {

/// The transaction met another, or lacked room for a moment: it has been rolled back, and may be
/// begun again.
struct DtmConflict {};

/// The part without the root's type.
class DtmCalls {
 public:
  DtmCalls(const DtmCalls&) = delete;
  DtmCalls& operator=(const DtmCalls&) = delete;
  /// Aborts what is open on this thread, and closes in order. What goes wrong then is not told: the
  /// next opening recovers.
  ~DtmCalls();

  void dtmBegin();
  /// Returns the transaction's ID; of one that wrote nothing, the ID of the newest that it may have
  /// seen.
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
  /// A block whose contents are undefined; goes back if the transaction is aborted.
  [[nodiscard]] void* pmalloc(std::size_t bytes);
  /// At the end.
  void pfree(void* block);
  /// Calls f until no DtmConflict comes out of it. Within f: dtmBegin first, dtmEnd or dtmAbort
  /// last.
  template <class F>
  decltype(auto) transaction(F&& f) {
    for (;;) try {
        return f();
      } catch (const DtmConflict&) {
        again();
      }
  }

  /// Every transaction with an ID up to it is durable (3.2).
  [[nodiscard]] std::uint64_t durableId();
  /// Returns when durableId() is `id` at least. Throws error(invalid) for an ID that was not given.
  void wait(std::uint64_t id);
  [[nodiscard]] engine::Stats stats();
  [[nodiscard]] pool::PoolFile& file() noexcept;
  /// `invalid` while a transaction is open.
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
/// Read it by dtmRead.
template <class Root>
class DudeTM : public DtmCalls {
  static_assert(plain_value<Root>, "perdure::paper::DudeTM: a root is a plain struct");

 public:
  /// Opens, and recovers, or creates. `options.engine`: one of dudetm's variants. `medium`: a new
  /// pool on it (tests).
  explicit DudeTM(const std::string& path, const Options& options = {},
                  std::unique_ptr<medium::Medium> medium = nullptr)
      : DtmCalls(path, options, detail::root_type<Root>(), std::move(medium)) {}
  /// A plain read of it shows what has been Reproduced at least, where the shadow is paged.
  [[nodiscard]] Root& root() const noexcept { return *static_cast<Root*>(root_address()); }
};

}  // namespace perdure::paper
