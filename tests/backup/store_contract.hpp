// SPDX-License-Identifier: BSD-3-Clause
//
// What every Store keeps, whatever it lies on.
// Thread safety: none.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "perdure/backup/store.hpp"

namespace perdure::backup::test {

inline std::string text_of(Store& store, const std::string& name) {
  const auto bytes = store.get(name).value();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// `store` is empty.
inline void expect_written_once(Store& store) {
  EXPECT_TRUE(store.put("one", "abc", 3).value());
  EXPECT_FALSE(store.put("one", "xyz", 3).value());
  EXPECT_EQ("abc", text_of(store, "one"));
  EXPECT_TRUE(store.put("chunk/ab/two", "de", 2).value());
  EXPECT_TRUE(store.put("empty", "", 0).value());
  EXPECT_EQ("", text_of(store, "empty"));
  EXPECT_TRUE(store.has("chunk/ab/two").value());
  EXPECT_FALSE(store.has("chunk/ab/three").value());
  EXPECT_EQ(Code::not_found, store.get("three").code());
  EXPECT_EQ((std::vector<std::string>{"chunk/ab/two", "empty", "one"}), store.list("").value());
  EXPECT_EQ((std::vector<std::string>{"chunk/ab/two"}), store.list("chunk/").value());
  EXPECT_EQ((std::vector<std::string>{"one"}), store.list("o").value());
  EXPECT_TRUE(store.remove("one").ok());
  EXPECT_TRUE(store.remove("one").ok());
  EXPECT_FALSE(store.has("one").value());
}

/// Two objects for one place, which is empty.
inline void expect_locks(Store& one, Store& other) {
  using Use = Store::Use;
  {
    const auto lock = one.lock(Use::log).value();
    EXPECT_EQ(Code::busy, other.lock(Use::log).code());
  }
  EXPECT_TRUE(other.lock(Use::log).ok());
  {
    const auto alone = one.lock(Use::chunks_alone).value();
    EXPECT_EQ(Code::busy, one.lock(Use::chunks).code());
    EXPECT_EQ(Code::busy, other.lock(Use::chunks).code());
    EXPECT_EQ(Code::busy, other.lock(Use::chunks_alone).code());
    EXPECT_TRUE(other.lock(Use::log).ok()) << "another use";
  }
  {
    const auto first = one.lock(Use::chunks).value();
    const auto second = other.lock(Use::chunks).value();
    EXPECT_EQ(Code::busy, other.lock(Use::chunks_alone).code());
  }
  EXPECT_TRUE(other.lock(Use::chunks_alone).ok());
  EXPECT_TRUE(other.list("").value().empty()) << "a lock is no object";
}

}  // namespace perdure::backup::test
