// SPDX-License-Identifier: BSD-3-Clause
//
// nvm: data structures that are persistent and not recoverable (papers: REWIND, VLDB '15, section
// 5.3). They lie in the data region of the emulated medium and every store goes through it: a line
// is written back, and charged its delay, when the thread stores to another line ("group
// consecutive writes to the same cacheline into a single NVM write", section 5), and a fence ends
// the transaction. No log, no rollback; blocks are allocated from the end of the used part, whose
// position is not persistent: the allocator is charged nothing.
// Thread safety: any number of threads; the caller isolates stores to the same words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>

#include "bench/systems/host.hpp"
#include "perdure/medium/medium.hpp"

namespace bench::tpcc {

struct NvmModel {
  template <class T>
  struct Field {
    Field() : value{} {}
    Field(const T& v) : value(v) {}  // NOLINT(google-explicit-constructor): stands where a T would
    T value;
  };
  template <class T>
  struct Link {
    Link(T* t = nullptr) : target(t) {}  // NOLINT(google-explicit-constructor)
    T* target;
  };
  template <class T>
  using Ref = T*;
};

/// The medium, and the assignment of its data region to threads.
class Nvm {
 public:
  static constexpr std::size_t line = perdure::medium::line_bytes;

  Nvm(const std::string& path, const std::string& delays) {
    perdure::medium::OpenMedium how;
    how.path = path;
    how.kind = "emulated";
    how.create = true;
    how.log_bytes = perdure::medium::region_align;
    how.data_bytes = step;
    how.max_data_bytes = std::uint64_t{16} << 30;
    how.delays = perdure::medium::Delays::named(delays).value();
    medium_ = perdure::medium::open_medium(how).value();
  }
  [[nodiscard]] perdure::medium::Medium& medium() noexcept { return *medium_; }
  [[nodiscard]] std::byte* data() const noexcept { return const_cast<std::byte*>(medium_->data()); }

  /// A thread's part of the data region, from which it allocates blocks.
  struct Part {
    std::uint64_t at = 0, end = 0;
  };
  /// Blocks are 16-byte aligned, 64-byte aligned if n is a multiple of 64: like Perdure's.
  std::byte* allocate(Part& part, std::size_t n) {
    const std::uint64_t align = n % line == 0 ? line : 16;
    std::uint64_t at = (part.at + align - 1) / align * align;
    if (at + n > part.end) {
      const std::lock_guard lock(growing_);
      if (given_ + chunk > medium_->data_bytes())
        medium_->grow(medium_->data_bytes() + step).or_throw();
      part = {given_, given_ + chunk};
      given_ += chunk;
      at = part.at;
    }
    part.at = at + n;
    return data() + at;
  }

 private:
  static constexpr std::uint64_t chunk = 1 << 20, step = 256 << 20;
  std::unique_ptr<perdure::medium::Medium> medium_;
  std::mutex growing_;
  // Not 0, so that no block lies at the beginning of the data region, where the root is.
  std::uint64_t given_ = line;
};

/// One thread's transaction.
class NvmTx {
 public:
  template <class T>
  using Field = NvmModel::Field<T>;
  template <class T>
  using Link = NvmModel::Link<T>;

  NvmTx(Nvm& nvm, Nvm::Part& part)
      : nvm_(nvm),
        medium_(nvm.medium()),
        home_(nvm.data()),
        log_bytes_(medium_.log_bytes()),
        part_(part) {}

  template <class T>
  const T& get(const Field<T>& field) const {
    return field.value;
  }
  template <class T>
  T* get(const Link<T>& link) const {
    return link.target;
  }
  template <class T>
  void set(Field<T>& field, const std::type_identity_t<T>& value) {
    store(&field, &value, sizeof(T));
  }
  template <class T>
  void set(Link<T>& link, std::type_identity_t<T>* target) {
    store(&link, &target, sizeof(target));
  }
  template <class T, class... Args>
  T* make(Args... args) {
    alignas(16) std::byte image[sizeof(T)] = {};
    ::new (static_cast<void*>(image)) T(args...);
    std::byte* const block = nvm_.allocate(part_, sizeof(T));
    store(block, image, sizeof(T));
    return reinterpret_cast<T*>(block);
  }
  template <class T>
  T* allocate(std::size_t n) {
    return reinterpret_cast<T*>(nvm_.allocate(part_, n * sizeof(T)));
  }
  /// Makes everything that was stored durable.
  void end() {
    write_back();
    medium_.fence().or_throw();
  }

 private:
  void store(void* to, const void* from, std::size_t n) {
    const auto at = static_cast<std::uint64_t>(static_cast<std::byte*>(to) - home_) + log_bytes_;
    medium_.store(at, from, n);
    const std::uint64_t first = at / Nvm::line, last = (at + n - 1) / Nvm::line;
    if (first != open_) write_back();
    if (last > first) medium_.flush(first * Nvm::line, (last - first) * Nvm::line);
    open_ = last;
  }
  void write_back() {
    if (open_ != none) medium_.flush(open_ * Nvm::line, Nvm::line);
    open_ = none;
  }

  static constexpr std::uint64_t none = ~0ULL;
  Nvm& nvm_;
  perdure::medium::Medium& medium_;
  std::byte* const home_;
  const std::uint64_t log_bytes_;
  Nvm::Part& part_;
  std::uint64_t open_ = none;  // the line of the last store
};

template <class Root>
class NvmHost : public HostDefaults {
 public:
  static constexpr bool rolls_back = false;

  NvmHost(const std::string& path, const std::string& delays) : nvm_(path, delays) {
    static_assert(sizeof(Root) <= Nvm::line * 64);
    Nvm::Part first;
    root_ = reinterpret_cast<Root*>(
        nvm_.allocate(first, sizeof(Root) + (Nvm::line - sizeof(Root) % Nvm::line)));
  }
  template <class F>
  auto update(F&& f) {
    NvmTx tx(nvm_, parts_[static_cast<std::size_t>(perdure::base::thread_slot())].part);
    auto result = f(tx, *root_);
    tx.end();
    return result;
  }
  template <class F>
  auto view(F&& f) {
    Nvm::Part none;
    NvmTx tx(nvm_, none);
    return f(tx, static_cast<const Root&>(*root_));
  }
  [[nodiscard]] std::map<std::string, double> counters() {
    const auto c = nvm_.medium().counters();
    return {{"fences", static_cast<double>(c.fences)},
            {"flushed_lines", static_cast<double>(c.flushed_lines)},
            {"streamed_lines", static_cast<double>(c.streamed_lines)},
            {"stores", static_cast<double>(c.stores)}};
  }
  [[nodiscard]] std::string describe() { return "no log; " + nvm_.medium().describe(); }

 private:
  struct alignas(128) Own {
    Nvm::Part part;
  };
  Nvm nvm_;
  std::unique_ptr<Own[]> parts_ =
      std::make_unique<Own[]>(static_cast<std::size_t>(perdure::base::max_threads));
  Root* root_ = nullptr;
};

}  // namespace bench::tpcc
