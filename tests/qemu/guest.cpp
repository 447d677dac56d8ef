// SPDX-License-Identifier: BSD-3-Clause
//
// The program inside the machine that loses power (run.py): it writes a pool and prints on the
// console what was acknowledged, or recovers a pool and compares it in full with what its counter
// says. It works in the current folder, on pools named ENGINE.DURABILITY.
//
//   guest write KIND ENGINE DURABILITY LEAST EVERY STOP   check as below, then update until the
//                                                         power fails; after STOP updates (0:
//                                                         never) close the pool, write a block that
//                                                         is not flushed, and wait
//   guest check KIND ENGINE DURABILITY LEAST              KIND: the medium that it must be, or
//                                                         DEVICE:LOG_SIZE, a device-dax in /dev;
//                                                         LEAST: what was acknowledged before the
//                                                         cut
//   guest nosync|nodsync ...                              as write, but fsync and fdatasync, or
//                                                         RWF_DSYNC, do nothing and succeed
//   guest fill KIND ENGINE DURABILITY LEAST               check as above, then fill the device
//                                                         until it is full, and empty it again
//   guest refuse KIND ENGINE DURABILITY 0                 opening must fail: the device contains
//                                                         foreign bytes
//   guest control                                         prints what is left of the bytes that
//                                                         were never synced; makes their files
//
// Lines that run.py reads: "opening POOL", "medium ...", "open ...", "writing", "ack N BYTES",
// "quiet", "failed ...", "poisoned", "full ...", "refused ...", "control ...". Exit status: 0; 1
// with a line "FAIL ..." when something does not hold; 2 for wrong arguments; 3 when the pool is
// poisoned, as it must be after an I/O error.
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/qemu/devices.hpp"

namespace {
bool no_sync = false, no_dsync = false;
}

// The linker redirects the library's syncs here (--wrap), so that one boot can omit them: the next
// check must then find something missing.
extern "C" {
int __real_fsync(int fd);
int __real_fdatasync(int fd);
ssize_t __real_pwritev2(int fd, const iovec* pieces, int count, off_t offset, int flags);
int __wrap_fsync(int fd) { return no_sync ? 0 : __real_fsync(fd); }
int __wrap_fdatasync(int fd) { return no_sync ? 0 : __real_fdatasync(fd); }
ssize_t __wrap_pwritev2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  return __real_pwritev2(fd, pieces, count, offset, no_dsync ? 0 : flags);
}
}

namespace {

using namespace perdure::qemu;
using Pool = TestPool;

// Receipts that a thread keeps before it waits for the oldest, if updates don't wait.
constexpr std::size_t in_flight = 64;
constexpr std::size_t control_bytes = 512, block_bytes = 4096, device_blocks = 256;
constexpr char filler = 'p';
// Appended to with every line "ack", never synced.
const char* const plain_file = "control.plain";
// One block written without the page cache; the device is never flushed.
const char* const device_file = "control.device";

class Writer {
 public:
  Writer(Pool& pool, bool waits, std::uint64_t every, std::uint64_t stop)
      : pool_(pool),
        depth_(waits ? 1 : in_flight),
        every_(every),
        stop_(stop),
        control_(::open(plain_file, O_WRONLY | O_APPEND)) {
    if (control_ < 0) fail("control.plain does not open");
  }
  // The work of a thread until the power or the device fails, or there have been enough updates.
  void run() {
    using Receipt = decltype(pool_.update([](auto& tx, Root& root) { return step(tx, root); }));
    std::deque<Receipt> waiting;
    try {
      while (stop_ == 0 || updates_.fetch_add(1) < stop_) {
        const bool must_fail = poisoned;
        waiting.push_back(pool_.update([](auto& tx, Root& root) { return step(tx, root); }));
        if (must_fail) fail("update() goes on after the other thread's has failed");
        if (waiting.size() == depth_) acknowledge(waiting);
      }
      while (!waiting.empty()) acknowledge(waiting);
    } catch (const perdure::error& e) {
      failed(e);
      // Durable before the failure: it must be present after it.
      while (!waiting.empty() && waiting.front().try_wait().ok()) acknowledge(waiting);
    }
  }
  std::atomic<bool> poisoned{false};

 private:
  template <class Receipt>
  void acknowledge(std::deque<Receipt>& waiting) {
    waiting.front().wait();
    const std::uint64_t n = waiting.front().value();
    waiting.pop_front();
    if (n % every_ != 0) return;
    static const std::string filling(control_bytes, filler);
    const std::scoped_lock lock(mutex_);  // the line follows its bytes
    if (::write(control_, filling.data(), control_bytes) == static_cast<ssize_t>(control_bytes))
      control_written_ += control_bytes;
    say("ack " + number(n) + " " + number(control_written_));
  }
  // The device has failed: the pool must refuse everything from now on.
  void failed(const perdure::error& e) {
    say(std::string("failed ") + e.what());
    if (e.code() != perdure::Code::poisoned && e.code() != perdure::Code::io)
      fail(std::string("expected poisoned or io, found: ") + e.what());
    const auto refused = [](auto&& call) {
      try {
        call();
        return false;
      } catch (const perdure::error& again) {
        return again.code() == perdure::Code::poisoned;
      }
    };
    for (int i = 0; i < 3; ++i) {
      const bool update = refused(
          [&] { pool_.update([](auto& tx, Root& root) { return step(tx, root); }).wait(); });
      const bool view = refused(
          [&] { pool_.view([](auto& tx, const Root& root) { return tx(root.counter) + 0; }); });
      if (!update || !view)
        fail(std::string(update ? "view()" : "update()") + " goes on after the failure");
    }
    poisoned = true;
  }

  Pool& pool_;
  const std::size_t depth_;
  const std::uint64_t every_, stop_;
  const int control_;
  std::uint64_t control_written_ = 0;
  std::mutex mutex_;
  std::atomic<std::uint64_t> updates_{0};
};

int write(const std::vector<std::string>& a) {
  const std::uint64_t least = parsed(a[4]);
  Pool pool = perdure::qemu::open(a[1], a[2], a[3], least);
  Writer writer(pool, a[3] != "async", parsed(a[5]), parsed(a[6]));
  say("writing");
  std::thread other([&] { writer.run(); });
  writer.run();
  other.join();
  if (writer.poisoned) {
    say("poisoned");
    std::_Exit(3);
  }
  if (!pool.close().clean) fail("close() reports that the pool is not clean");
  alignas(block_bytes) static std::array<char, block_bytes> block;
  block.fill(filler);
  const int device = ::open(device_file, O_WRONLY | O_DIRECT);
  const auto at = static_cast<off_t>(perdure::base::mix(least) % device_blocks * block_bytes);
  if (::pwrite(device, block.data(), block_bytes, at) != static_cast<ssize_t>(block_bytes))
    fail("control.device can't be written");
  say("quiet");
  for (;;) ::pause();
}

int control() {
  std::uint64_t plain = 0, device = 0;
  std::ifstream appended(plain_file, std::ios::binary), written(device_file, std::ios::binary);
  while (appended.get() == filler) ++plain;
  for (int c = written.get(); c != EOF; c = written.get()) device += c == filler;
  ::unlink(plain_file);
  const int made = ::open(plain_file, O_WRONLY | O_CREAT, 0600);
  if (made < 0 || ::fsync(made) != 0) fail("control.plain can't be made");
  if (const int blocks = ::open(device_file, O_WRONLY | O_CREAT | O_EXCL, 0600); blocks >= 0) {
    const std::string zeros(block_bytes * device_blocks, '\0');
    if (::write(blocks, zeros.data(), zeros.size()) != static_cast<ssize_t>(zeros.size()) ||
        ::fsync(blocks) != 0)
      fail("control.device can't be made");
  }
  say("control plain " + number(plain) + " device " + number(device));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> a(argv + 1, argv + argc);
  try {
    if (a.size() == 1 && a[0] == "control") return control();
    no_sync = !a.empty() && a[0] == "nosync";
    no_dsync = !a.empty() && a[0] == "nodsync";
    if (a.size() == 7 && (a[0] == "write" || no_sync || no_dsync)) return write(a);
    if (a.size() == 5 && a[0] == "check") {
      perdure::qemu::open(a[1], a[2], a[3], parsed(a[4]));
      return 0;
    }
    if (a.size() == 5 && a[0] == "fill") return fill(a[1], a[2], a[3], parsed(a[4]));
    if (a.size() == 5 && a[0] == "refuse") return refuse(a[1], a[2], a[3]);
  } catch (const perdure::error& e) {
    fail(e.what());
  }
  std::fprintf(stderr,
               "usage: guest control | check|fill|refuse KIND ENGINE DURABILITY LEAST | "
               "write|nosync|nodsync KIND ENGINE DURABILITY LEAST "
               "EVERY STOP\n");
  return 2;
}
