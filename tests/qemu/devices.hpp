// SPDX-License-Identifier: BSD-3-Clause
//
// The guest's tests of a device-dax alone: a device that is in use, and one that is full.
#pragma once

#include <string>

#include "tests/qemu/opening.hpp"

namespace perdure::qemu {

/// The device contains foreign bytes: no way of opening may take it for a blank one. run.py checks
/// from outside that nothing was written.
inline int refuse(const std::string& kind, const std::string& engine,
                  const std::string& durability) {
  const Place place = place_of(kind, engine, durability);
  for (const bool must_create : {false, true}) {
    Options options = options_for(place, engine, durability);
    options.must_create = must_create;
    const Code expected = must_create ? Code::exists : Code::incompatible;
    try {
      TestPool::open(place.path, options);
    } catch (const error& e) {
      if (e.code() != expected)
        fail("expected " + std::string(name(expected)) + ", found: " + e.what());
      say(std::string("refused ") + e.what());
      continue;
    }
    fail(place.path + " is in use and was opened");
  }
  return 0;
}

/// A device has one size: what no longer fits must be refused with `full`, and leave the pool as it
/// was.
inline int fill(const std::string& kind, const std::string& engine, const std::string& durability,
                std::uint64_t least) {
  // The first of its keys, beyond all that step() uses.
  constexpr std::uint64_t first = std::uint64_t{1} << 60;
  const std::string text(256 << 10, 'f');  // well below half of the smallest ring
  TestPool pool = open(kind, engine, durability, least);
  std::uint64_t texts = 0;
  try {
    for (;; ++texts)
      pool.update([&](auto& tx, Root& root) { root.texts.put(tx, first + texts, text); }).wait();
  } catch (const error& e) {
    if (e.code() != Code::full) fail(std::string("expected full, found: ") + e.what());
    say("full " + number(texts) + " " + e.what());
  }
  if (texts == 0) fail("no text of " + number(text.size()) + " bytes had room");
  for (std::uint64_t i = 0; i < texts; ++i) {
    pool.view([&](auto& tx, const Root& root) {
      if (root.texts.find(tx, first + i) != text)
        fail("text " + number(i) + " is missing or differs in the full pool");
    });
    pool.update([&](auto& tx, Root& root) { root.texts.erase(tx, first + i); }).wait();
  }
  compare(pool, least);
  if (!pool.close().clean) fail("close() reports that the pool is not clean");
  return 0;
}

}  // namespace perdure::qemu
