// SPDX-License-Identifier: BSD-3-Clause
//
// A log that several threads use, over another one that may not be used so. A test can switch it
// off, and is told of each append.
// Thread safety: any thread may make all calls; `before` and `after` are set before.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "perdure/replication/log_service.hpp"

namespace perdure::replication::test {

class SharedLog final : public LogService {
 public:
  explicit SharedLog(std::shared_ptr<LogService> log) : log_(std::move(log)) {}
  /// The same log, which is not switched off together with `beside`: another machine's.
  explicit SharedLog(const SharedLog* beside) : mutex_(beside->mutex_), log_(beside->log_) {}

  AppendAnswer append(std::uint64_t at, const void* bytes, std::uint64_t n) override {
    if (off) return {Append::unknown, gone()};
    if (before) before(at);
    const std::lock_guard lock(*mutex_);
    const AppendAnswer answer = log_->append(at, bytes, n);
    if (throws.exchange(false)) throw std::bad_alloc();
    if (answer.outcome == Append::done && after) after(at);
    if (unanswered.exchange(false)) return {Append::unknown, gone()};
    return answer;
  }
  Result<std::vector<Message>> read(std::uint64_t from, std::uint64_t bytes) override {
    if (silent()) return gone();
    const std::lock_guard lock(*mutex_);
    return log_->read(from, bytes);
  }
  Result<LogEnds> ends() override {
    if (off) return gone();
    const std::lock_guard lock(*mutex_);
    return log_->ends();
  }
  Status trim(std::uint64_t below) override {
    if (silent()) return gone();
    const std::lock_guard lock(*mutex_);
    return log_->trim(below);
  }
  Result<LogTraits> describe() override {
    if (off) return gone();
    const std::lock_guard lock(*mutex_);
    return log_->describe();
  }
  Status confirm(const Confirmed& standby) override {
    if (off) return gone();
    const std::lock_guard lock(*mutex_);
    return log_->confirm(standby);
  }
  Result<std::vector<Confirmed>> confirmed() override {
    if (off) return gone();
    const std::lock_guard lock(*mutex_);
    return log_->confirmed();
  }
  [[nodiscard]] const std::string& name() const noexcept override { return log_->name(); }

  std::atomic<bool> throws{false};                     ///< the next append does, when it is done
  std::atomic<bool> off{false};                        ///< nothing is answered, and nothing arrives
  std::atomic<bool> unanswered{false};                 ///< the next append has no answer
  std::atomic<int> silences{0};                        ///< the next n reads and trims have none
  std::function<void(std::uint64_t sequence)> before;  ///< called before a message is appended
  std::function<void(std::uint64_t sequence)> after;   ///< called when one was

 private:
  bool silent() { return off || silences.fetch_sub(1) > 0; }
  [[nodiscard]] Status gone() const {
    return failure(Code::io, log_->name(), "a log that is switched off", {}, {});
  }
  const std::shared_ptr<std::mutex> mutex_ = std::make_shared<std::mutex>();
  const std::shared_ptr<LogService> log_;
};

}  // namespace perdure::replication::test
