// SPDX-License-Identifier: BSD-3-Clause
//
// A store of the tests of archives, whose calls fail when the test says so.
// Thread safety: any thread may make all calls, and set its members.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/backup/store.hpp"

namespace perdure::test {

/// A folder whose writes can be made to fail.
class FailingStore final : public backup::Store {
 public:
  explicit FailingStore(const std::string& folder)
      : inner_(backup::open_folder(folder, true).value()) {}
  Result<bool> put(const std::string& name, const void* bytes, std::uint64_t n) override {
    if (fails || (fails_chunks && name.starts_with("chunk"))) {
      ++refused;
      return failure(Code::full, "the test's store", "no space");
    }
    auto made = inner_->put(name, bytes, n);
    if (lies > 0 && lies-- > 0) return failure(Code::io, "the test's store", "no answer");
    return made;
  }
  Result<std::vector<std::byte>> get(const std::string& name) override { return inner_->get(name); }
  Result<bool> has(const std::string& name) override { return inner_->has(name); }
  Result<std::vector<std::string>> list(std::string_view prefix) override {
    return inner_->list(prefix);
  }
  Status remove(const std::string& name) override { return inner_->remove(name); }
  Result<std::shared_ptr<void>> lock(Use use) override { return inner_->lock(use); }
  [[nodiscard]] const std::string& name() const noexcept override { return inner_->name(); }
  std::atomic<bool> fails{false}, fails_chunks{false};
  std::atomic<int> refused{0};  ///< puts, so far
  std::atomic<int> lies{0};     ///< how many puts return an error though they make the object

 private:
  std::shared_ptr<backup::Store> inner_;
};

}  // namespace perdure::test
