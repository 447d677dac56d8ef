// SPDX-License-Identifier: BSD-3-Clause
//
// The file benchmark's workload over any Store: random puts, their times, and the audit. See store.hpp.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <deque>
#include <stdexcept>

#include "bench/harness/timed.hpp"
#include "bench/kv/store.hpp"

namespace bench {
namespace {

constexpr std::uint64_t keys = 200'000;
constexpr std::uint64_t loaded = keys / 2;

/// Times in buckets of an eighth of an octave.
class Histogram {
 public:
  void add(std::uint64_t ns) { ++counts_[bucket_of(ns)]; }
  void add(const Histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  }
  [[nodiscard]] double quantile_us(double q) const {
    std::uint64_t all = 0, below = 0;
    for (const std::uint64_t n : counts_) all += n;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      below += counts_[i];
      if (all > 0 && static_cast<double>(below) >= q * static_cast<double>(all)) {
        return static_cast<double>((8 + i % 8) << (i / 8)) / 8 / 1000;
      }
    }
    return 0;
  }

 private:
  static std::size_t bucket_of(std::uint64_t ns) {
    const std::uint64_t scaled = std::max<std::uint64_t>(ns, 1) << 3;
    const auto octave = static_cast<unsigned>(std::bit_width(scaled)) - 4;
    return std::min<std::size_t>(octave * 8 + ((scaled >> octave) & 7), std::tuple_size_v<decltype(counts_)> - 1);
  }
  std::array<std::uint64_t, 400> counts_{};
};

class KvSession final : public Session {
 public:
  KvSession(std::string directory, bool wait, std::unique_ptr<Store> store)
      : directory_(std::move(directory)), wait_(wait), put_(keys), store_(std::move(store)) {
    constexpr std::uint64_t a_batch = 100;
    std::vector<Record> batch;
    for (std::uint64_t n = 0; n < loaded; ++n) {
      const Key key = key_of(n);
      batch.push_back({key, value_of(key, 0)});
      put_[n].store(true);
      if (batch.size() == a_batch || n + 1 == loaded) {
        store_->load(batch);
        batch.clear();
      }
    }
  }

  Outcome run(const Cell& cell) override {
    if (parameter_of(cell.workload, "kv") != value_bytes) {
      throw std::invalid_argument("found workload '" + cell.workload + "', expected kv-" + std::to_string(value_bytes));
    }
    sync_file_system(directory_);
    std::deque<Histogram> times(cell.threads);
    const auto before = store_->counters();

    struct Worker {
      KvSession& session;
      unsigned thread;
      Rng rng;
      Histogram* times;
      std::uint64_t done = 0;

      Step operator()() {
        using Clock = std::chrono::steady_clock;
        const std::uint64_t n = rng.below(keys);
        const Key key = key_of(n);
        const Value value = value_of(key, rng());
        const bool timed = session.wait_ || done++ % 32 == 0;
        const auto start = timed ? Clock::now() : Clock::time_point{};
        session.store_->put(thread, key, value);
        if (timed) times->add(static_cast<std::uint64_t>((Clock::now() - start).count()));
        if (!session.put_[n].load(std::memory_order_relaxed)) session.put_[n].store(true, std::memory_order_relaxed);
        return {.wrote = true, .grown = 0};
      }
      void settle() { session.store_->settle(thread); }
    };
    const Tally tally = run_timed(cell, [&](unsigned t) { return Worker{*this, t, Rng(cell.seed, t), &times[t]}; });

    Outcome outcome{.operations = tally.operations,
                    .writes = tally.writes,
                    .seconds = tally.seconds,
                    .rate = tally.rate,
                    .cpu_seconds = tally.cpu_seconds,
                    .counters = {}};
    for (const auto& [name, value] : store_->counters()) {
      const auto old = before.find(name);
      outcome.counters[name] = value - (old == before.end() ? 0.0 : old->second);
    }
    for (std::size_t t = 1; t < times.size(); ++t) times[0].add(times[t]);
    outcome.counters["operations"] = static_cast<double>(tally.all_operations);
    outcome.counters["p50_us"] = times[0].quantile_us(0.50);
    outcome.counters["p99_us"] = times[0].quantile_us(0.99);
    return outcome;
  }

  std::vector<std::string> audit() override {
    std::uint64_t expected = 0, found = 0, broken = 0, unknown = 0;
    std::map<Key, bool> all;
    for (std::uint64_t n = 0; n < keys; ++n) {
      if (put_[n].load()) all.emplace(key_of(n), false);
    }
    expected = all.size();
    store_->for_each([&](const char* key_data, std::size_t key_size, const char* value, std::size_t value_size) {
      Key key{};
      std::memcpy(key.data(), key_data, std::min(key_size, key_bytes));
      const auto known = all.find(key);
      if (key_size != key_bytes || known == all.end() || known->second) {
        ++unknown;
        return;
      }
      known->second = true;
      ++found;
      if (!is_value_of(key, value, value_size)) ++broken;
    });
    if (found == expected && broken + unknown == 0) return {};
    return {"kv: found " + std::to_string(found) + " of " + std::to_string(expected) + " keys, " + std::to_string(broken) +
            " with a broken value, " + std::to_string(unknown) + " unknown or repeated"};
  }

  bool reopen() override {
    store_->reopen();
    return true;
  }
  [[nodiscard]] std::string describe() override { return store_->describe(); }

 private:
  std::string directory_;
  bool wait_;
  std::vector<std::atomic<bool>> put_;
  std::unique_ptr<Store> store_;
};

}  // namespace

std::unique_ptr<Session> open_kv(const Setting& setting, bool wait, std::unique_ptr<Store> store) {
  if (setting.structure != "kv") throw std::invalid_argument("found structure '" + setting.structure + "', expected kv");
  return std::make_unique<KvSession>(setting.directory, wait, std::move(store));
}

void sync_file_system(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::syncfs(fd);
  ::close(fd);
}

}  // namespace bench
