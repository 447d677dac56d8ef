// SPDX-License-Identifier: BSD-3-Clause
//
// A second thread with a Transaction of its own, which runs one task at a time. Between two tasks
// it is runnable, never blocked. Thread safety: used by the thread that made it.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "perdure/base/thread_slot.hpp"

namespace perdure::tm::testing {

template <class M>
class Other {
 public:
  explicit Other(typename M::Shared& shared) {
    std::promise<void> ready;
    thread_ = std::thread([&, this] {
      typename M::Transaction transaction(shared, base::thread_slot());
      id_ = ::gettid();
      ready.set_value();
      for (int done = 0;;) {
        while (asked_ == done)
          if (stop_)
            return;
          else
            std::this_thread::yield();
        todo_(transaction);
        answered_ = ++done;
      }
    });
    ready.get_future().wait();
  }
  ~Other() {
    wait();
    stop_ = true;
    thread_.join();
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  void start(std::function<void(typename M::Transaction&)> f) {
    wait();
    todo_ = std::move(f);
    ++asked_;
  }
  void wait() {
    while (answered_ != asked_) std::this_thread::yield();
  }
  void run(std::function<void(typename M::Transaction&)> f) {
    start(std::move(f));
    wait();
  }
  [[nodiscard]] bool busy() const { return answered_ != asked_; }
  /// The thread's number in the kernel.
  [[nodiscard]] pid_t id() const { return id_; }

 private:
  std::thread thread_;
  std::function<void(typename M::Transaction&)> todo_;
  pid_t id_ = 0;
  std::atomic<int> asked_{0}, answered_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace perdure::tm::testing
