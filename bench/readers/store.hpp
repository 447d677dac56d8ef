// SPDX-License-Identifier: BSD-3-Clause
//
// What `./dev bench readers` does with a store: one process writes rows, each durable when put()
// returns; another reads, in one transaction for as long as it takes, or makes a backup.
// Thread safety: one thread a store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace bench::readers {

class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;
  /// Adds the rows [from, to) together.
  virtual void load(std::uint64_t from, std::uint64_t to,
                    const std::function<std::string(std::uint64_t)>& value) = 0;
  /// Replaces a row; it is durable on return.
  virtual void put(std::uint64_t key, std::string_view value) = 0;
  /// The row as of now.
  virtual std::string get(std::uint64_t key) = 0;
  /// Begins a transaction that reads, and calls more() after each scan of all rows, which gives it
  /// their number and a sum over their bytes, until it returns false.
  virtual void scan_in_one_transaction(
      const std::function<bool(std::uint64_t rows, std::uint64_t sum)>& more) = 0;
  /// Makes a whole backup at `path`, which does not exist.
  virtual void back_up(const std::string& path) = 0;
};

/// A store in the folder, made if there is none; `writes`: opened to be written.
using Open = std::unique_ptr<Store> (*)(const std::string& folder, bool writes);
std::unique_ptr<Store> open_perdure(const std::string& folder, bool writes);
std::unique_ptr<Store> open_lmdb(const std::string& folder, bool writes);
std::unique_ptr<Store> open_sqlite(const std::string& folder, bool writes);

/// Of a row's bytes; cheap, and no byte can be left out.
inline std::uint64_t sum_of(std::string_view bytes) noexcept {
  std::uint64_t sum = 0;
  for (const char c : bytes) sum += static_cast<unsigned char>(c);
  return sum;
}

}  // namespace bench::readers
