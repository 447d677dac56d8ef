// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/workload_trace.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "perdure/base/checksum.hpp"
#include "perdure/base/descriptor.hpp"

namespace perdure::engine {
namespace {

class Input {
 public:
  explicit Input(const std::string& path)
      : path_(path), fd_(base::open_file(path.c_str(), O_RDONLY)) {
    struct stat st = {};
    if (fd_ < 0 || ::fstat(fd_, &st) != 0)
      status_ = system_failure(path, "open", errno,
                               "record one: PERDURE_TRACE=FILE program (docs/advise.md)");
    else if (!S_ISREG(st.st_mode))
      status_ = failure(Code::invalid, path, "no regular file", "a workload trace");
    else
      left_ = static_cast<std::uint64_t>(st.st_size);
  }
  ~Input() {
    if (fd_ >= 0) ::close(fd_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] std::uint64_t left() const { return left_; }
  /// Reads n bytes, at most left().
  bool take(void* to, std::uint64_t n) {
    auto* out = static_cast<char*>(to);
    left_ -= n;
    while (n > 0) {
      const ssize_t got = ::read(fd_, out, n);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        status_ = system_failure(path_, "read", got < 0 ? errno : EIO);
        return false;
      }
      out += got;
      n -= static_cast<std::uint64_t>(got);
    }
    return true;
  }

 private:
  const std::string path_;
  const int fd_;
  std::uint64_t left_ = 0;
  Status status_;
};

// Returns whether a chunk's words are what a recorder writes: code that replays them relies on it.
bool sound(const std::uint64_t* words, std::uint64_t n, std::uint64_t transactions,
           std::uint64_t max_data) {
  std::uint64_t begun = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const TraceKind kind = kind_of(words[i]);
    const std::uint64_t at = low_of(words[i]);
    if (kind < TraceKind::begin || kind > TraceKind::free) return false;
    if (has_second(kind) && ++i == n) return false;
    if (kind == TraceKind::begin) {
      if (at >> 1 > static_cast<std::uint64_t>(Durability::async)) return false;
      ++begun;
      continue;
    }
    if (begun == 0 || at % 8 != 0 || at >= max_data) return false;
    const bool many = kind == TraceKind::read_words || kind == TraceKind::write_words;
    const std::uint64_t bytes = many                                                  ? words[i]
                                : kind == TraceKind::read || kind == TraceKind::write ? 1
                                                                                      : 0;
    if (bytes > (max_data - at) / 8) return false;
    if (!many && has_second(kind) && words[i] > max_data - at) return false;
  }
  return begun == transactions;
}

}  // namespace

Result<WorkloadTrace> read_workload_trace(const std::string& path) {
  Input in(path);
  if (!in.status().ok()) return in.status();
  WorkloadTrace trace;
  const std::uint64_t size = in.left();
  if (size < sizeof(TraceHeader))
    return failure(Code::incompatible, path,
                   size == 0 ? "an empty file" : std::to_string(size) + " bytes",
                   "a workload trace", "record one: PERDURE_TRACE=FILE program (docs/advise.md)");
  TraceHeader& h = trace.header;
  if (!in.take(&h, sizeof h)) return in.status();
  if (std::memcmp(h.magic, trace_magic, sizeof h.magic) != 0)
    return failure(Code::incompatible, path, "no workload trace", "a file that begins as one",
                   "record one: PERDURE_TRACE=FILE program (docs/advise.md)");
  if (h.version != trace_version)
    return failure(Code::incompatible, path,
                   "a workload trace of version " + std::to_string(h.version),
                   "version " + std::to_string(trace_version), "record it again with this library");
  if (h.checksum != base::hash_bytes(&h, offsetof(TraceHeader, checksum), 0))
    return failure(Code::corrupt, path, "a header whose checksum differs",
                   "the one that was written", "record it again");
  trace.data_bytes = h.data_bytes;
  while (in.left() > 0) {
    TraceChunk chunk;
    if (in.left() < sizeof chunk) {
      trace.torn = true;
      break;
    }
    const std::uint64_t at = size - in.left();
    if (!in.take(&chunk, sizeof chunk)) return in.status();
    const auto damaged = [&](const char* what) {
      return failure(Code::corrupt, path, std::string(what) + " at byte " + std::to_string(at),
                     "a chunk as it was written", "record it again");
    };
    if (chunk.magic == 0) {  // its words are written before the head
      trace.torn = true;
      break;
    }
    if (chunk.magic != chunk_magic || chunk.thread >= base::max_threads)
      return damaged("no chunk of a trace");
    if (chunk.words > in.left() / 8) {  // killed while it was written
      trace.torn = true;
      break;  // the program was killed while it was written
    }
    if (trace.threads.size() <= chunk.thread) trace.threads.resize(chunk.thread + 1);
    auto& words = trace.threads[chunk.thread];
    const std::size_t had = words.size();
    words.resize(had + chunk.words);
    if (!in.take(words.data() + had, chunk.words * 8)) return in.status();
    if (chunk.checksum !=
        base::hash_bytes(words.data() + had, chunk.words * 8,
                         base::hash_bytes(&chunk, offsetof(TraceChunk, checksum), 0)))
      return damaged("a chunk whose checksum differs");
    if (!sound(words.data() + had, chunk.words, chunk.transactions, h.max_data_bytes))
      return damaged("a chunk with ops that are none");
    trace.transactions += chunk.transactions;
    trace.retried += chunk.retried;
    trace.rolled_back += chunk.rolled_back;
    trace.data_bytes = std::max(trace.data_bytes, chunk.data_bytes);
    trace.elapsed_ns = std::max(trace.elapsed_ns, chunk.elapsed_ns);
  }
  return trace;
}

}  // namespace perdure::engine
