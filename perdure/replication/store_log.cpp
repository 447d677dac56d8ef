// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/replication/store_log.hpp"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>

#include "perdure/backup/segment.hpp"

namespace perdure::replication {
namespace {

constexpr std::string_view prefix = "stream-", standby_prefix = "standbys/";
constexpr std::uint64_t largest_message = std::uint64_t{8} << 20;

std::string name_of(std::uint64_t sequence) {
  return std::string(prefix) + backup::digits_of(sequence);
}

// What a standby has said is an object, too, without contents: standbys/COPY-ID.
std::string name_of(const Confirmed& standby) {
  return std::string(standby_prefix) + standby.copy + "-" + backup::digits_of(standby.id);
}
bool parse(std::string_view name, Confirmed& standby) {
  name.remove_prefix(standby_prefix.size());
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos) return false;
  standby.copy = name.substr(0, dash);
  name.remove_prefix(dash + 1);
  return backup::take_digits(name, standby.id) && name.empty();
}

// Message 0 is empty: it was there before all others.
class StoreLog final : public LogService {
 public:
  explicit StoreLog(std::shared_ptr<backup::Store> store) : store_(std::move(store)) {}

  AppendAnswer append(std::uint64_t sequence, const void* bytes, std::uint64_t n) override {
    const std::string before = name_of(sequence - 1);
    auto there = store_->has(before);
    if (!there) return {Append::unknown, there.status()};
    if (!*there) return {Append::refused, refusal(sequence, "no message before it")};
    auto made = store_->put(name_of(sequence), bytes, n);
    if (!made) return {Append::unknown, made.status()};
    if (!*made) return {Append::refused, refusal(sequence, "another message there")};
    // SERVICE-1: where the message before this one is gone, one of this place was trimmed, too
    // (trim()). So either this is not the log's message of that place, or that is trimmed.
    // mutant: store-log-looks-again
    there = store_->has(before);
    if (!there) return {Append::unknown, there.status()};
    if (*there) return {Append::done, {}};
    (void)store_->remove(name_of(sequence));
    return {Append::unknown, refusal(sequence, "a log that was trimmed beyond it")};
  }

  Result<std::vector<Message>> read(std::uint64_t from, std::uint64_t bytes) override {
    std::vector<Message> messages;
    for (std::uint64_t size = 0, at = from; messages.empty() || size < bytes; ++at) {
      auto one = store_->get(name_of(at));
      if (one.code() == Code::not_found) break;
      if (!one) return one.status();
      size += one->size();
      messages.push_back({at, std::move(*one)});
    }
    // STORELOG-1: their maker may be about to sync the folder, or have been killed before.
    if (!messages.empty())
      // mutant: store-log-keeps-what-it-reads
      if (Status s = store_->keep(name_of(messages.back().sequence)); !s.ok()) return s;
    // While the one before the first is there, none of them was trimmed: what was found is the
    // log's, and not what an interrupted append has left in a place that was trimmed.
    // mutant: store-log-read-looks-again
    auto there = store_->has(name_of(from - 1));
    if (!there) return there.status();
    if (*there) return messages;  // none: the end
    messages.clear();
    auto all = ends();
    if (!all) return all.status();
    auto end = at_end(*all, from, store_->name());
    if (!end) return end.status();
    return *end ? messages : read(from, bytes);
  }

  Result<LogEnds> ends() override {
    auto numbers = list();
    if (!numbers) return numbers.status();
    if (numbers->empty())
      return failure(Code::not_found, store_->name(), "no log", "one that open_store_log() made",
                     "the folder was emptied: keep this copy, and see what the others have");
    // An append that was interrupted beside a trim leaves a message below a gap.
    LogEnds all{numbers->back(), numbers->back()};
    for (auto n = numbers->rbegin() + 1; n != numbers->rend() && *n + 1 == all.first; ++n)
      all.first = *n;
    ++all.first;  // behind the one that trim() keeps, or message 0
    return all;
  }

  bool wait(std::uint64_t from, std::chrono::microseconds at_most) override {
    return store_->wait_for(name_of(from), at_most);
  }

  // In rising order. The last of those that were to be removed stays: a message is there for as
  // long as the log has the one behind it.
  Status trim(std::uint64_t below) override {
    auto numbers = list();
    if (!numbers) return numbers.status();
    if (!numbers->empty()) below = std::min(below, numbers->back());
    for (const std::uint64_t n : *numbers) {
      // mutant: store-log-trim-keeps-one
      if (n + 1 >= below) break;
      if (Status s = store_->remove(name_of(n)); !s.ok()) return s;
    }
    return {};
  }

  Result<LogTraits> describe() override { return LogTraits{1, true, largest_message, true}; }

  // Objects are written once: the one before goes when the next one is there.
  Status confirm(const Confirmed& standby) override {
    const std::lock_guard lock(mutex_);
    if (said_.copy == standby.copy && said_.id == standby.id) return {};
    const std::string name = name_of(standby);
    if (auto made = store_->put(name, nullptr, 0); !made) return made.status();
    std::vector<std::string> before = {name_of(said_)};
    if (said_.copy != standby.copy) {  // what was said before this object existed
      auto all = store_->list(std::string(standby_prefix) + standby.copy + "-");
      if (!all) return all.status();
      before = std::move(*all);
    }
    for (const std::string& one : before)
      if (one != name)
        if (Status s = store_->remove(one); !s.ok()) return s;
    said_ = standby;
    return {};
  }

  Result<std::vector<Confirmed>> confirmed() override {
    auto names = store_->list(standby_prefix);
    if (!names) return names.status();
    std::vector<Confirmed> all;
    Confirmed one;
    // In rising order: of one copy's the last is its newest.
    for (const std::string& name : *names)
      if (parse(name, one)) {
        if (!all.empty() && all.back().copy == one.copy) all.pop_back();
        all.push_back(one);
      }
    return all;
  }
  [[nodiscard]] const std::string& name() const noexcept override { return store_->name(); }

 private:
  [[nodiscard]] Status refusal(std::uint64_t sequence, const std::string& found) const {
    return failure(Code::exists, store_->name(),
                   "an append of message " + std::to_string(sequence) + ", and " + found,
                   "the log's next message", "read on");
  }

  Result<std::vector<std::uint64_t>> list() {
    auto names = store_->list(prefix);
    if (!names) return names.status();
    std::vector<std::uint64_t> numbers;
    for (const std::string& name : *names) {
      std::string_view rest = std::string_view(name).substr(prefix.size());
      std::uint64_t n = 0;
      if (backup::take_digits(rest, n) && rest.empty()) numbers.push_back(n);
    }
    return numbers;
  }

  const std::shared_ptr<backup::Store> store_;
  std::mutex mutex_;  // guards what follows
  Confirmed said_;    // by this object
};

}  // namespace

Result<std::shared_ptr<LogService>> open_store_log(std::shared_ptr<backup::Store> store,
                                                   bool create) {
  // A log that was trimmed has no message 0.
  auto names = store->list(prefix);
  if (!names) return names.status();
  if (names->empty() && !create)
    return failure(Code::not_found, store->name(), "no log", "that of a replicated pool",
                   "name the log");
  if (names->empty())
    if (auto made = store->put(name_of(0), nullptr, 0); !made) return made.status();
  return std::shared_ptr<LogService>(std::make_shared<StoreLog>(std::move(store)));
}

}  // namespace perdure::replication
