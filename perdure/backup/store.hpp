// SPDX-License-Identifier: BSD-3-Clause
//
// Store: where an archive and its backups lie: named objects that are written once, whole, and
// never changed. A folder is one (open_folder); other places can be added by a class of this type.
// Thread safety: any thread may make all calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/base/status.hpp"

namespace perdure::backup {

/// Names consist of the letters a-z, digits, '-' and '/'.
class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Makes the object durably, whole, unless there is one of that name, which is durable then.
  /// Returns whether it made it. When it returns an error, the object may be there, whole, or not.
  virtual Result<bool> put(const std::string& name, const void* bytes, std::uint64_t n) = 0;
  /// The same for many: the objects have their names, durably, when flush() returns ok; and so have
  /// those that others have made before.
  virtual Status put_soon(const std::string& name, const void* bytes, std::uint64_t n);
  virtual Status flush();
  /// `not_found` where there is none.
  virtual Result<std::vector<std::byte>> get(const std::string& name) = 0;
  /// Whether there is an object of that name.
  virtual Result<bool> has(const std::string& name) = 0;
  /// The names that begin so, in rising order.
  virtual Result<std::vector<std::string>> list(std::string_view prefix) = 0;
  /// Removes the object; ok where there is none.
  virtual Status remove(const std::string& name) = 0;
  /// For one writer of log segments: `busy` while another one holds it. It is held until the result
  /// is destroyed.
  virtual Result<std::shared_ptr<void>> lock() = 0;
  /// For messages: the folder's path.
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;

 protected:
  Store() = default;
};

/// A folder, readable by its owner alone as the files that are made in it, which is made if `create` is true and its parent exists; `not_found` otherwise.
/// STORE-1 An object is written under a temporary name, synced, given its name if that is free, and
/// the folder is synced: at whatever instant a process or the machine dies, the name is absent or
/// stands for the whole object. put_soon() leaves the syncs to flush(), which makes one for all.
Result<std::shared_ptr<Store>> open_folder(const std::string& path, bool create);

}  // namespace perdure::backup
