// SPDX-License-Identifier: BSD-3-Clause
//
// Makes a pool to keep: three parts of the workload, by two threads in turn. The first part ends
// with a close, so that the data region contains it; the second with a checkpoint; the third is in
// the log alone, as far as the engine leaves it there. Then the pool is closed, or its process
// kills itself inside a further transaction, or the medium computes what a power cut there leaves.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "perdure/engine/stat_page.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "testing/recording_medium.hpp"
#include "tests/compat/spec.hpp"

namespace perdure::compat {
namespace {

[[noreturn]] void failed(const std::string& path, const std::string& found,
                         const std::string& expected) {
  throw error(failure(Code::invalid, path, found, expected));
}

/// A second thread that lives as long as the pool, so that it keeps its slot and therefore its
/// ring. It works only while the first one waits.
class Helper {
 public:
  Helper() : thread_([this] { run(); }) {}
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  ~Helper() {
    call(nullptr);
    thread_.join();
  }
  /// Runs `f` on the second thread and waits for it; the thread goes on.
  void call(const std::function<void()>* f) {
    std::unique_lock lock(mutex_);
    task_ = f;
    given_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !given_; });
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return given_; });
      const bool last = task_ == nullptr;
      if (!last) try {
          (*task_)();
        } catch (...) {
          thrown_ = std::current_exception();
        }
      given_ = false;
      changed_.notify_all();
      if (last) return;
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* task_ = nullptr;
  bool given_ = false;
  std::exception_ptr thrown_;
  std::thread thread_;
};

// Runs transactions first to last; the second thread runs the even ones. Combined records contain
// several transactions only if no thread waits for each of them.
void work(TestPool& pool, const Spec& spec, std::uint64_t first, std::uint64_t last) {
  Helper helper;
  const Durability how = spec.persist_group != 0                      ? async
                         : spec.order == pool::CommitOrder::pipelined ? group
                                                                      : durable;
  for (std::uint64_t n = first; n <= last; ++n) {
    const std::function<void()> one = [&] {
      const auto receipt = pool.update(how, [&](auto& tx, Root& root) {
        step(tx, root, n, spec.large());
        if (spec.checksums_and_events) tx.emit("kept", text(n));
      });
      if (n == last) receipt.wait();
    };
    n % 2 == 0 ? helper.call(&one) : one();
  }
}

pool::Header header_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto chosen = pool::read_header(path, fd);
  ::close(fd);
  return chosen.value().header;
}

std::string data_region(const std::string& path, const pool::Header& h) {
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(h.log_bytes));
  return {std::istreambuf_iterator<char>(in), {}};
}

// The number of bytes of the data region that a recovery of a copy changes: what it lacked of the
// acknowledged transactions, or had in excess. -1 when the recovered contents are not exactly the
// three parts.
std::int64_t changed_by_recovery(const Spec& spec, const std::string& path) {
  const std::string copy = path + ".copy";
  std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
  const pool::Header before = header_of(copy);
  const std::string original = data_region(copy, before);
  constexpr int other_contents = 3;
  const int status = in_child([&] {
    Options o = options_of(spec, copy);
    o.create = false;
    o.archive = {};  // its folder is the original's
    // The pool is recovered; the process exits without closing it.
    auto* const pool = new TestPool(TestPool::open(copy, o));
    const Model found = pool->view([](auto& tx, const Root& root) { return contents(tx, root); });
    if (found != model_after(spec.parts().third, spec.large())) ::_exit(other_contents);
  });
  if (status != 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != other_contents))
    failed(path, "a copy that can't be recovered", "a pool that opens");
  const std::string recovered = data_region(copy, before);
  ::shm_unlink(engine::stat_page_name(before.uuid).c_str());
  std::filesystem::remove(copy);
  if (status != 0) return -1;
  std::int64_t n = 0;
  for (std::size_t i = 0; i < original.size(); ++i) n += original[i] != recovered[i] ? 1 : 0;
  return n;
}

// The first part, closed in order: a pool on a file. An engine without durability keeps nothing of
// it.
void write_first_part(const Spec& spec, const std::string& path) {
  Options o = options_of(spec, path);
  o.must_create = true;
  if (spec.first_max_size != 0) o.creation.max_size = spec.first_max_size;
  TestPool pool = TestPool::open(path, o);
  work(pool, spec, 1, spec.parts().first);
  pool.close();
}

// The other parts, and the end: `end` is called inside a further transaction, if there is one.
// `last`, if given, runs the last transaction of the third part.
using Call = std::function<void()>;
void write_other_parts(TestPool& pool, const Spec& spec, const Call& end,
                       const std::function<void(const Call&)>& last = {}) {
  const auto [first, second, third] = spec.parts();
  work(pool, spec, spec.durable_engine() ? first + 1 : 1, second);
  pool.checkpoint();
  work(pool, spec, second + 1, last ? third - 1 : third);
  if (last) last([&] { work(pool, spec, third, third); });
  if (!end) {
    pool.close();
    return;
  }
  struct Ended {};
  try {
    pool.update([&](auto& tx, Root& root) {
      step(tx, root, third + 1, spec.large());
      end();
      throw Ended();
    });
  } catch (const Ended&) {}
}

void write_on_file(const Spec& spec, const std::string& path) {
  Options o = options_of(spec, path);
  o.create = false;
  o.medium = medium_of(spec.unit);
  TestPool pool = TestPool::open(path, o);
  write_other_parts(
      pool, spec, spec.ended == Ended::killed ? [] { (void)::kill(::getpid(), SIGKILL); } : Call());
}

void write_all(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// PATH: what a power cut inside a further transaction leaves; PATH.0, PATH.1, ...: one image after
// each fence of the last transaction.
void write_until_power_cut(const Spec& spec, const std::string& path) {
  const pool::Header h = header_of(path);
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  medium::RecordingOptions how;
  how.log_bytes = h.log_bytes;
  how.data_bytes = h.data_bytes;
  how.max_data_bytes = std::max(pool::Directory(h).max_data_bytes(), kept_max_size);
  auto made = medium::RecordingMedium::make(how, std::as_bytes(std::span(bytes))).value();
  medium::RecordingMedium& recording = *made;
  int fences = 0;
  TestPool pool =
      TestPool::try_open_on(path, options_of(spec, path), std::move(made), false).value();
  const auto last = [&](const Call& transaction) {
    constexpr int most = 40;
    recording.set_fence_hooks({}, [&] {
      if (fences < most)
        write_all(path + "." + std::to_string(fences++), recording.durable_image());
    });
    transaction();
    recording.set_fence_hooks({}, {});
  };
  std::vector<std::byte> image;
  write_other_parts(pool, spec, [&] { image = recording.durable_image(); }, last);
  write_all(path, image);
}

// An engine that writes the data region in its commits has nothing to recover between two
// transactions. For such an engine the kept pool is what a power cut inside the last commit leaves,
// at the last fence at which recovery still has to complete the transaction.
std::int64_t choose_cut(const Spec& spec, const std::string& path) {
  std::int64_t changed = changed_by_recovery(spec, path);
  if (changed < 0)
    failed(path, "other contents after recovery", "all acknowledged transactions and no other");
  int images = 0;
  while (std::filesystem::exists(path + "." + std::to_string(images))) ++images;
  for (int i = images - 1; i >= 0; --i) {
    const std::string image = path + "." + std::to_string(i);
    if (changed == 0)
      if (const std::int64_t n = changed_by_recovery(spec, image); n > 0) {
        changed = n;
        std::filesystem::copy_file(image, path, std::filesystem::copy_options::overwrite_existing);
      }
    std::filesystem::remove(image);
  }
  return changed;
}

// One attempt: makes the pool and throws unless it is as specified. Returns the number of bytes
// that its recovery changes.
std::int64_t make_once(const Spec& spec, const std::string& path) {
  const auto ends_well = [&](const std::function<void()>& body) {
    const int status = in_child(body);
    if (status != 0)
      failed(path, "a process that ended with wait status " + std::to_string(status), "a pool");
  };
  ends_well([&] { write_first_part(spec, path); });
  if (spec.ended == Ended::killed) {
    const int status = in_child([&] { write_on_file(spec, path); });
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
      failed(path, "a process that ended with wait status " + std::to_string(status),
             "one that was killed");
  } else {
    ends_well([&] {
      spec.ended == Ended::closed ? write_on_file(spec, path) : write_until_power_cut(spec, path);
    });
  }
  const pool::Header h = header_of(path);
  ::shm_unlink(engine::stat_page_name(h.uuid).c_str());
  if (h.order != spec.order)
    failed(path, std::string("order ") + order_name(h.order), order_name(spec.order));
  if (h.first_max_bytes != spec.first_max_size ||
      (h.first_max_bytes != 0 && h.data_bytes <= h.first_max_bytes))
    failed(path,
           std::to_string(h.data_bytes) + " bytes of data, and a limit at creation of " +
               std::to_string(h.first_max_bytes),
           "more than the limit at creation, " + std::to_string(spec.first_max_size));
  for (const auto& [feature, wanted] :
       {std::pair(pool::Feature::data_checksums, spec.checksums_and_events),
        std::pair(pool::Feature::note_entries, spec.checksums_and_events),
        std::pair(pool::Feature::archived_log, spec.archived)})
    if (pool::has_feature(h, feature) != wanted)
      failed(path, "feature " + std::to_string(static_cast<unsigned>(feature)),
             wanted ? "it in the header" : "a pool without it");
  if (h.append_unit != spec.unit)
    failed(path, "a log in units of " + std::to_string(h.append_unit), std::to_string(spec.unit));
  if ((h.clean != 0) != (spec.ended == Ended::closed))
    failed(path, "clean is " + std::to_string(h.clean), "the opposite");
  if (spec.ended == Ended::closed || !spec.durable_engine()) return 0;
  if (spec.ended == Ended::cut) return choose_cut(spec, path);
  const std::int64_t changed = changed_by_recovery(spec, path);
  if (changed < 0)
    failed(path, "other contents after recovery", "all acknowledged transactions and no other");
  return changed;
}

}  // namespace

int in_child(const std::function<void()>& body) {
  (void)std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw error(system_failure("", "fork", errno));
  if (child == 0) {
    int status = 0;
    try {
      body();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
      status = 1;
    }
    (void)std::fflush(nullptr);
    ::_exit(status);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw error(system_failure("", "waitpid", errno));
  return status;
}

void make(const Spec& spec, const std::string& path) {
  // An engine that replays its log in parallel with the program may have caught up when the program
  // ends: then the pool is made again.
  const int attempts = test::is_dudetm(spec.entry()) && spec.ended == Ended::killed ? 200 : 1;
  std::int64_t changed = 0;
  for (int i = 0; i < attempts && changed == 0; ++i) {
    std::filesystem::remove(path);
    changed = make_once(spec, path);
    std::filesystem::remove_all(archive_of(path));
  }
  const std::uint64_t n = spec.durable_engine() ? spec.parts().third : 0;
  const pool::Header h = header_of(path);
  std::printf(
      "{\"file\": \"%s\", \"engine\": \"%s\", \"order\": \"%s\", \"append_unit\": %u, \"ended\": "
      "\"%s\", \"format_version\": %u, "
      "\"survives\": %s, \"large\": %s, \"transactions\": %llu, \"digest\": \"%016llx\", "
      "\"changed_by_recovery\": %lld}\n",
      spec.name.c_str(), spec.engine.c_str(), order_name(spec.order), h.append_unit,
      ended_name(spec.ended), h.version, spec.durable_engine() ? "true" : "false",
      spec.large() ? "true" : "false", static_cast<unsigned long long>(n),
      static_cast<unsigned long long>(digest(model_after(n, spec.large()))),
      static_cast<long long>(changed));
}

}  // namespace perdure::compat
