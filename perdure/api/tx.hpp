// SPDX-License-Identifier: BSD-3-Clause
//
// Tx and ReadTx: the argument of a transaction's lambda. Everything here is static: an access is a
// few inlined instructions.
//
// tx(field) is a proxy (in update()) or a value (in view()); read/write do the same without a
// proxy; read_bytes/write_bytes move any number of bytes at any alignment; alloc/free/make/destroy
// work on the pool's heap and are undone when the transaction is. All of pool memory is accessed in
// 8-byte words, so under isolation::caller two threads must not work in one word.
// Thread safety: a Tx belongs to the thread and the call it was passed to; keeping it is an error.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include "perdure/api/image.hpp"
#include "perdure/api/owned.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/base/status.hpp"

namespace perdure {

/// Thrown by update() after perdure::abort(tx): the transaction was rolled back on request.
class aborted : public std::exception {
 public:
  /// A text that says the transaction was rolled back on request.
  [[nodiscard]] const char* what() const noexcept override {
    return "the transaction was rolled back by perdure::abort";
  }
};

/// The transaction of a view(): reads pool data. Its Transaction is the engine's; a lambda takes it
/// as `auto& tx`.
///
/// Reading may throw what makes the engine run the lambda again: don't catch it (`catch (...)`)
/// without throwing it on. A ReadTx belongs to the thread and the call that it was passed to.
template <class Transaction>
class ReadTx {
 public:
  /// A transaction of this type changes nothing.
  static constexpr bool read_only = true;

  /// Made by view(), around the engine's transaction.
  explicit ReadTx(Transaction& transaction) noexcept : ReadTx(transaction, transaction.direct()) {}
  /// As above, where it is known whether loads may read the pool's memory themselves.
  ReadTx(Transaction& transaction, bool direct) noexcept
      : transaction_(transaction), direct_(direct) {}
  ReadTx(const ReadTx&) = delete;
  ReadTx& operator=(const ReadTx&) = delete;

  /// The field's value.
  template <class T>
  [[nodiscard]] T operator()(const p<T>& x) {
    return load<T>(access::address(x));
  }
  /// The field's value, whose fields are again reached through the transaction.
  template <class T>
  [[nodiscard]] T* operator()(const ptr<T>& x) {
    return load<T*>(access::address(x));
  }
  /// The field's value.
  template <class T>
  [[nodiscard]] T read(const p<T>& x) {
    return load<T>(access::address(x));
  }
  /// The field's value, whose fields are again reached through the transaction.
  template <class T>
  [[nodiscard]] T* read(const ptr<T>& x) {
    return load<T*>(access::address(x));
  }

  /// Copies n bytes of pool memory to `to`.
  void read_bytes(void* to, const void* from, std::size_t n) {
    if (direct_) {
      std::memcpy(to, from, n);
      return;
    }
    auto* out = static_cast<std::byte*>(to);
    auto at = reinterpret_cast<std::uintptr_t>(from);
    while (n > 0) {
      if constexpr (requires(Transaction& c, std::uint64_t* w) { c.read_words(w, w, n); })
        if ((at & 7) == 0 && n >= 64) {
          std::uint64_t words[128];
          const std::size_t count = n / 8 < 128 ? n / 8 : 128;
          transaction_.read_words(words, reinterpret_cast<const std::uint64_t*>(at), count);
          std::memcpy(out, words, count * 8);
          out += count * 8, at += count * 8, n -= count * 8;
          continue;
        }
      const std::size_t skip = at & 7;
      const std::size_t take = 8 - skip < n ? 8 - skip : n;
      const std::uint64_t word = read_word(reinterpret_cast<const std::uint64_t*>(at - skip));
      std::memcpy(out, reinterpret_cast<const std::byte*>(&word) + skip, take);
      out += take;
      at += take;
      n -= take;
    }
  }

  /// Call this before memory is taken for n bytes of the pool that are about to be read: a
  /// transaction over data that may be damaged throws error(corrupt) where `from` and n can't be
  /// right. Every other transaction does nothing.
  void expect(const void* from, std::size_t n) {
    if constexpr (requires(Transaction& c) { c.expect(from, n); })
      if (!direct_) transaction_.expect(from, n);
  }

 protected:
  /// The T at an address in the pool.
  template <class T>
  [[nodiscard]] T load(const T* a) {
    static_assert(std::is_trivially_copyable_v<T>);
    if constexpr (sizeof(T) == 8 && alignof(T) == 8) {
      const std::uint64_t word = read_word(reinterpret_cast<const std::uint64_t*>(a));
      T value;
      // void*: T may have initialisers, which makes it "non-trivial" for GCC.
      std::memcpy(static_cast<void*>(&value), &word, 8);
      return value;
    } else {
      T value;
      read_bytes(&value, a, sizeof(T));
      return value;
    }
  }
  // The way it reads does not change while it runs. It is asked for once, so that the compiler can
  // keep it in a register or knows it.
  /// The word at an 8-aligned address in the pool.
  [[nodiscard]] [[gnu::always_inline]] std::uint64_t read_word(const std::uint64_t* a) {
    return __builtin_expect(direct_, 1) ? *a : transaction_.read(a);
  }

  /// The calling thread's transaction of the engine.
  Transaction& transaction_;
  /// Whether loads may read the pool's memory themselves.
  const bool direct_;
};

template <class Tx, class T>
class Ref;
template <class Tx, class T>
class PtrRef;

namespace detail {
/// Changes of a transaction, each of which it is told of if it throws (REFUSED-1).
template <class Transaction>
class TellingWriter {
 public:
  /// Made by Tx, around the engine's transaction.
  explicit TellingWriter(Transaction& transaction) noexcept : transaction_(transaction) {}
  /// Writes a word of the pool.
  void write(std::uint64_t* a, std::uint64_t v) {
    change([&] { transaction_.write(a, v); });
  }
  /// Writes n words of the pool.
  void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) {
    change([&] { transaction_.write_words(a, src, n); });
  }
  /// As Tx::alloc.
  std::byte* alloc(std::uint64_t bytes) {
    return change([&] { return transaction_.alloc(bytes); });
  }
  /// As Tx::free.
  void free(void* block) {
    try {
      transaction_.free(block);
    } catch (...) {
      transaction_.refusal().keep_of_free();
      throw;
    }
  }
  /// As Tx::keep_refusal.
  void keep_refusal() noexcept { transaction_.refusal().keep(); }

 private:
  template <class F>
  [[gnu::always_inline]] decltype(auto) change(F&& f) {
    try {
      return f();
    } catch (...) {
      transaction_.refusal().keep();
      throw;
    }
  }
  Transaction& transaction_;
};

/// What an update writes through: the engine's transaction, or what that transaction names.
template <class Transaction>
struct WriterOf {
  /// A reference: nothing is between.
  using type = Transaction&;
};
/// A transaction of an engine that is compiled in.
template <class Transaction>
concept tells_of_refusals = requires(Transaction& t) { t.refusal(); };
/// One with a writer of its own.
template <class Transaction>
concept names_a_writer =
    tells_of_refusals<Transaction> && requires { typename Transaction::Writer; };
/// That of an engine that is compiled in.
template <tells_of_refusals Transaction>
struct WriterOf<Transaction> {
  /// Made when the lambda begins, ended when it ends.
  using type = TellingWriter<Transaction>;
};
/// An engine's own (engine/shadow/writer.hpp).
template <names_a_writer Transaction>
struct WriterOf<Transaction> {
  /// Made when the lambda begins, ended when it ends.
  using type = typename Transaction::Writer;
};

template <class T>
inline constexpr bool is_proxy = false;  ///< Ref or PtrRef
/// A proxy: see above.
template <class Tx, class T>
inline constexpr bool is_proxy<Ref<Tx, T>> = true;
/// A proxy: see above.
template <class Tx, class T>
inline constexpr bool is_proxy<PtrRef<Tx, T>> = true;

/// Returns the value of a proxy; returns any other argument as it is.
template <class U>
constexpr decltype(auto) value_of(U&& u) {
  if constexpr (is_proxy<std::remove_cvref_t<U>>)
    return static_cast<typename std::remove_cvref_t<U>::value_type>(std::forward<U>(u));
  else
    return std::forward<U>(u);
}
}  // namespace detail

/// The transaction of an update(): reads and changes pool data, allocates and frees blocks. Its
/// Transaction is the engine's; a lambda takes it as `auto& tx`.
///
/// A change may throw what makes the engine run the lambda again, or error(full, too_big,
/// out_of_memory, read_only, poisoned) or std::bad_alloc. Both end the transaction: if a lambda
/// catches one of them and returns, update() rolls back and throws it again (REFUSED-1). So it does
/// where a container's call has thrown after a part of its changes, whatever that was.
///
/// A Tx belongs to the thread and the call that it was passed to. `Reads` is its base: what it
/// reads through.
template <class Transaction, class Reads = ReadTx<Transaction>>
class Tx : public Reads {
  using Base = Reads;

 public:
  /// A transaction of this type may change the pool.
  static constexpr bool read_only = false;
  /// Made by update(), around the engine's transaction.
  explicit Tx(Transaction& transaction) : Base(transaction), writer_(transaction) {}
  /// A field's value, as in a view().
  using Base::read;
  using Base::operator();

  /// The field, to be read or written in this expression: `tx(x) += 1`.
  template <class T>
  [[nodiscard]] Ref<Tx, T> operator()(p<T>& x) noexcept {
    return {*this, x};
  }
  /// The field, to be read, followed or written in this expression: `tx(x)->next`.
  template <class T>
  [[nodiscard]] PtrRef<Tx, T> operator()(ptr<T>& x) noexcept {
    return {*this, x};
  }
  /// Gives the field a value. Logs whole 8-byte words.
  template <class T>
  void write(p<T>& x, const std::type_identity_t<T>& value) {
    store<T>(access::address(x), value);
  }
  /// Gives the field a value: null, or a pointer into this pool.
  template <class T>
  void write(ptr<T>& x, std::type_identity_t<T>* value) {
    store<T*>(access::address(x), value);
  }

  /// Copies n bytes to pool memory. They are logged as whole words.
  void write_bytes(void* to, const void* from, std::size_t n) {
    auto at = reinterpret_cast<std::uintptr_t>(to);
    const auto* in = static_cast<const std::byte*>(from);
    if ((at & 7) != 0 || n < 8) {
      const std::size_t take = part(at, in, n);
      at += take, in += take, n -= take;
      if ((at & 7) != 0 || (n > 0 && n < 8)) {  // two partial words, no whole one
        part(at, in, n);
        return;
      }
    }
    std::uint64_t words[256];
    while (n >= 8) {
      const std::size_t count = n / 8 < 256 ? n / 8 : 256;
      std::memcpy(words, in, count * 8);
      writer_.write_words(reinterpret_cast<std::uint64_t*>(at), words, count);
      at += count * 8, in += count * 8, n -= count * 8;
    }
    if (n > 0) part(at, in, n);
  }

  /// Returns an uninitialised block of at least n bytes, 16-aligned, 64-aligned where n is a
  /// multiple of 64. Throws error(full, out_of_memory, io), or std::bad_alloc: update() rolls back.
  [[nodiscard]] std::byte* alloc(std::size_t n) { return writer_.alloc(n); }
  /// Frees a block that alloc returned, in this transaction or an earlier one. Throws
  /// error(invalid) for any other address.
  void free(void* block) { writer_.free(block); }
  /// Called in a handler, by code that makes one change of several: update() will roll back and
  /// throw the exception in flight, even if the lambda catches it.
  void keep_refusal() noexcept {
    if constexpr (requires { writer_.keep_refusal(); }) writer_.keep_refusal();
  }

  /// Emits an event: whoever follows the pool's log gets it once the transaction is durable, in the
  /// order of transactions (Pool::follow; docs/events.md). It is a part of the transaction's
  /// record: it costs no further fence, and is gone if the transaction rolls back. `topic`: 1 to
  /// 255 bytes; `schema` is the program's. A transaction that only emits is a transaction. The
  /// first event makes the pool one that builds without events refuse to open. Throws
  /// error(unsupported) where the pool's engine keeps no events, error(invalid) for a topic,
  /// error(too_big) beyond half a log or 8 MB; update() rolls back.
  void emit(std::string_view topic, std::string_view bytes, std::uint16_t schema = 0) {
    static_assert(
        requires { writer_.emit(topic, bytes, schema); },
        "perdure: the pool's compiled-in engine keeps no events: use Pool<Root>, or an "
        "instance of shadow");
    writer_.emit(topic, bytes, schema);
  }

  /// Builds a T in DRAM from args (for a tx(field), its value) and stores it whole in a new block.
  /// A large T is built on the heap, so it may be larger than the stack.
  template <class T, class... Args>
  [[nodiscard]] T* make(Args&&... args) {
    static_assert(alignof(T) <= 64, "pool blocks are aligned to 64 bytes at most");
    static_assert(std::is_trivially_destructible_v<T>,
                  "objects in a pool have no destructor: free what they own in a transaction");
    detail::Image<T> image;
    // Fields without an argument are initialised as the struct says.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
    if constexpr (std::is_aggregate_v<T>)
      ::new (static_cast<void*>(image.at())) T{detail::value_of(std::forward<Args>(args))...};
    else
      ::new (static_cast<void*>(image.at())) T(detail::value_of(std::forward<Args>(args))...);
#pragma GCC diagnostic pop
    std::byte* const block = alloc(sizeof(T));
    // A block's size is a multiple of 16.
    write_bytes(block, image.at(), detail::image_bytes<T>);
    return reinterpret_cast<T*>(block);
  }
  /// Frees an object and what it owns: the elements of its containers, the objects of its boxes. A
  /// ptr<> in it owns nothing. Null is allowed.
  template <class T>
  void destroy(T* object) {
    if (object == nullptr) return;
    if constexpr (detail::owns_blocks<std::remove_cv_t<T>>())
      detail::drop_owned(*this, const_cast<std::remove_cv_t<T>&>(*object));
    free(const_cast<std::remove_cv_t<T>*>(object));
  }

 private:
  template <class, class>
  friend class Ref;
  template <class, class>
  friend class PtrRef;

  template <class T>
  void store(T* a, const T& value) {
    if constexpr (sizeof(T) == 8 && alignof(T) == 8) {
      std::uint64_t word;
      std::memcpy(&word, &value, 8);
      writer_.write(reinterpret_cast<std::uint64_t*>(a), word);
    } else {
      write_bytes(a, &value, sizeof(T));
    }
  }
  // Reads, changes and writes the bytes of one word. Returns how many.
  std::size_t part(std::uintptr_t at, const std::byte* in, std::size_t n) {
    const std::size_t skip = at & 7;
    const std::size_t take = 8 - skip < n ? 8 - skip : n;
    if (take == 0) return 0;
    auto* const a = reinterpret_cast<std::uint64_t*>(at - skip);
    std::uint64_t word = this->read_word(a);
    std::memcpy(reinterpret_cast<std::byte*>(&word) + skip, in, take);
    writer_.write(a, word);
    return take;
  }

  typename detail::WriterOf<Transaction>::type writer_;
};

/// tx(x) for a p<T>: reads and writes x. It is used up by the expression that made it: a named one
/// would be read again, and differently, after the next write (`auto old = tx(x); tx(x) = 5;`).
template <class TxT, class T>
class Ref {
 public:
  /// The type of the field's value.
  using value_type = T;
  /// Made by tx(x).
  Ref(TxT& tx, p<T>& x) noexcept : tx_(tx), x_(x) {}
  Ref(const Ref&) = delete;

  /// Reads the field.
  operator T() && { return load(); }  // NOLINT: that is what a proxy is for
  // clang-format off: what is said of a deleted member is the compiler's message
  operator T() const& = delete;  // auto x = tx(f) names the field, not its value: write tx.read(f), or give x its type
  /// Writes the field; returns the value.
  T operator=(const T& value) && { return put(value); }
  /// Writes the value of another field; returns it.
  T operator=(Ref&& other) && { return put(other.load()); }
  T operator=(const Ref&) && = delete;  // auto x = tx(f) names the field, not its value: write tx.read(f), or give x its type
  void operator=(const T&) const& = delete;  // auto x = tx(f) names the field: write tx(f) = value
  // clang-format on
  /// Adds to the field; returns the new value. Another tx(field) stands for its value, here and
  /// below.
  template <class U>
  T operator+=(U&& u) && {
    return with(detail::value_of(std::forward<U>(u)), std::plus<>());
  }
  /// Takes away from the field; returns the new value.
  template <class U>
  T operator-=(U&& u) && {
    return with(detail::value_of(std::forward<U>(u)), std::minus<>());
  }
  /// Multiplies the field; returns the new value.
  template <class U>
  T operator*=(U&& u) && {
    return with(detail::value_of(std::forward<U>(u)), std::multiplies<>());
  }
  /// Divides the field; returns the new value.
  template <class U>
  T operator/=(U&& u) && {
    return with(detail::value_of(std::forward<U>(u)), std::divides<>());
  }
  /// Leaves the field's remainder; returns the new value.
  template <class U>
  T operator%=(U&& u) && {
    return with(detail::value_of(std::forward<U>(u)), std::modulus<>());
  }
  /// Keeps the bits that are in both; returns the new value.
  template <class U>
  T operator&=(U&& u) && {
    return with(detail::value_of(std::forward<U>(u)), std::bit_and<>());
  }
  /// Adds bits to the field; returns the new value.
  template <class U>
  T operator|=(U&& u) && {
    return with(detail::value_of(std::forward<U>(u)), std::bit_or<>());
  }
  /// Turns bits of the field over; returns the new value.
  template <class U>
  T operator^=(U&& u) && {
    return with(detail::value_of(std::forward<U>(u)), std::bit_xor<>());
  }
  /// Adds 1; returns the new value.
  T operator++() && { return put(static_cast<T>(load() + 1)); }
  /// Takes away 1; returns the new value.
  T operator--() && { return put(static_cast<T>(load() - 1)); }
  // clang-format off
  template <class U> void operator+=(const U&) const& = delete;  // auto x = tx(f) names the field: write tx(f) += value
  template <class U> void operator-=(const U&) const& = delete;  // auto x = tx(f) names the field: write tx(f) -= value
  void operator++() const& = delete;  // auto x = tx(f) names the field: write ++tx(f)
  void operator--() const& = delete;  // auto x = tx(f) names the field: write --tx(f)
  // clang-format on
  /// Adds 1; returns the old value.
  T operator++(int) && {
    const T old = load();
    put(static_cast<T>(old + 1));
    return old;
  }
  /// Takes away 1; returns the old value.
  T operator--(int) && {
    const T old = load();
    put(static_cast<T>(old - 1));
    return old;
  }

 private:
  // The field's new value: op of its old one and `u`. Both are converted as the language would do
  // it, but explicitly: otherwise -Wsign-conversion warns about the caller's `x += 1`.
  template <class U, class Op>
  T with(const U& u, Op op) const {
    if constexpr (std::is_arithmetic_v<T> && std::is_arithmetic_v<U>) {
      using Common = std::common_type_t<T, U>;
      return put(static_cast<T>(op(static_cast<Common>(load()), static_cast<Common>(u))));
    } else {
      return put(static_cast<T>(op(load(), u)));
    }
  }
  [[nodiscard]] T load() const { return tx_.template load<T>(access::address(x_)); }
  T put(const T& value) const {
    tx_.template store<T>(access::address(x_), value);
    return value;
  }
  TxT& tx_;
  p<T>& x_;
};

/// tx(x) for a ptr<T>: its value is a T*, whose fields are again reached through tx. It is used up
/// by the expression that made it.
template <class TxT, class T>
class PtrRef {
 public:
  /// The type of the field's value.
  using value_type = T*;
  /// Made by tx(x).
  PtrRef(TxT& tx, ptr<T>& x) noexcept : tx_(tx), x_(x) {}
  PtrRef(const PtrRef&) = delete;

  /// Reads the field.
  operator T*() && { return load(); }  // NOLINT: as above
  // clang-format off: what is said of a deleted member is the compiler's message
  operator T*() const& = delete;  // auto x = tx(f) names the field, not its value: write tx.read(f), or give x its type
  /// Reads the field, to name a field of the object that it points to.
  T* operator->() && { return load(); }
  T* operator->() const& = delete;  // auto x = tx(f) names the field, not its value: write tx.read(f), or give x its type
  /// Reads the field: the object that it points to, whose fields are again reached through tx.
  std::add_lvalue_reference_t<T> operator*() && { return *load(); }
  std::add_lvalue_reference_t<T> operator*() const& = delete;  // auto x = tx(f) names the field: write tx.read(f), or give x its type
  /// Writes the field; returns the value.
  T* operator=(T* value) && { return put(value); }
  /// Writes the value of another field; returns it.
  T* operator=(PtrRef&& other) && { return put(other.load()); }
  T* operator=(const PtrRef&) && = delete;  // auto x = tx(f) names the field, not its value: write tx.read(f), or give x its type
  void operator=(T*) const& = delete;  // auto x = tx(f) names the field: write tx(f) = pointer
  // clang-format on

 private:
  [[nodiscard]] T* load() const { return tx_.template load<T*>(access::address(x_)); }
  T* put(T* value) const {
    tx_.template store<T*>(access::address(x_), value);
    return value;
  }
  TxT& tx_;
  ptr<T>& x_;
};

namespace detail {
template <class R>
struct outside_of {
  using type = R;
};
template <class R>
  requires is_proxy<R>
struct outside_of<R> {
  using type = typename R::value_type;
};
/// The type of a lambda's result R outside its transaction: for a proxy, its value's type.
template <class R>
using outside = typename outside_of<R>::type;
}  // namespace detail

/// tx.make<T>(args...) without the `template` that a dependent tx needs.
template <class T, class TxT, class... Args>
[[nodiscard]] T* make(TxT& tx, Args&&... args) {
  return tx.template make<T>(std::forward<Args>(args)...);
}
/// Frees an object and what it owns, as tx.destroy().
template <class TxT, class T>
void destroy(TxT& tx, T* object) {
  tx.destroy(object);
}
/// Rolls the transaction back; update() throws perdure::aborted.
template <class TxT>
[[noreturn]] void abort(TxT&) {
  static_assert(!TxT::read_only, "a view has nothing to roll back: return from it");
  throw aborted();
}

}  // namespace perdure
