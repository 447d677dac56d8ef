// SPDX-License-Identifier: BSD-3-Clause
//
// Store: where an archive and its backups lie: named objects that are written once, whole, and
// never changed. A folder is one (open_folder); places.hpp has others, and a program's own class is
// one.
// Thread safety: any thread may make all calls; a Batch belongs to one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
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
  /// Many objects that are made together, in any order. What has no name yet is dropped with the
  /// batch.
  class Batch {
   public:
    virtual ~Batch() = default;
    virtual Status put(const std::string& name, const void* bytes, std::uint64_t n) = 0;
    /// When this returns ok, the objects are there, durably; and so are those that others had made
    /// before.
    virtual Status flush() = 0;
  };
  virtual std::unique_ptr<Batch> batch();
  /// Returns when what others have made is durable.
  virtual Status sync() { return {}; }
  /// `not_found` where there is none.
  virtual Result<std::vector<std::byte>> get(const std::string& name) = 0;
  /// Whether there is an object of that name.
  virtual Result<bool> has(const std::string& name) = 0;
  /// Returns when the object, which was found, is durable: its maker may have been killed before it
  /// was.
  virtual Status keep(const std::string&) { return {}; }
  /// Waits until there may be an object of that name, and returns true; false when `at_most` is
  /// over. A store that is not told of new objects waits that long each time, and returns false.
  virtual bool wait_for(const std::string& name, std::chrono::microseconds at_most);
  /// The names that begin so, in rising order.
  virtual Result<std::vector<std::string>> list(std::string_view prefix) = 0;
  /// Removes the object; ok where there is none.
  virtual Status remove(const std::string& name) = 0;
  /// What a lock() is for. One writer has the log. Any number of backups share the chunks, which
  /// they find or make; whatever removes chunks has them alone.
  enum class Use : std::uint8_t { log, chunks, chunks_alone };
  /// Takes it until the result is destroyed; `busy` while another one has it.
  virtual Result<std::shared_ptr<void>> lock(Use use) = 0;
  /// For messages: the folder's path.
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;

 protected:
  Store() = default;
};

/// A folder, readable by its owner alone as the files that are made in it, which is made if
/// `create` is true and its parent exists; `not_found` otherwise. The result means the folder that
/// the path names now, wherever the process goes.
/// STORE-1 An object is written under a temporary name, synced, given its name if that is free, and
/// the folder is synced: at whatever instant a process or the machine dies, the name is absent or
/// stands for the whole object. A batch has one sync for all, before the first name.
Result<std::shared_ptr<Store>> open_folder(const std::string& path, bool create);

}  // namespace perdure::backup
