// SPDX-License-Identifier: BSD-3-Clause
//
// Primary's answers to those that wait for a level of a transaction.
#include "perdure/replication/primary.hpp"

namespace perdure::replication {
namespace {

std::string number(std::uint64_t n) { return std::to_string(n); }

}  // namespace

Status Primary::allows(Ack level) const {
  if (level == Ack::quorum && !proven())
    return failure(Code::unsupported, path_,
                   "a wait for `quorum`, with the log " + service_->name() +
                       ", which does not say that three servers have on disk what it has",
                   "a log that does", "wait for `shipped`");
  const unsigned n = standbys_of(level);
  if (n > most_standbys)
    return failure(Code::invalid, path_, "a wait for `standby(n)` with n outside of the limits",
                   "1 to " + number(most_standbys), {});
  if (n != 0 && !traits_.confirms)
    return failure(Code::unsupported, path_,
                   "a wait for `standby(n)`, with the log " + service_->name() +
                       ", over which standbys can't say how far they are",
                   "a log that carries it", "wait for `shipped` or `quorum`");
  return {};
}

Status Primary::wait(std::uint64_t id, Ack level) {
  if (Status s = allows(level); !s.ok()) return s;
  if (has(id, level)) return {};
  const auto late = Clock::now() + options_.patience;
  std::unique_lock lock(shown_mutex_);
  // Relaxed: a hint, and the wake-up comes after it.
  waiting_.fetch_add(1, std::memory_order_relaxed);
  struct Over {
    std::atomic<int>& waiting;
    ~Over() { waiting.fetch_sub(1, std::memory_order_relaxed); }
  } const over{waiting_};
  log_->floors().wake();
  while (!has(id, level)) {
    if (!over_.ok()) return over_;
    if (changed_.wait_until(lock, late) == std::cv_status::timeout && !has(id, level)) {
      const std::string where =
          has(id, Ack::shipped) ? "in the log, and not known to be on the disks of " +
                                      number(standbys_of(level)) + " standbys"
                                : "durable here and not known to be in the log " + service_->name();
      return failure(Code::in_doubt, path_,
                     "transaction " + number(id) + ", which is " + where +
                         (shown_.problem.empty() ? "" : " (" + shown_.problem + ")"),
                     "an answer within " +
                         number(static_cast<std::uint64_t>(options_.patience.count())) + " ms",
                     "wait again: it may get there yet");
    }
  }
  return {};
}

void Primary::end() noexcept {
  try {
    const std::lock_guard lock(shown_mutex_);
    if (over_.ok())
      over_ = failure(Code::in_doubt, path_,
                      "a wait for the replicated log in a pool that is closed" +
                          (shown_.problem.empty() ? "" : ": " + shown_.problem),
                      {}, "open the pool again, which appends the rest");
    changed_.notify_all();
  } catch (...) {  // the waits end when their patience does
  }
}

bool Primary::has(std::uint64_t id, Ack level) const noexcept {
  if (level == Ack::quorum && !proven()) return false;
  // Acquire: pairs with the release where it is raised: the log's answer came before.
  const bool in_log = shipped_.load(std::memory_order_acquire) >= id;
  const unsigned n = standbys_of(level);
  if (n == 0) return in_log;
  if (n > most_standbys || !traits_.confirms) return false;
  asked_.store(true, std::memory_order_relaxed);  // a hint to the thread
  // mutant: primary-standbys-and-log
  return in_log && standbys_.id_of(n) >= id;
}

}  // namespace perdure::replication
