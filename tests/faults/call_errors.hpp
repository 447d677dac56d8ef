// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the tests of the interface's errors: the n-th call fails inside one call of the
// interface, for n = 1, 2, ... until none does.
//
// All n of a case run in one child process, so that each run sees what the previous one left
// behind. The child writes the present fault to memory that it shares with the test.
// Thread safety: none needed.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "faults.hpp"
#include "interposed.hpp"
#include "tests/support/watchdog.hpp"

namespace perdure::faults {

using interposed::Fault, interposed::Kind;

/// The result of a call.
struct Answer {
  bool fired = false;            ///< a call below it failed
  const char* what = "nothing";  ///< the name of that call
  Code code = Code::ok;          ///< the code that it returned or threw
  bool bad_alloc = false;        ///< it threw std::bad_alloc
  bool later = false;            ///< later calls failed, too
  std::string text;
  [[nodiscard]] bool ok() const { return code == Code::ok && !bad_alloc; }
};

/// Calls `f`, which returns a Status or a C code or throws, while `fault` is armed.
template <class F>
Answer with_fault(const Fault& fault, F&& f) {
  Answer a;
  a.later = fault.and_later;
  std::optional<Status> status;  // of an exception; copied when the fault is no longer armed
  interposed::arm(fault);
  try {
    Status returned = f();
    a.what = interposed::disarm();
    status = std::move(returned);
  } catch (const error& e) {
    a.what = interposed::disarm();
    status = e.status();
  } catch (const std::bad_alloc&) {
    a.what = interposed::disarm();
    a.bad_alloc = true;
    a.text = "std::bad_alloc";
  } catch (const std::exception& e) {
    a.what = interposed::disarm();
    ADD_FAILURE() << "an exception that is not the interface's: " << e.what();
  }
  a.fired = a.what != nullptr;
  if (!a.fired) a.what = "nothing";
  if (status) {
    a.code = status->code();
    a.text = std::string(name(a.code)) + ": " + status->message();
    EXPECT_TRUE(status->ok() || !status->message().empty()) << name(a.code) << " without a message";
  }
  return a;
}

/// The non-zero bytes of a file: a pool as a kill leaves it.
class Image {
 public:
  static Image of(const std::string& path) {
    Image image;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat st = {};
    if (fd < 0 || ::fstat(fd, &st) != 0) std::abort();
    image.size_ = st.st_size;
    for (off_t at = 0; (at = ::lseek(fd, at, SEEK_DATA)) >= 0;) {
      const off_t end = ::lseek(fd, at, SEEK_HOLE);
      std::string bytes(static_cast<std::size_t>(end - at), '\0');
      if (::pread(fd, bytes.data(), bytes.size(), at) != end - at) std::abort();
      image.parts_.emplace_back(at, std::move(bytes));
      at = end;
    }
    ::close(fd);
    return image;
  }
  void write(const std::string& path) const {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, size_) != 0) std::abort();
    for (const auto& [at, bytes] : parts_)
      if (::pwrite(fd, bytes.data(), bytes.size(), at) != static_cast<ssize_t>(bytes.size()))
        std::abort();
    ::close(fd);
  }

 private:
  off_t size_ = 0;
  std::vector<std::pair<off_t, std::string>> parts_;
};

inline std::vector<std::string> open_files() {
  std::vector<std::string> names;
  std::error_code gone;  // the directory itself is gone
  for (const auto& e : std::filesystem::directory_iterator("/proc/self/fd"))
    names.push_back(std::filesystem::read_symlink(e.path(), gone));
  std::sort(names.begin(), names.end());
  return names;
}

/// The kinds of faults: one system call or allocation, and all of them from the n-th on; no thread
/// can be started.
inline constexpr Fault kinds[] = {{Kind::call},
                                  {Kind::allocation},
                                  {Kind::call, 0, true},
                                  {Kind::allocation, 0, true},
                                  {Kind::thread, 0, true}};

/// Whether a file may remain: if every system call fails, so does its removal.
inline bool may_leave_a_file(const Fault& fault) {
  return fault.kind == Kind::call && fault.and_later;
}

/// All n with PERDURE_NTH_CALL=all; otherwise each of the first 4, then one in 8 at random, with a
/// seed that is the same at each run.
inline bool is_chosen(std::uint64_t n, std::uint64_t& seed) {
  static const bool all = [] {
    const char* const text = std::getenv("PERDURE_NTH_CALL");
    return text != nullptr && std::string(text) == "all";
  }();
  seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
  return all || n <= 4 || (seed >> 33) % 8 == 0;
}

/// In a child: calls `one(fault)` for each kind and n until it reports that no call failed. Returns
/// the number of failed calls.
template <class F>
std::uint64_t each_fault(const char* call, F&& one) {
  struct Shared {
    char now[160];
    std::uint64_t faults;
  };
  void* const p =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) std::abort();
  auto& shared = *static_cast<Shared*>(p);
  const int r = in_child([&] {
    ::alarm(55);
    const auto files = open_files();
    for (Fault fault : kinds) {
      std::uint64_t seed = std::hash<std::string>()(
          std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
      for (fault.nth = 1;; ++fault.nth) {
        if (!is_chosen(fault.nth, seed)) continue;
        std::snprintf(shared.now, sizeof shared.now, "%s, %s %llu%s", call,
                      fault.kind == Kind::allocation ? "allocation"
                      : fault.kind == Kind::thread   ? "thread"
                                                     : "system call",
                      static_cast<unsigned long long>(fault.nth),
                      fault.and_later ? " and later" : "");
        SCOPED_TRACE(shared.now);
        if (!one(fault) || ::testing::Test::HasFatalFailure()) break;
        ++shared.faults;
      }
      EXPECT_EQ(open_files(), files) << "file descriptors left open";
    }
  });
  EXPECT_EQ(r, 0) << shared.now << (r == 1000 + SIGALRM ? ": did not end" : "");
  const std::uint64_t faults = shared.faults;
  std::printf("  %s: %llu faults\n", call, static_cast<unsigned long long>(faults));
  ::munmap(p, sizeof(Shared));
  test::watch_again();
  return faults;
}

}  // namespace perdure::faults
