// SPDX-License-Identifier: BSD-3-Clause
//
// SoftWrAP's calls as the paper has them (papers: SoftWrAP, MSST '15, section IV, Algorithms 2 and
// 3): wrapOpen and wrapClose around an atomic region, wrapLoad and wrapStore for scalars, wrapRead
// and wrapWrite for objects, pmalloc. They are for programs that are written, or generated, against
// the paper; other programs use pool.update.
//
//     perdure::SoftWrAP<Root> sw(path);
//     sw.wrapOpen();
//     sw.wrapStore(&sw.root().x, 1);
//     sw.wrapClose();                      // durable
//
// The paper's calls name no pool and no thread; here they belong to a pool, and a wrap belongs to
// the calling thread. Wraps nest, flat: the outermost is the transaction. A scalar smaller than a
// word is stored with the rest of its word: wraps may not share words, even if they store to
// different bytes of one.
// Not in the paper: wrapAbort, wrapFlip's name, pfree, and the exceptions. Outside a wrap, wrapLoad
// and wrapRead are a wrap of their own.
// Crash invariants: SOFTWRAP-1 to SOFTWRAP-4 (papers/softwrap/softwrap.hpp).
// Errors: as in Pool, and the constructor throws std::bad_alloc too. A wrap may rely on half of its
// thread's log bucket, and on half an alias table. A wrap that needs more and finds no more, or to
// which pmalloc would give memory that is being retired, is rolled back, and the call throws
// `busy`: open the wrap again. After any exception within a wrap except `invalid`, the wrap has
// been rolled back, and nothing is open.
// Thread safety: any thread may make every call. The caller isolates (section IV-D).
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

namespace perdure::papers::softwrap {

/// Where the aliases of a wrap are.
enum class Aliasing : std::uint8_t {
  of_engine,  ///< as the pool's engine has them: "softwrap" global, "softwrap-local" local
  global,     ///< in tables that all wraps share; the default of the paper
  /// In one of the wrap's own (section IV-D). When it has closed, its values are in the data
  /// region, but for words of which a table has an alias: these are there.
  local
};

/// The options of wrapOpen (Algorithm 3).
struct WrapOptions {
  Aliasing aliasing = Aliasing::of_engine;  ///< of this wrap
};

/// The part that does not depend on the root's type.
class WrapCalls {
 public:
  WrapCalls(const WrapCalls&) = delete;
  WrapCalls& operator=(const WrapCalls&) = delete;
  /// Aborts the calling thread's wrap, and closes the pool. A failure then is not reported: the
  /// next opening recovers.
  ~WrapCalls();

  /// The options of a nested wrap count for nothing: it is the outermost one's. Throws
  /// `unsupported` for global aliasing in a pool of engine "softwrap-local", which has no tables.
  void wrapOpen(WrapOptions options = {});
  /// Closes a wrap. The outermost is durable when this returns.
  void wrapClose();
  /// Aborts the wrap, however deeply it is nested: all of it is undone.
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
  /// Copies n bytes of the pool to DRAM.
  void wrapRead(void* to, const void* source, std::size_t n);
  /// Copies n bytes of DRAM to the pool.
  void wrapWrite(void* destination, const void* from, std::size_t n);
  /// Replaces the object to which *pointer leads (null: none), for objects that change as a whole
  /// (section V-C.2, "pointer flipping"): a new block gets the n bytes, the pointer its address,
  /// and the old block is freed. The bytes go past the log and the aliases; a wrap that has
  /// replaced some has one more fence, for all of them. The log takes 48 bytes for an object, more
  /// for one of several chunks of 64 KiB, and the first 512 bytes of each chunk, where a bitmap may
  /// have been; and all of it, if words of its block still have aliases. Throws `invalid`, with
  /// nothing changed, if *pointer leads to no block.
  void wrapFlip(void** pointer, const void* object, std::size_t n);
  /// The same of a plain value.
  template <class T>
  void wrapFlip(T** pointer, const std::type_identity_t<T>& object) {
    static_assert(plain_value<T>, "perdure::paper: an object is trivially copyable");
    wrapFlip(reinterpret_cast<void**>(pointer), std::addressof(object), sizeof object);
  }
  /// Returns a block whose contents are undefined; it is freed if the wrap is aborted or never
  /// closes.
  [[nodiscard]] void* pmalloc(std::size_t bytes);
  /// Frees a block, at the close.
  void pfree(void* block);

  /// Takes a checkpoint: returns when the data region has all that is closed, and the logs are
  /// empty. Throws `invalid` inside a wrap.
  void checkpoint();
  [[nodiscard]] engine::Stats stats();
  [[nodiscard]] pool::OpenPool& file() noexcept;
  /// Closes the pool. Throws `invalid` while a wrap is open.
  void close();

  class State;

 protected:
  WrapCalls(const std::string& path, const Options& options, const detail::RootType& root,
            std::unique_ptr<medium::Medium> medium);
  [[nodiscard]] void* root_address() const noexcept;

 private:
  void must_have(const void* address, std::size_t n) const;
  std::unique_ptr<State> state_;
};

/// One pool with a root of type Root: a plain struct, with a `layout_id` that names its layout. Its
/// data region may be older than what wraps have closed: read it by wrapLoad and wrapRead.
template <class Root>
class SoftWrAP : public WrapCalls {
  static_assert(plain_value<Root>, "perdure::SoftWrAP: a root is a plain struct");

 public:
  /// Opens and recovers the pool, or creates it. `options.engine`: "softwrap" (global aliasing),
  /// which a new pool has unless another is named, or "softwrap-local". `medium`: a new pool on it
  /// (tests).
  explicit SoftWrAP(const std::string& path, const Options& options = {},
                    std::unique_ptr<medium::Medium> medium = nullptr)
      : WrapCalls(path, options, detail::root_type<Root>(), std::move(medium)) {}
  [[nodiscard]] Root& root() const noexcept { return *static_cast<Root*>(root_address()); }
};

}  // namespace perdure::papers::softwrap
