// SPDX-License-Identifier: BSD-3-Clause
//
// SoftWrAP's calls as the paper has them (papers: SoftWrAP, MSST '15, section IV, Algorithms 2 and
// 3): wrapOpen and wrapClose around an atomic region, wrapLoad and wrapStore for scalars, wrapRead
// and wrapWrite for objects, pmalloc. For programs that are written, or generated, against the
// paper; others have pool.update.
//
//     perdure::paper::SoftWrAP<Root> sw(path);
//     sw.wrapOpen();
//     sw.wrapStore(&sw.root().x, 1);
//     sw.wrapClose();                      // durable
//
// The paper's calls name no pool and no thread; here they are a pool's, and a wrap is the calling
// thread's. Wraps nest, flat: the outermost is the transaction. A scalar smaller than a word is
// stored with the rest of its word: words, not bytes, are what wraps may not share.
// Not in the paper: wrapAbort, pfree, and what is thrown. Outside a wrap wrapLoad and wrapRead are
// a wrap of their own.
// Crash invariants: S1 to S3 (papers/softwrap/softwrap.hpp).
// Errors: as Pool's, and std::bad_alloc from the constructor, too. A wrap may rely on half of its
// thread's log bucket, and on half an alias table; one that needs more and finds no more, or to
// which pmalloc would give memory that is on its way home, is rolled back, and the call throws
// `busy`: open it again. Whatever a call throws within a wrap but `invalid`: the wrap has been
// rolled back, and nothing is open.
// Thread safety: every call from any thread. Isolation is the caller's (section IV-D).
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

/// The part without the root's type.
class WrapCalls {
 public:
  WrapCalls(const WrapCalls&) = delete;
  WrapCalls& operator=(const WrapCalls&) = delete;
  /// Aborts what is open, and closes in order. What goes wrong then is not told: the next opening
  /// recovers.
  ~WrapCalls();

  void wrapOpen();
  /// The outermost: durable when this returns.
  void wrapClose();
  /// However deep: all of the wrap is undone.
  void wrapAbort();
  template <class T>
  [[nodiscard]] T wrapLoad(const T* address) {
    static_assert(plain_value<T>, "perdure::paper: a scalar is trivially copyable");
    std::remove_cv_t<T> value;
    wrapRead(&value, address, sizeof value);
    return value;
  }
  template <class T>
  void wrapStore(T* address, std::type_identity_t<T> value) {
    static_assert(plain_value<T>, "perdure::paper: a scalar is trivially copyable");
    wrapWrite(address, &value, sizeof value);
  }
  /// n bytes of the pool to DRAM.
  void wrapRead(void* to, const void* source, std::size_t n);
  /// n bytes of DRAM to the pool.
  void wrapWrite(void* destination, const void* from, std::size_t n);
  /// A block whose contents are undefined; goes back if the wrap is aborted, or never closes.
  [[nodiscard]] void* pmalloc(std::size_t bytes);
  /// At the close.
  void pfree(void* block);

  /// Returns when home has all that is closed, and the logs are empty. `invalid` inside a wrap.
  void checkpoint();
  [[nodiscard]] engine::Stats stats();
  [[nodiscard]] pool::PoolFile& file() noexcept;
  /// `invalid` while a wrap is open.
  void close();

  class State;

 protected:
  WrapCalls(const std::string& path, const Options& options, const detail::RootType& root,
            std::unique_ptr<medium::Medium> medium);
  [[nodiscard]] void* root_address() const noexcept;

 private:
  std::unique_ptr<State> state_;
};

/// One pool with a root of type Root: a plain struct, with a `layout_id` that names its layout.
/// What it has in home may be older than what wraps have closed: read it by wrapLoad and wrapRead.
template <class Root>
class SoftWrAP : public WrapCalls {
  static_assert(plain_value<Root>, "perdure::paper::SoftWrAP: a root is a plain struct");

 public:
  /// Opens, and recovers, or creates. `options.engine`: "softwrap" (global aliasing), which a new
  /// pool has unless told, or "softwrap-local". `medium`: a new pool on it (tests).
  explicit SoftWrAP(const std::string& path, const Options& options = {},
                    std::unique_ptr<medium::Medium> medium = nullptr)
      : WrapCalls(path, options, detail::root_type<Root>(), std::move(medium)) {}
  [[nodiscard]] Root& root() const noexcept { return *static_cast<Root*>(root_address()); }
};

}  // namespace perdure::paper
