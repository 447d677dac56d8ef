// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure export POOL [FILE]`: what was loaded, byte for byte (exporter.hpp). A file is written beside its name, made durable, then
// renamed: it is whole or not there.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "tools/command.hpp"
#include "tools/exporter.hpp"

namespace perdure::tool {
namespace {

struct Arguments {
  PoolArguments pool;
  std::string file = "-";
} arguments;

class OutputFile {
 public:
  explicit OutputFile(const std::string& path) : path_(path) {
    struct stat there = {}, pool = {};
    const bool exists = ::stat(path.c_str(), &there) == 0;
    if (exists && ::stat(arguments.pool.path.c_str(), &pool) == 0 && there.st_dev == pool.st_dev && there.st_ino == pool.st_ino) {
      throw error(failure(Code::invalid, path, "the pool itself", "another file to export to"));
    }
    if (path == "-")
      fd_ = STDOUT_FILENO;
    else if (!exists || S_ISREG(there.st_mode))
      temporary_ = path + ".part-" + std::to_string(::getpid());
    if (fd_ < 0) fd_ = ::open(temporary_.empty() ? path.c_str() : temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) throw error(system_failure(path, "open", errno));
  }
  ~OutputFile() {
    if (fd_ > STDOUT_FILENO) ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes) {
    buffer_ += bytes;
    bytes_ += bytes.size();
    if (buffer_.size() >= 1 << 20) flush();
  }
  void finish() {
    flush();
    if (temporary_.empty()) return;
    if (::fsync(fd_) != 0) throw error(system_failure(path_, "fsync", errno));
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw error(system_failure(path_, "rename", errno));
    temporary_.clear();
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void flush() {
    write_all(fd_, buffer_, path_ == "-" ? "standard output" : path_);
    buffer_.clear();
  }
  std::string path_, temporary_, buffer_;
  int fd_ = -1;
  std::uint64_t bytes_ = 0;
};

int run(App& app) {
  if (app.json && arguments.file == "-") throw error(failure(Code::invalid, "", "--json with an export to standard output", "a FILE"));
  auto pool = StorePool::open(arguments.pool, StorePool::Access::read);
  const SourceState source = pool.source();
  OutputFile out(arguments.file);
  Exporter exporter(source, [&](std::string_view bytes) { out.write(bytes); });
  std::uint64_t rows = 0;
  pool.each_row([&](const StoredRow& row) {
    exporter.row(row);
    ++rows;
    return true;
  });
  exporter.end();
  out.finish();
  if (source.begun && !source.complete) {
    fmt::print(stderr, "perdure: {}: the load of {} was cut at line {}; exported is what came before it\n", arguments.pool.path,
               source.path, source.line);
  }
  if (app.json)
    App::print({{"pool", arguments.pool.path},
                {"file", arguments.file},
                {"rows", rows},
                {"bytes", out.bytes()},
                {"complete", !source.begun || source.complete}});
  return exit_ok;
}

}  // namespace

void add_export(App& app) {
  auto* sub = app.add("export", "write what was loaded, byte for byte", "perdure export packages.perdure Packages.copy");
  arguments.pool.add_to(sub);
  sub->add_option("FILE", arguments.file, "where to; -: standard output")->capture_default_str();
  sub->callback([&app] { app.go = run; });
}

}  // namespace perdure::tool
