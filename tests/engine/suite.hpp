// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of the engines share: every registered instance as a test parameter, pools on
// recording media, and the state that recovery makes of an image, to be compared with a model.
//
// Tests have the registry's entries as their parameter: an engine is tested by being listed in
// engine/registry.hpp.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "papers/dudetm/options.hpp"
#include "papers/rewind/options.hpp"
#include "papers/softwrap/options.hpp"
#include "perdure/api/pool.hpp"
#include "perdure/pool/catalog.hpp"
#include "testing/recording_medium.hpp"
#include "tests/engine/families.hpp"

namespace perdure::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr unsigned scale = 10;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr unsigned scale = 5;
#else
inline constexpr unsigned scale = 1;
#endif

// --- the engines as test parameters --------------------------------------------------------------

inline std::vector<EngineInfo> engines_that(bool (*keep)(const EngineInfo&)) {
  std::vector<EngineInfo> kept;
  for (const EngineInfo& e : engine::registered())
    if (keep(e) && !is_stood_for(e) && runs_here(e)) kept.push_back(e);
  // Where all of them are papers', the first stands for them: a suite without engines would fail.
  if (const auto left = std::ranges::find_if(kept, is_chosen); left == kept.end())
    kept.resize(std::min<std::size_t>(kept.size(), 1));
  else
    std::erase_if(kept, [](const EngineInfo& e) { return !is_chosen(e); });
  return kept;
}
inline std::vector<EngineInfo> all_of_them() {
  return engines_that([](const EngineInfo&) { return true; });
}
inline std::vector<EngineInfo> durable_ones() { return engines_that(is_durable); }
inline std::vector<EngineInfo> isolating_ones() { return engines_that(isolates); }
inline std::vector<EngineInfo> durable_isolating_ones() {
  return engines_that([](const EngineInfo& e) { return is_durable(e) && isolates(e); });
}

}  // namespace perdure::test

namespace perdure::engine {
inline void PrintTo(const EngineInfo& e, std::ostream* out) { *out << e.name; }  // for GoogleTest
}  // namespace perdure::engine

namespace perdure::test {

class EngineTest : public ::testing::TestWithParam<EngineInfo> {
 public:
  static std::string name(const ::testing::TestParamInfo<EngineInfo>& info) {
    std::string name(info.param.name);
    for (char& c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    return name;
  }
};
/// A suite runs on each engine of a list: ENGINE_SUITE(Bytes, all_of_them).
#define ENGINE_SUITE(Suite, list) \
  INSTANTIATE_TEST_SUITE_P(Engines, Suite, ::testing::ValuesIn(list()), EngineTest::name)

// --- pools on recording media --------------------------------------------------------------------

struct Shape {
  Durability durability = durable;
  /// appends of 4 KiB, fences that are syncs: then shadow orders by prefix
  bool like_a_file = false;
  std::uint32_t threads = 2;  ///< rings, where the order is held
  std::uint64_t ring_bytes = 65536;
  papers::RewindOptions rewind = {};
  papers::SoftwrapOptions softwrap = {.long_wrap_ms = 0};
  papers::DudetmOptions dudetm = {};
  std::uint64_t data_bytes = 16 * pool::chunk_bytes, max_data_bytes = 64 * pool::chunk_bytes;

  [[nodiscard]] medium::RecordingOptions medium() const {
    medium::RecordingOptions o;
    o.log_bytes = pool::first_ring + ring_bytes * std::max(threads, 1U);
    o.data_bytes = data_bytes;
    o.max_data_bytes = max_data_bytes;
    o.sparse = true;
    o.append_unit = like_a_file ? 4096 : 64;
    o.fence_is_sync = like_a_file;
    return o;
  }
  [[nodiscard]] Options options(const EngineInfo& e) const {
    Options o;
    o.engine = e.name;
    o.durability = durability;
    o.isolation = e.isolation;
    o.creation.threads = threads;
    o.engine_options.set(rewind).set(softwrap).set(dudetm);
    engine::Config config;
    config.instance = e.name;
    config.durability = durability;
    config.threads = threads;
    config.fence_is_sync = like_a_file;
    o.creation.log_size = ring_bytes * e.identity(config).rings;
    return o;
  }
};

/// Of any engine: what is tested is compiled once.
template <class Root>
using AnyPool = Pool<Root, engines<any_engine>>;

/// An open pool and the recording under it.
template <class Root>
struct Rig {
  medium::RecordingMedium* medium;
  AnyPool<Root> pool;
};

/// A new pool, or (with an image) an old one, recovered.
template <class Root>
Rig<Root> open_rig(const EngineInfo& e, const Shape& setup, std::span<const std::byte> image = {}) {
  auto made = medium::RecordingMedium::make(setup.medium(), image).value();
  medium::RecordingMedium* const raw = made.get();
  auto pool =
      AnyPool<Root>::try_open_on("recording", setup.options(e), std::move(made), image.empty());
  return {raw, std::move(pool).value()};
}

// --- what recovery makes of an image -------------------------------------------------------------

/// What a user can see of a pool: its root's bytes, its blocks and what is in them.
struct State {
  std::vector<std::byte> root;
  /// by data offset; the root's own left out
  std::map<std::uint64_t, std::vector<std::byte>> blocks;
  friend bool operator==(const State&, const State&) = default;
};

/// Of the bytes of the data region, wherever they lie.
inline State state_of(const std::byte* data, const pool::Header& header,
                      std::vector<std::string>* problems = nullptr) {
  State s;
  const pool::CatalogContents catalog = pool::read_catalog("image", header, data).value();
  const std::byte* const root = data + catalog.root_offset;
  s.root.assign(root, root + catalog.root_bytes);
  const auto audit = pool::audit_heap(data, header, [&](std::uint64_t offset, std::uint64_t bytes) {
    if (offset != header.root_offset) s.blocks[offset].assign(data + offset, data + offset + bytes);
  });
  if (problems != nullptr) *problems = audit.problems;
  return s;
}

struct Recovered {
  Status status;
  engine::Recovery report;
  State state;
  std::vector<std::string> problems;
};

/// Opens the image as a crash left it and recovers, without mapping a view (the pool it was taken
/// from may be open). `watch` is given the medium before recovery starts. `session`: the new
/// session's header is written too. `events`: what was asked of the medium, the bytes with it.
inline Recovered recover(const EngineInfo& e, std::span<const std::byte> image, const Shape& setup,
                         const std::function<void(medium::RecordingMedium&)>& watch = {},
                         bool session = false, std::vector<medium::Event>* events = nullptr) {
  Recovered r;
  medium::RecordingOptions options = setup.medium();
  options.data_bytes = image.size() - options.log_bytes;
  options.keep_bytes = events != nullptr;
  options.record = watch || events != nullptr;
  auto made = medium::RecordingMedium::make(options, image).value();
  medium::RecordingMedium* const raw = made.get();
  pool::OpenFile how;
  how.path = "image";
  pool::Identity who;
  who.engine = "any";
  who.engine_any = who.layout_any = true;
  auto file = pool::OpenPool::open_on(std::move(made), false, how, who);
  if (!file) {
    r.status = file.status();
    return r;
  }
  if (watch) watch(*raw);
  r.status = e.recover(**file, r.report);
  if (r.status.ok() && session) r.status = (*file)->start_session(pool::ViewPolicy::none);
  raw->set_fence_hooks({}, {});
  if (events != nullptr) *events = raw->events();
  if (!r.status.ok()) return r;
  const pool::Header& header = (*file)->header();
  r.state = state_of(raw->data(), header, &r.problems);
  return r;
}

/// Runs f(i) in n threads that start together.
template <class F>
void in_threads(int n, F&& f) {
  std::barrier start(n);
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      f(i);
    });
  for (auto& t : threads) t.join();
}

}  // namespace perdure::test
