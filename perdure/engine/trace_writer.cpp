// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/trace_writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>

#include "perdure/base/at_fork.hpp"
#include "perdure/base/checksum.hpp"
#include "perdure/base/descriptor.hpp"
#include "perdure/pool/directory.hpp"

namespace perdure::engine {
namespace {

constexpr std::uint64_t default_limit = 64 << 20;

std::uint64_t limit_from_environment() {
  const char* const text = std::getenv("PERDURE_TRACE_MAX");
  if (text == nullptr || *text == 0) return default_limit;
  std::uint64_t bytes = 0;
  const char* const end = text + std::strlen(text);
  if (const auto read = std::from_chars(text, end, bytes);
      read.ec != std::errc() || read.ptr != end || bytes == 0)
    throw error(failure(Code::invalid, "", std::string("PERDURE_TRACE_MAX '") + text + "'",
                        "a number of bytes", "unset it for 64 MiB"));
  return bytes;
}

struct Numbers {
  std::mutex mutex;
  std::map<std::string, unsigned> taken;  // by path
};
Numbers& numbers() {
  static Numbers* const all = new Numbers;
  return *all;
}
const int held = base::hold_over_fork<numbers>();

// Returns n for the n-th pool that this process records to a path.
unsigned take_number(const std::string& path) {
  const std::lock_guard lock(numbers().mutex);
  return ++numbers().taken[path];
}

bool write_whole(int fd, const void* data, std::size_t n, off_t at) noexcept {
  const auto* from = static_cast<const char*>(data);
  while (n > 0) {
    const ssize_t wrote = ::pwrite(fd, from, n, at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    from += wrote;
    at += wrote;
    n -= static_cast<std::size_t>(wrote);
  }
  return true;
}

}  // namespace

std::unique_ptr<TraceWriter> TraceWriter::for_pool(pool::OpenPool& file, const Config& config) {
  std::string name = config.trace;
  if (name.empty())
    if (const char* const text = std::getenv("PERDURE_TRACE"); text != nullptr) name = text;
  if (name.empty()) return nullptr;
  for (std::size_t at = 0; (at = name.find("%p", at)) != std::string::npos;)
    name.replace(at, 2, std::to_string(::getpid()));
  if (const unsigned n = take_number(name); n != 1) name += "." + std::to_string(n);
  return std::make_unique<TraceWriter>(name, file, config);
}

TraceWriter::TraceWriter(const std::string& name, pool::OpenPool& file, const Config& config)
    : file_(file) {
  constexpr const char* advice = "PERDURE_TRACE and Options::trace name a file that can be written";
  header_.limit_bytes = limit_from_environment();
  fd_ = base::open_file(name.c_str(), O_RDWR | O_CREAT, 0666);  // emptied after it is locked
  if (fd_ < 0) throw error(system_failure(name, "open", errno, advice));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    ::close(fd_);
    throw error(failure(Code::busy, name, "a trace that another process is recording",
                        "a file of this process's own",
                        "put %p in PERDURE_TRACE: the process's number"));
  }
  std::memcpy(header_.magic, trace_magic, sizeof header_.magic);
  header_.version = trace_version;
  config.instance.copy(header_.engine, sizeof header_.engine - 1);
  file.medium().kind().copy(header_.medium, sizeof header_.medium - 1);
  header_.durability = static_cast<std::uint32_t>(config.durability);
  const pool::Directory directory(file.header());
  header_.max_data_bytes = directory.max_data_bytes();
  header_.data_bytes = file.data_bytes();
  header_.first_data = directory.first_chunk() * pool::chunk_bytes;
  header_.root_offset = file.root_offset();
  header_.root_bytes = file.root_bytes();
  if (::ftruncate(fd_, 0) != 0 || !write_header()) {
    const int err = errno;
    ::close(fd_);
    throw error(system_failure(name, "write", err, advice));
  }
}

// A child that was forked meanwhile has a descriptor of the same open file: closing this one alone
// would leave the lock.
TraceWriter::~TraceWriter() {
  if (!in_child()) (void)::flock(fd_, LOCK_UN);
  ::close(fd_);
}

bool TraceWriter::take_room(std::uint64_t bytes) noexcept {
  if (room_used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= header_.limit_bytes)
    return true;
  stop(TraceEnd::limit);
  return false;
}

void TraceWriter::stop(TraceEnd why) noexcept {
  const std::lock_guard lock(mutex_);
  if (!on_.exchange(false, std::memory_order_relaxed)) return;
  header_.end = why;
  (void)write_header();
}

void TraceWriter::append(TraceChunk& chunk, const std::uint64_t* words) noexcept {
  if (in_child()) return;
  chunk.magic = chunk_magic;
  chunk.data_bytes = file_.data_bytes();
  chunk.elapsed_ns =
      static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - begun_).count());
  chunk.checksum = base::hash_bytes(words, chunk.words * 8,
                                    base::hash_bytes(&chunk, offsetof(TraceChunk, checksum), 0));
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    const off_t bytes = static_cast<off_t>(chunk.words * 8), head = sizeof chunk;
    if (write_whole(fd_, words, chunk.words * 8, end_ + head) &&
        write_whole(fd_, &chunk, sizeof chunk, end_)) {
      end_ += head + bytes;
      return;
    }
    failed_ = true;
    (void)!::ftruncate(fd_, end_);  // what was written stays readable
  }
  stop(TraceEnd::failed);
}

void TraceWriter::finish(TraceEnd why) noexcept {
  if (in_child()) return;
  const std::lock_guard lock(mutex_);
  if (on_.exchange(false, std::memory_order_relaxed)) header_.end = why;
  header_.threads = threads_.load(std::memory_order_relaxed);
  header_.data_bytes = file_.data_bytes();
  (void)write_header();
}

bool TraceWriter::write_header() noexcept {
  header_.checksum = base::hash_bytes(&header_, offsetof(TraceHeader, checksum), 0);
  return write_whole(fd_, &header_, sizeof header_, 0);
}

}  // namespace perdure::engine
