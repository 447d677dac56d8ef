// SPDX-License-Identifier: BSD-3-Clause
//
// Reader, Writer: a transaction of any type behind virtual calls, so that the code that walks
// values is compiled once.
//
// ReaderOver and WriterOver are made on the stack for one call. A value's image is read in one
// piece, so a call moves tens of bytes, beside which a virtual call costs little.
// Thread safety: that of the transaction.
#pragma once

#include <cstddef>
#include <type_traits>

#include "perdure/api/persistent.hpp"

namespace perdure::value {

/// A transaction that can read.
class Reader {
 public:
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Copies n bytes of pool memory.
  virtual void read_bytes(void* to, const void* from, std::size_t n) = 0;
  /// As ReadTx::expect.
  virtual void expect(const void* from, std::size_t n) = 0;

  /// The field's value.
  template <class T>
  [[nodiscard]] T read(const p<T>& x) {
    T value;
    read_bytes(&value, access::address(x), sizeof(T));
    return value;
  }

 protected:
  Reader() = default;
  ~Reader() = default;
};

/// A transaction that can change the pool. Errors: those of Tx.
class Writer : public Reader {
 public:
  /// Copies n bytes to pool memory.
  virtual void write_bytes(void* to, const void* from, std::size_t n) = 0;
  /// As Tx::alloc.
  [[nodiscard]] virtual std::byte* alloc(std::size_t n) = 0;
  /// As Tx::free.
  virtual void free(void* block) = 0;
  /// As Tx::keep_refusal.
  virtual void keep_refusal() noexcept = 0;

  /// Gives the field a value.
  template <class T>
  void write(p<T>& x, const std::type_identity_t<T>& value) {
    write_bytes(access::address(x), &value, sizeof(T));
  }

 protected:
  Writer() = default;
  ~Writer() = default;
};

/// A Reader over a transaction.
template <class Tx>
class ReaderOver final : public Reader {
 public:
  explicit ReaderOver(Tx& tx) noexcept : tx_(tx) {}
  void read_bytes(void* to, const void* from, std::size_t n) override {
    tx_.read_bytes(to, from, n);
  }
  void expect(const void* from, std::size_t n) override {
    if constexpr (requires { tx_.expect(from, n); }) tx_.expect(from, n);
  }

 private:
  Tx& tx_;
};

/// A Writer over an update's transaction.
template <class Tx>
class WriterOver final : public Writer {
 public:
  explicit WriterOver(Tx& tx) noexcept : tx_(tx) {}
  void read_bytes(void* to, const void* from, std::size_t n) override {
    tx_.read_bytes(to, from, n);
  }
  void expect(const void* from, std::size_t n) override {
    if constexpr (requires { tx_.expect(from, n); }) tx_.expect(from, n);
  }
  void write_bytes(void* to, const void* from, std::size_t n) override {
    tx_.write_bytes(to, from, n);
  }
  [[nodiscard]] std::byte* alloc(std::size_t n) override { return tx_.alloc(n); }
  void free(void* block) override { tx_.free(block); }
  void keep_refusal() noexcept override {
    if constexpr (requires { tx_.keep_refusal(); }) tx_.keep_refusal();
  }

 private:
  Tx& tx_;
};

}  // namespace perdure::value
