// SPDX-License-Identifier: BSD-3-Clause
//
// One store: a process that writes rows, each durable before the next, alone; beside one that reads
// all rows in one transaction; beside one that makes a backup; and how long it takes until a reader
// sees what was written. `./dev bench readers` runs it for each store in turn.
// Prints one JSON object per cell. Exit status: 1 when a reader saw something wrong.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "bench/readers/store.hpp"

namespace bench::readers {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

const std::map<std::string, Open> stores{
    {"perdure", open_perdure}, {"lmdb", open_lmdb}, {"sqlite", open_sqlite}};

struct Arguments {
  std::string system, folder;
  std::uint64_t rows = 100'000, value_bytes = 100;
  double seconds = 1;
} arguments;

// A scan may be wanted for minutes; the other cells say as much in less.
double alone_seconds() { return std::min(arguments.seconds, 20.0); }
double staleness_seconds() { return std::min(arguments.seconds, 10.0); }

double seconds_since(Clock::time_point from) {
  return std::chrono::duration<double>(Clock::now() - from).count();
}
std::unique_ptr<Store> open(bool writes) {
  return stores.at(arguments.system)(arguments.folder, writes);
}
// No two values are the same: a store may leave out a write that changes nothing. All have the same
// sum, so that a reader can tell a whole state from a mixture.
std::string value_of(std::uint64_t n) {
  std::string value(arguments.value_bytes, '\1');
  for (std::size_t i = 0; i < 8; ++i) {
    const auto part = static_cast<unsigned char>(n >> (8 * i));
    value[i] = static_cast<char>(part);
    value[8 + i] = static_cast<char>(255 - part);
  }
  return value;
}
std::uint64_t sum_of_a_value() { return arguments.value_bytes - 16 + std::uint64_t{8} * 255; }
std::uint64_t bytes_in(const std::string& folder) {
  std::uint64_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    struct stat st = {};
    if (::stat(file.path().c_str(), &st) == 0 && S_ISREG(st.st_mode))
      bytes += static_cast<std::uint64_t>(st.st_blocks) * 512;
  }
  return bytes;
}

void send(const void* from, std::size_t n) { (void)!::write(STDOUT_FILENO, from, n); }

// This program again, in the part of the reader: it sends what it finds to its standard output. A
// forked child alone would inherit what the stores' libraries know of open files.
class Reader {
 public:
  explicit Reader(const char* part) {
    if (::pipe2(ends_, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    const std::vector<std::string> words{"reader",
                                         "--system",
                                         arguments.system,
                                         "--dir",
                                         arguments.folder,
                                         "--rows",
                                         std::to_string(arguments.rows),
                                         "--value-bytes",
                                         std::to_string(arguments.value_bytes),
                                         "--seconds",
                                         std::to_string(arguments.seconds),
                                         "--reads",
                                         part};
    std::vector<char*> raw;
    for (const std::string& word : words) raw.push_back(const_cast<char*>(word.c_str()));
    raw.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends_[1], STDOUT_FILENO);
      ::execv("/proc/self/exe", raw.data());
      ::_exit(127);
    }
    ::close(ends_[1]);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), wait();
    ::close(ends_[0]);
  }
  // False at its end.
  bool receive(void* to, std::size_t n) {
    return ::read(ends_[0], to, n) == static_cast<ssize_t>(n);
  }
  [[nodiscard]] bool ended(int& status) {
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
    pid_ = -1;
    return true;
  }
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  int ends_[2] = {};
  pid_t pid_ = -1;
};

// ---- the reader's part --------------------------------------------------------------------------

void read_scans() {
  const auto own = open(false);
  std::uint64_t scans = 0;
  Clock::time_point from;
  own->scan_in_one_transaction([&](std::uint64_t rows, std::uint64_t sum) {
    if (rows != arguments.rows || sum != rows * sum_of_a_value())
      throw std::runtime_error("a scan saw another state");
    if (scans++ == 0) {
      from = Clock::now();
      send(&scans, sizeof scans);
    }
    return seconds_since(from) < arguments.seconds;
  });
  const double rate =
      static_cast<double>(scans - 1) * static_cast<double>(arguments.rows) / seconds_since(from);
  send(&rate, sizeof rate);
}

void read_newest() {
  const auto own = open(false);
  std::uint64_t last = 0;
  const auto from = Clock::now();
  while (seconds_since(from) < staleness_seconds()) {
    const std::string value = own->get(0);
    std::uint64_t ns = 0;
    std::memcpy(&ns, value.data(), sizeof ns);
    if (ns != last) {
      const std::uint64_t age =
          static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()) - ns;
      if (last != 0) send(&age, sizeof age);
      last = ns;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void read_backup() { open(false)->back_up(arguments.folder + "-backup"); }

// ---- the writer's part --------------------------------------------------------------------------

std::uint64_t next_write = 0;
void write_one(Store& store) {
  const std::uint64_t n = next_write++;
  store.put(n * 7919 % arguments.rows, value_of(n));
}
// Writes until `done()`; returns the rate.
template <class Done>
double write_until(Store& store, Done&& done) {
  const std::uint64_t first = next_write;
  const auto from = Clock::now();
  while (!done()) write_one(store);
  return static_cast<double>(next_write - first) / seconds_since(from);
}
double write_for(Store& store, double seconds) {
  const auto from = Clock::now();
  return write_until(store, [&] { return seconds_since(from) >= seconds; });
}

Json alone(Store& store) { return {{"rate", write_for(store, alone_seconds())}}; }

Json beside_a_scan(Store& store) {
  const std::uint64_t before = bytes_in(arguments.folder);
  Reader reader("scan");
  std::uint64_t begun = 0;
  double scanned = 0;
  if (!reader.receive(&begun, sizeof begun)) throw std::runtime_error("the reader has failed");
  const double rate = write_for(store, arguments.seconds);
  if (!reader.receive(&scanned, sizeof scanned) || reader.wait() != 0)
    throw std::runtime_error("the reader has failed");
  return {{"rate", rate},
          {"rows_read", scanned},
          {"bytes_before", before},
          {"bytes_after", bytes_in(arguments.folder)}};
}

Json beside_a_backup(Store& store) {
  const std::string to = arguments.folder + "-backup";
  std::filesystem::remove_all(to);
  const auto from = Clock::now();
  Reader reader("backup");
  int status = 0;
  const double rate = write_until(store, [&] { return reader.ended(status); });
  const double seconds = seconds_since(from);
  if (status != 0) throw std::runtime_error("the backup has failed");
  std::filesystem::remove_all(to);
  return {{"rate", rate}, {"backup_seconds", seconds}};
}

// From before a put until a reader that polls sees it; the put itself is timed, too.
Json staleness(Store& store) {
  const auto now_text = [] {
    const std::uint64_t ns = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
    std::string text(arguments.value_bytes, '\1');
    std::memcpy(text.data(), &ns, sizeof ns);
    return text;
  };
  store.put(0, now_text());
  const double seconds = staleness_seconds();
  Reader reader("newest");
  std::vector<double> puts, seen;
  std::thread listen([&] {
    for (std::uint64_t age = 0; reader.receive(&age, sizeof age);)
      seen.push_back(static_cast<double>(age) / 1e6);
  });
  const auto from = Clock::now();
  while (seconds_since(from) < seconds) {
    const auto begun = Clock::now();
    store.put(0, now_text());
    puts.push_back(seconds_since(begun) * 1e3);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  listen.join();
  store.put(0, value_of(next_write));
  const auto percentiles = [](std::vector<double>& of) {
    std::sort(of.begin(), of.end());
    const auto at = [&](double p) {
      return of.empty() ? 0.0
                        : of[static_cast<std::size_t>(p * static_cast<double>(of.size() - 1))];
    };
    return Json{{"p50", at(0.5)}, {"p90", at(0.9)}, {"p99", at(0.99)}, {"count", of.size()}};
  };
  return {{"seen_ms", percentiles(seen)}, {"put_ms", percentiles(puts)}};
}

int run() {
  static const std::map<std::string, Json (*)(Store&)> known{{"alone", alone},
                                                             {"scan", beside_a_scan},
                                                             {"backup", beside_a_backup},
                                                             {"staleness", staleness}};
  std::filesystem::create_directories(arguments.folder);
  // The cells of one round; readers open the store after it was made.
  const auto store = open(true);
  constexpr std::uint64_t at_once = 1000;
  for (std::uint64_t from = 0; from < arguments.rows; from += at_once)
    store->load(from, std::min(from + at_once, arguments.rows), value_of);
  next_write = arguments.rows;  // what was loaded has the numbers below
  write_one(*store);
  std::cout << Json{{"ready", true}}.dump() << std::endl;
  for (std::string cell; std::getline(std::cin, cell);) {
    const auto found = known.find(cell);
    if (found == known.end()) throw std::runtime_error("found the cell '" + cell + "'");
    Json result = found->second(*store);
    result["cell"] = cell;
    std::cout << result.dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace bench::readers

int main(int argc, char** argv) {
  using bench::readers::arguments;
  CLI::App app{"Reads cells (alone, scan, backup, staleness) from standard input, one per line"};
  app.add_option("--system", arguments.system, "perdure, lmdb or sqlite")->required();
  app.add_option("--dir", arguments.folder, "a new folder")->required();
  app.add_option("--rows", arguments.rows)->capture_default_str();
  app.add_option("--value-bytes", arguments.value_bytes, "16 at least")
      ->check(CLI::Range(std::uint64_t{16}, std::uint64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--seconds", arguments.seconds, "of a scan; the others: at most 20 and 10")
      ->capture_default_str();
  std::string reads;
  app.add_option("--reads", reads, "the reader's part: scan, backup, newest");
  CLI11_PARSE(app, argc, argv);
  if (!bench::readers::stores.contains(arguments.system)) {
    std::cerr << "found --system " << arguments.system << ", expected perdure, lmdb or sqlite\n";
    return 2;
  }
  try {
    if (reads.empty()) return bench::readers::run();
    reads == "scan"     ? bench::readers::read_scans()
    : reads == "backup" ? bench::readers::read_backup()
                        : bench::readers::read_newest();
    return 0;
  } catch (const std::exception& e) {
    std::cerr << arguments.system << ": " << e.what() << "\n";
    return 1;
  }
}
