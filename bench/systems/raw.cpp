// SPDX-License-Identifier: BSD-3-Clause
//
// raw: the bound that the file system and the device set for a log: one thread writes groups of a
// given size, one after the other, with O_DIRECT|O_DSYNC into a file that was written before (so
// that no write changes the file's metadata). Parameter: the group's bytes.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "bench/harness/timed.hpp"
#include "bench/systems/systems.hpp"

namespace bench {
namespace {

constexpr std::size_t file_bytes = std::size_t{64} << 20;

class RawSession final : public Session {
 public:
  explicit RawSession(const Setting& setting) : path_(setting.directory + "/raw") {
    buffer_ = static_cast<char*>(std::aligned_alloc(4096, chunk));
    if (buffer_ == nullptr) throw std::bad_alloc();
    std::memset(buffer_, 0x5a, chunk);
    fd_ = ::open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);
    direct_ = fd_ >= 0;
    if (!direct_) fd_ = ::open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    for (std::size_t at = 0; at < file_bytes; at += chunk) write(at, chunk);
    if (fd_ < 0 || ::fsync(fd_) != 0) fail();
    ::close(fd_);
    fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_DSYNC | (direct_ ? O_DIRECT : 0));
    if (fd_ < 0) fail();
  }
  RawSession(const RawSession&) = delete;
  RawSession& operator=(const RawSession&) = delete;
  ~RawSession() override {
    ::close(fd_);
    std::free(buffer_);
  }

  Outcome run(const Cell& cell) override {
    const std::size_t group = parameter_of(cell.workload, "raw");
    if (group == 0 || group % 4096 != 0 || group > chunk) {
      throw std::invalid_argument("raw: found groups of " + std::to_string(group) +
                                  " bytes, expected a multiple of 4096, at most 1 MiB");
    }
    struct Worker {
      RawSession& session;
      std::size_t group, at = 0;
      Step operator()() {
        session.write(at, group);
        at = at + 2 * group > file_bytes ? 0 : at + group;
        return {.wrote = true, .grown = 0};
      }
      void settle() {}
    };
    const Tally tally = run_timed(cell, [&](unsigned) { return Worker{*this, group}; });
    const auto n = static_cast<double>(tally.all_operations);
    return {.operations = tally.operations,
            .writes = tally.operations,
            .seconds = tally.seconds,
            .rate = tally.rate,
            .cpu_seconds = tally.cpu_seconds,
            .counters = {
                {"operations", n}, {"syncs", n}, {"log_bytes", n * static_cast<double>(group)}}};
  }
  std::vector<std::string> audit() override { return {}; }
  [[nodiscard]] std::string describe() override {
    return std::string(direct_ ? "O_DIRECT|O_DSYNC"
                               : "O_DSYNC (this file system refuses O_DIRECT)") +
           " into a prewritten file";
  }

 private:
  static constexpr std::size_t chunk = std::size_t{1} << 20;
  [[noreturn]] void fail() const { throw std::system_error(errno, std::generic_category(), path_); }
  void write(std::size_t at, std::size_t n) const {
    if (::pwrite(fd_, buffer_, n, static_cast<off_t>(at)) != static_cast<ssize_t>(n)) fail();
  }

  std::string path_;
  char* buffer_ = nullptr;
  int fd_ = -1;
  bool direct_ = true;
};

}  // namespace

void add_raw(Systems& systems) {
  systems.push_back({"raw",
                     "groups written with O_DIRECT|O_DSYNC into a prewritten file",
                     {"raw", "kv"},
                     1,
                     [](const Setting& s) -> std::unique_ptr<Session> {
                       return std::make_unique<RawSession>(s);
                     }});
}

}  // namespace bench
