// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/address.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <sstream>
#include <vector>

#include "perdure/base/at_fork.hpp"
#include "perdure/base/checksum.hpp"
#include "perdure/base/descriptor.hpp"
#include "perdure/pool/lock.hpp"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace perdure::pool {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool thread_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool thread_sanitizer = true;
#else
constexpr bool thread_sanitizer = false;
#endif
#else
constexpr bool thread_sanitizer = false;
#endif

// Plain builds and AddressSanitizer: 63 TiB between its shadow (which ends at 0x10007fff8000) and
// its allocator, or the addresses at which programs are loaded. ThreadSanitizer kills a process
// that maps outside its three windows; this is the part of the middle one below programs.
constexpr std::uint64_t range_begin = thread_sanitizer ? 0x550000000000 : 0x110000000000;
constexpr std::uint64_t range_end = thread_sanitizer ? 0x554000000000 : 0x500000000000;
// No slot is chosen from here on, so that each pool's limit can be raised: a raised pool keeps its
// address and grows at its end.
constexpr std::uint64_t chosen_end = thread_sanitizer ? 0x553000000000 : 0x4f0000000000;
constexpr std::uint64_t smallest_slot = 64ULL << 20;

std::string hex(std::uint64_t n) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(n));
  return text;
}

// The ranges that this process has reserved. A child unmaps all of them before fork() returns
// there. MADV_DONTFORK alone would not do: what is mapped into a range later is a separate mapping,
// and a fork can happen before it has been advised.
struct Ranges {
  std::mutex mutex;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all;  // base, bytes
};
Ranges& ranges() {
  // It is never destroyed: a pool may be closed by a static object's destructor.
  static Ranges* const reserved = new Ranges;
  return *reserved;
}
const int held = base::hold_over_fork<ranges>();
const int unmapped = ::pthread_atfork(nullptr, nullptr, [] {
  // The child has one thread, so no lock is needed.
  for (const auto& [base, bytes] : ranges().all) ::munmap(reinterpret_cast<void*>(base), bytes);
  ranges().all.clear();
});

// Describes the first mapping in the way.
std::string occupant(std::uint64_t base, std::uint64_t bytes) {
  std::istringstream maps(base::read_whole_file("/proc/self/maps"));
  std::string line;
  while (std::getline(maps, line)) {
    unsigned long long from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx", &from, &to) != 2 || to <= base ||
        from >= base + bytes)
      continue;
    const std::string pool = pool_viewed_at(std::max<std::uint64_t>(from, base));
    const std::size_t name = line.find_first_of("/[");
    const std::string what =
        !pool.empty() ? "the view of pool " + pool
                      : (name == std::string::npos ? "anonymous memory" : line.substr(name));
    return what + " at " + hex(from) + "-" + hex(to);
  }
  return "something that /proc/self/maps does not show";
}

// Explains to the user why try_reserve failed.
Status refused(int err, std::uint64_t base, std::uint64_t bytes, const std::string& path) {
  const std::string wanted = "its address " + hex(base) + "-" + hex(base + bytes);
  if (err == EEXIST) {
    return failure(Code::incompatible, path, wanted + " is taken by " + occupant(base, bytes),
                   "free address space",
                   "open this pool before that is mapped or in another process, or make it anew at "
                   "another base (export, load)");
  }
  if (err == ENOMEM) {
    return failure(Code::out_of_memory, path, "no address space for " + wanted, {},
                   "raise `ulimit -v`, or make the pool with a smaller max_size");
  }
  return failure(Code::incompatible, path,
                 wanted + " can't be mapped here (" + std::strerror(err) + ")", {},
                 "make the pool anew on this machine (export, load)");
}

// Returns 0 or an errno. A fork sees the range reserved and recorded, or neither.
int try_reserve(std::uint64_t base, std::uint64_t bytes) {
  const std::lock_guard guard(ranges().mutex);
  ranges().all.reserve(ranges().all.size() + 1);  // nothing throws from here on
  void* const wanted = reinterpret_cast<void*>(base);
  void* const got =
      ::mmap(wanted, bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED) return errno;
  if (got == wanted) {
    (void)::madvise(wanted, bytes, MADV_DONTFORK);  // advice only: less for fork() to copy
    ranges().all.emplace_back(base, bytes);
    return 0;
  }
  ::munmap(got, bytes);  // a kernel before 4.17 takes the address as a hint
  return EEXIST;
}

}  // namespace

AddressRange::~AddressRange() {
  if (base_ == 0 || owner_.is_parent()) return;  // a child may have another range there by now
  const std::lock_guard guard(ranges().mutex);
  ::munmap(begin(), bytes_);
  std::erase(ranges().all, std::pair(base_, bytes_));
}

Result<AddressRange> AddressRange::reserve(std::uint64_t base, std::uint64_t bytes,
                                           const std::string& path) {
  if (thread_sanitizer && (base < range_begin || base + bytes > range_end)) {
    return failure(Code::incompatible, path,
                   "a pool whose address is " + hex(base) + "-" + hex(base + bytes),
                   "an address within " + hex(range_begin) + "-" + hex(range_end) +
                       ", all that ThreadSanitizer leaves",
                   "open it in a build without ThreadSanitizer, or make the pool in this one");
  }
  if (const int err = try_reserve(base, bytes); err != 0) return refused(err, base, bytes, path);
  return AddressRange(base, bytes);
}

Result<AddressRange> AddressRange::choose(const std::uint8_t (&uuid)[16], std::uint64_t bytes,
                                          const std::string& path) {
  const std::uint64_t slot = std::max(smallest_slot, std::bit_ceil(bytes));
  const std::uint64_t slots = (range_end - range_begin) / slot;
  if (slots == 0) {
    return failure(Code::invalid, path, "a max_size of " + std::to_string(bytes) + " bytes",
                   "at most " + std::to_string(std::bit_floor(range_end - range_begin)),
                   "ask for less");
  }
  // Where that is none that can be chosen, another one: pools would meet on the first slots if the
  // search for a free one began behind the last.
  std::uint64_t start = base::hash_bytes(uuid, sizeof uuid, 0) % slots;
  for (std::uint64_t seed = 1; range_begin + start * slot >= chosen_end; ++seed)
    start = base::hash_bytes(uuid, sizeof uuid, seed) % slots;
  for (std::uint64_t i = 0; i < slots; ++i) {
    const std::uint64_t at = range_begin + (start + i) % slots * slot;
    if (at >= chosen_end) continue;
    const int err = try_reserve(at, bytes);
    if (err == 0) return AddressRange(at, bytes);
    if (err != EEXIST) return refused(err, at, bytes, path);
  }
  return failure(
      Code::out_of_memory, path,
      "no free slot of " + std::to_string(slot) + " bytes among " + std::to_string(slots), {},
      "close other pools, or make the pool with a smaller max_size");
}

}  // namespace perdure::pool
