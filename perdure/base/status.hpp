// SPDX-License-Identifier: BSD-3-Clause
//
// Status, Result<T> and error: how Perdure reports failures of its environment.
//
// A failure names the file, what was found, what was expected and what to do next. Calls named
// try_... return Status or Result<T>; their plain twins throw perdure::error, which carries the
// same code and text. Programming errors are caught by assertions.
// Thread safety: values; distinct objects may be used from distinct threads.
#pragma once

#include <cassert>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace perdure {

/// What went wrong, coarse enough to switch on. The values are part of the C interface (perdure.h)
/// and never change.
/// This is the authoritative list: a new code is appended with the next number, in the order in
/// which codes enter the library, here, in name() and in perdure_code (the test capi_codes_test
/// compares the three). A number is never used again.
enum class Code : std::uint8_t {
  ok = 0,
  io = 1,       ///< the operating system or the medium failed (errno text in the message)
  busy = 2,     ///< the pool is open elsewhere, or what is asked for is in use; try again
  corrupt = 3,  ///< bytes that were durable fail their check; nothing was changed
  /// not a pool, a newer version or feature, another layout, engine or byte order, or the pool's
  /// address range is in use
  incompatible = 4,
  full = 5,            ///< no space: heap, max_size, or disk; the transaction was rolled back
  too_big = 6,         ///< a transaction that can never fit its log; it was rolled back
  read_only = 7,       ///< a change was requested of something open for reading only
  not_found = 8,       ///< the named file or key does not exist
  invalid = 9,         ///< an argument that makes no sense; the message says which
  unsupported = 10,    ///< this machine or build can't do that; the message says why
  poisoned = 11,       ///< the medium failed earlier; the pool refuses until it is reopened
  exists = 12,         ///< what was to be created exists already
  closed = 13,         ///< the pool was closed, or this handle was carried through fork()
  out_of_memory = 14,  ///< DRAM is exhausted
  /// more threads use the library at once than it supports, or the system can't start a thread
  too_many_threads = 15,
  /// a snapshot's memory was needed: it can't be read any more; or an archive was given up
  expired = 16,
  /// another copy of the replicated pool has become its primary: this one refuses changes
  deposed = 17,
  unavailable = 18,  ///< the replicated log did not answer in time; try again
  /// the transaction is committed and durable in this copy; the replicated log has not acknowledged
  /// it in time, and may yet
  in_doubt = 19,
  diverged = 20  ///< this copy has transactions that the replicated log lacks and never gets
};

/// "io", "busy", ...
[[nodiscard]] std::string_view name(Code code) noexcept;

/// Success, or a code and a message. Moving a Status and testing it for success cost one pointer.
/// No operation throws: where there is no memory for the message, the code remains, with a message
/// that says so.
class [[nodiscard]] Status {
 public:
  /// Success.
  Status() noexcept = default;
  /// A failure. With Code::ok it is success, and the message is dropped.
  Status(Code code, std::string message) noexcept;
  /// A copy; its message says so where there is no memory for it.
  Status(const Status& other) noexcept;
  /// Becomes a copy, as the constructor does.
  Status& operator=(const Status& other) noexcept;
  /// Takes over; what is left is success.
  Status(Status&&) noexcept = default;
  /// Takes over; what is left is success.
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  /// Whether it is success.
  [[nodiscard]] bool ok() const noexcept { return detail_ == nullptr; }
  /// Whether it is success.
  explicit operator bool() const noexcept { return ok(); }
  /// What went wrong; Code::ok for success.
  [[nodiscard]] Code code() const noexcept { return detail_ ? detail_->code : Code::ok; }
  /// The text of the failure, for people; empty for success. Valid while this object is unchanged.
  [[nodiscard]] const std::string& message() const noexcept;
  /// The failure `code` with a message that needs no memory.
  [[nodiscard]] static Status without_memory(Code code) noexcept;

  /// Throws perdure::error unless ok.
  void or_throw() const;

 private:
  struct Detail {
    Code code;
    std::string message;
  };
  struct Drop {
    void operator()(const Detail* detail) const noexcept;  // deletes all but without_memory()'s
  };
  static const Detail& spare(Code code) noexcept;
  std::unique_ptr<const Detail, Drop> detail_;
};

/// A failure in the library's form: "FILE: found X, expected Y; do Z". Empty parts are left out.
[[nodiscard]] Status failure(Code code, std::string_view file, std::string_view found,
                             std::string_view expected = {}, std::string_view advice = {}) noexcept;

/// A failed system call: "FILE: CALL failed: strerror(err); do Z". The code is `io`, except for
/// ENOSPC and EDQUOT (full), ENOENT (not_found), ENOMEM (out_of_memory) and EROFS (read_only).
[[nodiscard]] Status system_failure(std::string_view file, std::string_view call, int err,
                                    std::string_view advice = {}) noexcept;

/// The exception that open(), update() and similar calls throw. Making and copying it never throws,
/// so no other exception can take its place.
class error : public std::exception {
 public:
  /// Carries `status`, which is not ok.
  explicit error(Status status) noexcept : status_(std::move(status)) {}
  /// The text of the failure. Valid while this object is unchanged.
  [[nodiscard]] const char* what() const noexcept override { return status_.message().c_str(); }
  /// What went wrong.
  [[nodiscard]] Code code() const noexcept { return status_.code(); }
  /// The failure as a Status.
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  Status status_;
};

/// A T, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  /// Success, with its value.
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit by design
  /// A failure. REQUIRES: `status` is not ok.
  Result(Status status) : status_(std::move(status)) {
    assert(!status_.ok());
  }  // NOLINT: implicit by design

  /// Whether there is a value.
  [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }
  /// Whether there is a value.
  explicit operator bool() const noexcept { return ok(); }
  /// Why there is no value; ok where there is one.
  [[nodiscard]] const Status& status() const noexcept { return status_; }
  /// Why there is no value; Code::ok where there is one.
  [[nodiscard]] Code code() const noexcept { return status_.code(); }

  /// The value; throws perdure::error when there is none.
  [[nodiscard]] T& value() & {
    status_.or_throw();
    return *value_;
  }
  /// The value; throws perdure::error when there is none.
  [[nodiscard]] T&& value() && {
    status_.or_throw();
    return std::move(*value_);
  }
  /// The value; throws perdure::error when there is none.
  [[nodiscard]] const T& value() const& {
    status_.or_throw();
    return *value_;
  }
  /// The value. REQUIRES: there is one.
  T& operator*() & noexcept { return *value_; }
  /// The value. REQUIRES: there is one.
  const T& operator*() const& noexcept { return *value_; }
  /// The value's members. REQUIRES: there is one.
  T* operator->() noexcept { return &*value_; }
  /// The value's members. REQUIRES: there is one.
  const T* operator->() const noexcept { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace perdure
