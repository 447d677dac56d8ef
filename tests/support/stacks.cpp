// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/stacks.hpp"

#include <dirent.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "perdure/base/signals.hpp"

extern "C" {  // the linker defines these: where this program's file begins and its code ends
extern const Elf64_Ehdr __ehdr_start __attribute__((weak));
extern const char etext;
void perdure_return_from_signal();
}
// The kernel returns from a handler to this code. Unwinders recognise it by exactly these
// instructions (rt_sigreturn), if it has no unwinding information of its own; they look one byte
// before it for that, hence the nop.
asm(".text\n nop\nperdure_return_from_signal:\n movq $15, %rax\n syscall\n");

namespace perdure::test::stacks {
namespace {

constexpr int max_threads = 512, max_frames = 64;
constexpr const char* addr2line = "/usr/bin/addr2line";

int report_number() noexcept { return SIGRTMAX - 2; }
int answer_number() noexcept { return SIGRTMAX - 3; }

struct Thread {
  pid_t id;
  void* frames[max_frames];
  std::atomic<int> count;  // 0: it has not answered
};
Thread threads[max_threads];
char what_runs[256];
double limit = 0;
std::atomic<bool> reporting{false};
bool (*case_goes_on)() = nullptr;

// ---- printing without memory --------------------------------------------------------------------

struct Line {  // collected, so that one write prints it
  char text[512];
  std::size_t size = 0;

  Line& operator<<(const char* more) noexcept {
    for (; *more != '\0' && size < sizeof text; ++more) text[size++] = *more;
    return *this;
  }
  Line& number(std::uint64_t n, unsigned base = 10) noexcept {
    char digits[24];
    char* at = digits + sizeof digits - 1;
    *at = '\0';
    do *--at = "0123456789abcdef"[n % base];
    while ((n /= base) != 0);
    return *this << at;
  }
  ~Line() {
    if (::write(STDERR_FILENO, text, size) < 0) return;  // there is no other place to report it
  }
};

// The first line of /proc/self/task/ID/name, or "".
void read_of_thread(pid_t id, const char* name, char (&text)[128]) noexcept {
  char path[96];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/%s", id, name);
  text[0] = '\0';
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t n = ::read(file, text, sizeof text - 1);
  ::close(file);
  text[std::max<ssize_t>(n, 0)] = '\0';
  if (char* end = std::strchr(text, '\n')) *end = '\0';
}

void pause_ms(long ms) noexcept {
  const timespec time{0, ms * 1'000'000};
  // Not nanosleep(): a test's scheduler may have replaced it.
  ::syscall(SYS_nanosleep, &time, nullptr);
}

// ---- gathering ----------------------------------------------------------------------------------

// Fills `ids` with the numeric names in a folder of /proc; returns how many there are.
int numbers_in(const char* folder, pid_t (&ids)[max_threads]) noexcept {
  const int file = ::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return 0;
  int found = 0;
  alignas(8) char buffer[4096];
  for (long n; (n = ::syscall(SYS_getdents64, file, buffer, sizeof buffer)) > 0;)
    for (long at = 0; at < n && found < max_threads;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      if (const long id = std::strtol(entry->d_name, nullptr, 10); id > 0)
        ids[found++] = static_cast<pid_t>(id);
      at += entry->d_reclen;
    }
  ::close(file);
  return found;
}

void answer(int, siginfo_t* info, void*) noexcept {
  const int before = errno;
  const int index = info->si_value.sival_int;
  if (info->si_code == SI_QUEUE && info->si_pid == ::getpid() && index >= 0 &&
      index < max_threads) {
    Thread& own = threads[index];
    // pairs with the acquire in ask()
    own.count.store(::backtrace(own.frames, max_frames), std::memory_order_release);
  }
  errno = before;
}

void ask(int index) noexcept {
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_int = index;
  Thread& thread = threads[index];
  if (::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), thread.id, answer_number(), &info) != 0) return;
  // pairs with the release in answer(): the frames are complete
  for (int ms = 0; ms < 2000 && thread.count.load(std::memory_order_acquire) == 0; ++ms)
    pause_ms(1);
}

// ---- functions and lines ------------------------------------------------------------------------

// The frames in the program's file, in addr2line's format; it prints to standard error.
void print_lines(void* const* frames, int count) noexcept {
  static char addresses[max_frames][20], program[32];
  static const char* arguments[max_frames + 8];
  if (&__ehdr_start == nullptr) return;
  const auto start = reinterpret_cast<std::uintptr_t>(&__ehdr_start),
             end = reinterpret_cast<std::uintptr_t>(&etext);
  const std::uintptr_t base = __ehdr_start.e_type == ET_DYN ? start : 0;
  std::snprintf(program, sizeof program, "/proc/%d/exe", ::getpid());
  int n = 0;
  for (const char* a :
       {"addr2line", "-C", "-f", "-p", "-i", "-e", static_cast<const char*>(program)})
    arguments[n++] = a;
  const int fixed = n;
  for (int i = 0; i < count; ++i) {
    const auto at = reinterpret_cast<std::uintptr_t>(frames[i]);
    if (at <= start || at > end) continue;
    char(&text)[20] = addresses[n - fixed];
    // The call, not the address to which it returns.
    std::snprintf(text, sizeof text, "0x%lx", static_cast<unsigned long>(at - base - 1));
    arguments[n++] = text;
  }
  arguments[n] = nullptr;
  if (n == fixed) return;
  const pid_t child = ::vfork();
  if (child == 0) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execv(addr2line, const_cast<char* const*>(arguments));
    ::_exit(127);
  }
  for (int status = 0; child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR;) {}
}

void print_thread(const Thread& thread) noexcept {
  char name[128], state[128];
  read_of_thread(thread.id, "comm", name);
  // pairs with the release in answer()
  const int count = thread.count.load(std::memory_order_acquire);
  (Line() << "\nthread ").number(static_cast<std::uint64_t>(thread.id)) << " (" << name << "):\n";
  if (count > 0) {
    // The interrupted code: above it are the handler and the kernel's return from it.
    const int above = std::min(2, count);
    ::backtrace_symbols_fd(thread.frames + above, count - above, STDERR_FILENO);
    if (::access(addr2line, X_OK) == 0) {
      Line() << "  with functions and lines of the program:\n";
      print_lines(thread.frames + above, count - above);
    }
    return;
  }
  read_of_thread(thread.id, "stat", state);
  Line() << "  no answer within 2 s; its state is: " << state << "\n";
}

// Children hang as well as their parent: each forked child prints its own stacks, and ends.
void end_children(pid_t (&ids)[max_threads]) noexcept {
  const int n = numbers_in("/proc/self/task", ids);
  for (int i = 0; i < n; ++i) {
    char children[128];
    read_of_thread(ids[i], "children", children);
    for (char* at = children; *at != '\0';) {
      char* end = at;
      const auto child = static_cast<pid_t>(std::strtol(at, &end, 10));
      if (end == at || child <= 0) break;
      at = end;
      (Line() << "\nchild process ").number(static_cast<std::uint64_t>(child)) << ":\n";
      ::kill(child, report_number());
      int status = 0;
      for (int ms = 0; ms < 8000 && ::waitpid(child, &status, WNOHANG) == 0; ++ms) pause_ms(1);
      ::kill(child, SIGKILL);  // if it has been waited for, no process has that number
      ::waitpid(child, &status, 0);
    }
  }
}

void report(int, siginfo_t* info, void*) noexcept {
  if (info->si_code == SI_TIMER && case_goes_on()) return;
  // another thread does it; orders nothing
  if (reporting.exchange(true, std::memory_order_relaxed)) return;
  static pid_t ids[max_threads];
  const bool asked = info->si_code == SI_USER;  // the parent sent it, not a timer
  {
    Line line;
    line << "\n[ WATCHDOG ] " << what_runs;
    if (asked)
      line << ": a child process of it, whose parent ran into its limit";
    else
      (line << ": still running, expected it to end within ")
              .number(static_cast<std::uint64_t>(limit * 1000))
          << " ms";
    line << ". The stacks of all threads:\n";
  }
  const int n = numbers_in("/proc/self/task", ids);
  const pid_t self = static_cast<pid_t>(::syscall(SYS_gettid));
  for (int i = 0; i < n; ++i) {
    threads[i].id = ids[i];
    threads[i].count.store(0, std::memory_order_relaxed);
    if (ids[i] == self)
      threads[i].count.store(::backtrace(threads[i].frames, max_frames), std::memory_order_relaxed);
    else
      ask(i);
    print_thread(threads[i]);
  }
  if (!asked)
    Line() << "\nThe limit: CASE_LIMIT of perdure_add_test; PERDURE_CASE_LIMIT=SECONDS in the "
              "environment "
              "sets it, 0 switches it off.\n";
  end_children(ids);
  ::signal(SIGABRT, SIG_DFL);
  // Not raise(): ThreadSanitizer would delay it.
  ::syscall(SYS_tgkill, ::getpid(), self, SIGABRT);
  ::_exit(134);
}

// Installed by the system call itself: ThreadSanitizer's sigaction() delays a handler until the
// thread calls a function that it knows, which a hanging thread does not.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};
constexpr unsigned long restorer_flag = 0x04000000;  // SA_RESTORER of the kernel's headers

void handle(int number, void (*handler)(int, siginfo_t*, void*)) noexcept {
  const KernelAction action{handler, SA_SIGINFO | SA_RESTART | restorer_flag,
                            perdure_return_from_signal, ~(1UL << (SIGABRT - 1))};
  ::syscall(SYS_rt_sigaction, number, &action, nullptr, sizeof action.mask);
}

}  // namespace

void install(bool (*goes_on)()) noexcept {
  case_goes_on = goes_on;
  void* one[1];
  ::backtrace(one, 1);  // loads libgcc_s now, not in a handler
  handle(answer_number(), answer);
  // Relaxed: no thread of the library runs yet.
  base::debugging_signal.store(answer_number(), std::memory_order_relaxed);
  handle(report_number(), report);
}

int report_signal() noexcept { return report_number(); }

void name(const char* what, double seconds) noexcept {
  std::strncpy(what_runs, what, sizeof what_runs - 1);
  limit = seconds;
}

}  // namespace perdure::test::stacks
