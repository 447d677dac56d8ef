// SPDX-License-Identifier: BSD-3-Clause
//
// How the guest of the machine that loses power opens a pool, and what it compares. Lines go to the
// console, for run.py.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "perdure/pool/open_pool.hpp"
#include "tests/qemu/contents.hpp"

namespace perdure::qemu {

inline void say(const std::string& line) {
  const std::string text = line + "\n";
  // In one call, so that lines of two threads don't mix.
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) std::_Exit(2);
}
inline std::string number(std::uint64_t n) { return std::to_string(n); }
[[noreturn]] inline void fail(const std::string& what) {
  say("FAIL " + what);
  std::_Exit(1);
}

inline std::uint64_t parsed(const std::string& text) {
  return std::strtoull(text.c_str(), nullptr, 10);
}
inline Durability durability_of(const std::string& name) {
  return name == "async"   ? Durability::async
         : name == "group" ? Durability::group
                           : Durability::durable;
}

// The place of a pool by KIND: "DEVICE:LOG_SIZE" is a device-dax in /dev, which is one pool;
// otherwise it is a medium's name, and the pool is a file.
struct Place {
  std::string path, kind;
  std::uint64_t log_size = 8 << 20;
  bool device = false;
};
inline Place place_of(const std::string& kind, const std::string& engine,
                      const std::string& durability) {
  Place place{engine + "." + durability, kind};
  // On the disk, more than a boot writes: machine.py, settle().
  if (kind == "file") place.log_size = 32 << 20;
  if (const std::size_t colon = kind.find(':'); colon != std::string::npos)
    place = {"/dev/" + kind.substr(0, colon), "dax", parsed(kind.substr(colon + 1)), true};
  return place;
}

// Every mapping of the pool that can be stored to must be synchronous: flag sf in smaps. This is
// the kernel's statement, not the library's. The mappings of a device-dax are always synchronous
// and have no such flag.
inline void require_map_sync(const Place& place) {
  std::ifstream smaps("/proc/self/smaps");
  std::string line, open;
  unsigned mappings = 0;
  while (std::getline(smaps, line)) {
    if (line.find(" rw-s ") != std::string::npos &&
        line.ends_with((place.device ? "" : "/") + place.path))
      open = line;
    if (!line.starts_with("VmFlags:")) continue;
    if (!open.empty() && !place.device && (line + " ").find(" sf ") == std::string::npos)
      fail("a shared mapping of the pool without MAP_SYNC: " + open);
    mappings += open.empty() ? 0 : 1;
    open.clear();
  }
  if (mappings == 0)
    fail("found no shared mapping of " + place.path + ", expected MAP_SYNC mappings");
}

inline void compare(TestPool& pool, std::uint64_t least) {
  std::uint64_t n = 0;
  pool.view([&](auto& tx, const Root& root) {
    n = tx(root.counter);
    if (n < least)
      fail("the pool ends at update " + number(n) + ", but " + number(least) + " was acknowledged");
    if (const std::string text = difference(tx, root, n); !text.empty()) fail(text);
  });
  const perdure::CheckReport report = pool.check();
  if (!report.ok()) fail("check(): " + report.problems.front());
  if (report.blocks != report.reachable)
    fail("check(): " + number(report.blocks) + " blocks are allocated, " +
         number(report.reachable) + " owned");
  const perdure::Recovery recovery = pool.stats().recovery;
  say("open counter " + number(n) + " clean " + number(recovery.was_clean) + " transactions " +
      number(recovery.transactions));
}

inline Options options_for(const Place& place, const std::string& engine,
                           const std::string& durability) {
  Options options;
  options.creation.max_size = 128 << 20;
  options.creation.log_size = place.log_size;
  options.engine = engine;
  options.durability = durability_of(durability);
  // For other kinds the library must choose the right medium by itself.
  if (place.kind == "emulated") options.medium = place.kind;
  return options;
}

inline TestPool open(const std::string& kind, const std::string& engine,
                     const std::string& durability, std::uint64_t least) {
  say("opening " + engine + "." + durability);
  const Place place = place_of(kind, engine, durability);
  Options options = options_for(place, engine, durability);
  options.create = least == 0;  // a pool that had acknowledged something must exist
  TestPool pool = TestPool::open(place.path, options);
  auto& medium = pool.file().medium();
  if (medium.kind() != place.kind)
    fail("the pool's medium is " + medium.describe() + ", expected " + place.kind);
  if (place.kind == "dax") require_map_sync(place);
  say("medium " + medium.describe());
  compare(pool, least);
  return pool;
}

}  // namespace perdure::qemu
