// SPDX-License-Identifier: BSD-3-Clause
//
// What replication costs: the latency of an update that waits for a quorum, or for a standby,
// beside a bare append of as many bytes to the same servers, and the throughput of updates that
// wait for nothing but this copy, with and without a log that is appended to behind them. `./dev
// bench replicated` runs it: a cell's name on standard input, its result as JSON on standard
// output.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "nats/nats_log.hpp"
#include "perdure/backup/frame.hpp"
#include "perdure/perdure.hpp"
#include "perdure/replication/logs.hpp"
#include "perdure/replication/standby.hpp"

namespace bench::replicated {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using perdure::replication::LogService;

struct Words {
  static constexpr std::size_t count = 65'536;
  std::array<perdure::p<std::uint64_t>, count> word;
};
using WordPool = perdure::Pool<Words>;

struct Arguments {
  std::string log, folder, memory;
  double seconds = 1;
} arguments;

double seconds_since(Clock::time_point from) {
  return std::chrono::duration<double>(Clock::now() - from).count();
}

// A log that keeps the last message only: what a primary itself does, without any log's cost.
class Nowhere final : public LogService {
 public:
  perdure::replication::AppendAnswer append(std::uint64_t sequence, const void* bytes,
                                            std::uint64_t n) override {
    const auto* const first = static_cast<const std::byte*>(bytes);
    last_ = {sequence, {first, first + n}};
    return {perdure::replication::Append::done, {}};
  }
  perdure::Result<std::vector<perdure::replication::Message>> read(std::uint64_t from,
                                                                   std::uint64_t) override {
    if (from != last_.sequence || from == 0) return std::vector<perdure::replication::Message>();
    return std::vector{last_};
  }
  perdure::Result<perdure::replication::LogEnds> ends() override {
    return perdure::replication::LogEnds{1, last_.sequence};
  }
  perdure::Status trim(std::uint64_t) override { return {}; }
  perdure::Result<perdure::replication::LogTraits> describe() override {
    return perdure::replication::LogTraits{3, true, 1 << 20};
  }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }

 private:
  perdure::replication::Message last_;
  const std::string name_ = "nowhere";
};

// The median and the 99th percentile of what was timed, in microseconds, and how often in a second.
Json latencies(std::vector<double>& us, double seconds) {
  if (us.empty()) throw std::runtime_error("nothing was done in a cell");
  std::sort(us.begin(), us.end());
  const auto at = [&](double p) {
    return us[std::min(us.size() - 1,
                       static_cast<std::size_t>(p * static_cast<double>(us.size())))];
  };
  return {{"p50_us", at(0.5)},
          {"p99_us", at(0.99)},
          {"rate", static_cast<double>(us.size()) / seconds}};
}
template <class F>
Json time_each(F&& f) {
  std::vector<double> us;
  const auto from = Clock::now();
  while (seconds_since(from) < arguments.seconds) {
    const auto begun = Clock::now();
    f();
    us.push_back(seconds_since(begun) * 1e6);
  }
  return latencies(us, seconds_since(from));
}

// A frame with one transaction of one word, as a primary appends it.
class Append {
 public:
  Append() : log_(perdure::replication::open_named_log(named("append")).value()) {
    next_ = log_->ends().value().last + 1;
    bytes_.resize(sizeof(perdure::backup::FrameHeader) + 32, std::byte{1});
  }
  static std::string named(const std::string& stream) {
    const std::size_t end = arguments.log.find('?');
    return arguments.log.substr(0, end) + "-" + stream + arguments.log.substr(end);
  }
  Json run() {
    return time_each([&] {
      const auto answer = log_->append(next_++, bytes_.data(), bytes_.size());
      if (answer.outcome != perdure::replication::Append::done) answer.why.or_throw();
    });
  }

 private:
  std::shared_ptr<LogService> log_;
  std::uint64_t next_ = 0;
  std::vector<std::byte> bytes_;
};

class Updates {
 public:
  enum class Log : std::uint8_t { none, nowhere, servers };
  Updates(const std::string& name, const char* medium, Log log)
      : name_(name), pool_(open(name, medium, log)), random_(1) {}

  /// Has a standby on a file from here on.
  void follow() {
    const std::string copy = arguments.folder + "/" + name_ + "-copy";
    const std::string backups = arguments.folder + "/" + name_ + "-backups";
    (void)pool_.backup(backups);
    perdure::StandbyOptions o;
    o.medium = "file";
    o.replicate.log = Append::named(name_);
    o.backups = backups;
    standby_ = perdure::replication::StandbyCopy::open(copy, o).value();
    standby_->catch_up(std::chrono::seconds(30)).or_throw();
  }
  Json wait_for(perdure::Ack level) {
    return time_each([&] {
      const std::uint64_t n = random_();
      pool_.update(level, [&](auto& tx, Words& w) { tx.write(w.word[n % Words::count], n); });
    });
  }
  Json wait_for_this_copy() {
    const std::uint64_t waits = pool_.replication().waits;
    std::uint64_t updates = 0;
    const auto from = Clock::now();
    while (seconds_since(from) < arguments.seconds)
      for (int i = 0; i < 100; ++i, ++updates) {
        const std::uint64_t n = random_();
        pool_.update([&](auto& tx, Words& w) { tx.write(w.word[n % Words::count], n); });
      }
    return {{"rate", static_cast<double>(updates) / seconds_since(from)},
            {"waits", pool_.replication().waits - waits}};
  }

 private:
  static WordPool open(const std::string& name, const char* medium, Log log) {
    perdure::Options o;
    o.medium = medium;
    o.creation.log_size = 64 << 20;
    if (log == Log::nowhere) o.replicate.service = std::make_shared<Nowhere>();
    if (log == Log::servers) o.replicate.log = Append::named(name);
    const std::string& folder = medium == std::string("file") ? arguments.folder : arguments.memory;
    return WordPool::open(folder + "/" + name, o);
  }
  const std::string name_;
  WordPool pool_;
  std::unique_ptr<perdure::replication::StandbyCopy> standby_;
  std::mt19937_64 random_;
};

int run() {
  perdure::nats::enable();
  Append append;
  using Log = Updates::Log;
  Updates quorum("quorum", "emulated", Log::servers), on_file("quorum-file", "file", Log::servers),
      alone("alone", "emulated", Log::none), nowhere("nowhere", "emulated", Log::nowhere),
      shipped("shipped", "emulated", Log::servers), followed("standby", "emulated", Log::servers);
  followed.follow();
  const std::map<std::string, std::function<Json()>> cells{
      {"append", [&] { return append.run(); }},
      {"quorum", [&] { return quorum.wait_for(perdure::quorum); }},
      {"quorum-file", [&] { return on_file.wait_for(perdure::quorum); }},
      {"standby", [&] { return followed.wait_for(perdure::standby(1)); }},
      {"alone", [&] { return alone.wait_for_this_copy(); }},
      {"nowhere", [&] { return nowhere.wait_for_this_copy(); }},
      {"shipped", [&] { return shipped.wait_for_this_copy(); }}};
  std::cout << Json{{"ready", true}}.dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << cells.at(line)().dump() << std::endl;
  return 0;
}

}  // namespace
}  // namespace bench::replicated

int main(int argc, char** argv) {
  using namespace bench::replicated;
  CLI::App app("What replication costs");
  app.add_option("--log", arguments.log)->required();
  app.add_option("--dir", arguments.folder)->required();
  app.add_option("--memory", arguments.memory)->required();
  app.add_option("--seconds", arguments.seconds);
  CLI11_PARSE(app, argc, argv);
  try {
    return run();
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
