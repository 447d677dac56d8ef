// SPDX-License-Identifier: BSD-3-Clause
//
// DramFiles: the journals of a process's databases, in DRAM (design B): SQLite reads them back for a ROLLBACK, or after a cache spill; after a crash there is
// nothing to roll back, for the pool has committed transactions only.
// Thread safety: find, make, remove from any thread; a file's bytes by the connection that has opened it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace perdure::sqlite {

using DramFile = std::vector<std::byte>;

class DramFiles {
 public:
  static DramFiles& of_process() {
    static DramFiles all;
    return all;
  }
  std::shared_ptr<DramFile> make(const std::string& name) {
    const std::lock_guard lock(mutex_);
    auto& file = files_[name];
    if (file == nullptr) file = std::make_shared<DramFile>();
    return file;
  }
  [[nodiscard]] std::shared_ptr<DramFile> find(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto it = files_.find(name);
    return it == files_.end() ? nullptr : it->second;
  }
  bool remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return files_.erase(name) != 0;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<DramFile>> files_;
};

}  // namespace perdure::sqlite
