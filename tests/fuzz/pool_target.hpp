// SPDX-License-Identifier: BSD-3-Clause
//
// Opens, recovers and audits damaged pools: whatever the bytes are, the result is an error or a
// pool, and nothing else (LAW-10). One input mutates one of the base images, which are pools of
// every kind, killed while in use. Because almost every mutation fails at a checksum, an input may
// ask that the checksums be corrected.
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/log/record.hpp"
#include "perdure/perdure.hpp"
#include "perdure/pool/header.hpp"
#include "testing/arena.hpp"
#include "testing/crash_medium.hpp"
#include "testing/persistency.hpp"
#include "tests/conformance/workloads.hpp"

namespace perdure::fuzz {

/// A pool as a crash left it, and the way in which its engine recovers.
struct Base {
  crash::Arena::Geometry geometry;
  std::unique_ptr<crash::Image> image;
  std::unique_ptr<crash::Arena> arena;
  std::string_view family;
  Status (*recover)(pool::OpenPool&, engine::Recovery&) = nullptr;
};

inline Base make_base(std::string_view engine, bool like_a_file, std::uint64_t steps,
                      std::uint64_t seed, std::uint64_t ring_bytes = 8192) {
  const engine::EngineInfo& entry = *engine::find_instance(engine);
  crashtest::Plan plan;
  plan.like_a_file = like_a_file;
  plan.ring_bytes = like_a_file ? 1 << 18 : ring_bytes;
  plan.seed = seed;
  conformance::Churn::shape(plan);
  auto made = medium::CrashMedium::make(crashtest::detail::medium_of(plan)).value();
  medium::CrashMedium& medium = *made;
  Base base;
  base.image = std::make_unique<crash::Image>(medium.begin_trace(), medium.data_bytes());
  medium::Trace trace;
  {
    auto pool = Pool<conformance::ChurnRoot, engines<any_engine>>::try_open_on(
                    "fuzz", crashtest::detail::options_of(plan, entry), std::move(made), true)
                    .value();
    base.geometry = {medium.log_bytes(), medium.max_data_bytes(), pool.header().base,
                     medium.append_unit(), like_a_file};
    conformance::Churn workload;
    for (std::uint64_t n = 0; n < steps; ++n) {
      crashtest::Step step{n, crash::Random(seed * 1000 + n), true};
      workload.step(pool, step);
    }
    trace = medium.end_trace();
  }
  crash::Persistency pending(*base.image);
  for (const auto& event : trace.events) pending.apply(trace, event);
  base.family = entry.family;
  base.recover = entry.recover;
  return base;
}

inline std::vector<Base>& bases() {
  static std::vector<Base> all = [] {
    std::vector<Base> made;
    made.push_back(make_base("shadow", false, 12, 1));
    made.push_back(make_base("dudetm", false, 9, 2));
    made.push_back(make_base("undo", false, 7, 3));
    made.push_back(make_base("shadow", true, 8, 4));
    for (Base& base : made) base.arena = crash::Arena::make(base.geometry).value();
    return made;
  }();
  return all;
}

/// Words of an image that were changed, over it.
class Patched {
 public:
  explicit Patched(const crash::Image& image) : image_(image) {}
  [[nodiscard]] std::uint64_t word(std::uint64_t i) const {
    for (auto it = changed.rbegin(); it != changed.rend(); ++it)
      if (it->index == i) return it->value;
    return image_.word(i);
  }
  void set(std::uint64_t i, std::uint64_t value) {
    changed.push_back({static_cast<std::uint32_t>(i), value});
  }
  std::vector<crash::Word> changed;  // later ones take precedence

 private:
  const crash::Image& image_;
};

/// The header at `at`, as it was patched.
inline pool::Header header_of(const Patched& p, std::uint64_t at) {
  std::vector<std::uint64_t> words(sizeof(pool::Header) / 8);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = p.word(at / 8 + i);
  pool::Header h;
  std::memcpy(&h, words.data(), sizeof h);
  return h;
}

inline void mend_headers(Patched& p) {
  for (const std::uint64_t at : {pool::header_a, pool::header_b}) {
    const pool::Header h = header_of(p, at);
    p.set(at / 8 + offsetof(pool::Header, checksum) / 8, pool::header_checksum(h));
  }
}

/// Whether the rings that a header names lie in the log.
inline bool has_rings(const pool::Header& h, const crash::Arena::Geometry& g) {
  return h.log_bytes == g.log_bytes && h.ring_count != 0 && h.ring_count <= pool::max_rings &&
         h.ring_bytes >= g.append_unit &&
         h.ring_bytes <= (g.log_bytes - pool::first_ring) / h.ring_count;
}

/// Every record of the first ring whose header's length leaves it inside the ring gets the correct
/// checksum.
inline void mend_records(Patched& p, const crash::Arena::Geometry& g) {
  const pool::Header h = header_of(p, pool::header_a);
  if (!has_rings(h, g)) return;
  const std::uint64_t ring = pool::ring_offset(h, 0) / 8, length = h.ring_bytes / 8,
                      unit = g.append_unit / 8;
  std::uint64_t position = h.ring_head[0] / 8 / unit * unit;
  const auto at = [&](std::uint64_t i) { return ring + (position + i) % length; };
  for (int n = 0; n < 64; ++n) {
    const std::uint64_t payload = p.word(at(2)) & 0xffffffff;
    if (p.word(at(0)) == 0 || payload % 2 != 0 || payload + log::header_words > length / 2) return;
    std::vector<std::uint64_t> record(payload + log::header_words);
    for (std::size_t i = 0; i < record.size(); ++i) record[i] = p.word(at(i));
    p.set(at(1), log::record_checksum(record.data(), payload, position * 8,
                                      base::Checksum(log::ring_seed(h.uuid, h.epoch, 0))));
    position += (record.size() + unit - 1) / unit * unit;
  }
}

/// `data`: the base among `all`, what to correct, then places and values. `mend_log(patched, base)`
/// corrects the log's checksums. The only correct outcome is that it returns.
template <class MendLog>
void open_mutated(std::vector<Base>& all, const std::uint8_t* data, std::size_t size,
                  MendLog&& mend_log) {
  if (size < 2) return;
  Base& base = all[data[0] % all.size()];
  const std::uint8_t how = data[1];
  Patched patched(*base.image);
  const std::uint64_t words = (base.geometry.log_bytes + base.image->data_bytes()) / 8;
  for (std::size_t i = 2; i + 12 <= size && patched.changed.size() < 64; i += 12) {
    std::uint32_t place = 0;
    std::uint64_t value = 0;
    std::memcpy(&place, data + i, 4);
    std::memcpy(&value, data + i + 4, 8);
    // Header, log, the heap's directory and anything: a quarter each.
    const std::uint64_t within = place >> 2;
    std::uint64_t at = within % words;
    if (place % 4 == 0)
      at = within % (sizeof(pool::Header) / 8) + (within / 512 % 2) * pool::header_b / 8;
    if (place % 4 == 1) at = pool::first_ring / 8 + within % 512;
    if (place % 4 == 2) at = base.geometry.log_bytes / 8 + pool::directory_offset / 8 + within % 16;
    patched.set(at, (how & 4) != 0 ? patched.word(at) ^ value : value);
  }
  if ((how & 2) != 0) mend_log(patched, base);
  if ((how & 1) != 0) mend_headers(patched);
  base.arena->load(*base.image, patched.changed);
  pool::OpenFile open;
  open.path = "fuzz";
  pool::Identity who;
  who.engine = "any";
  who.engine_any = who.layout_any = true;
  auto file = pool::OpenPool::open_on(base.arena->open(base.image->data_bytes(), nullptr), false,
                                      open, who);
  if (!file.ok()) return;
  engine::Recovery report;
  if (!base.recover(**file, report).ok()) return;
  if (!(*file)->start_session(pool::ViewPolicy::none).ok()) return;
  (void)pool::audit_heap(base.arena->data(), (*file)->header());
}
/// On the pools of bases().
inline void open_mutated(const std::uint8_t* data, std::size_t size) {
  open_mutated(bases(), data, size,
               [](Patched& patched, const Base& base) { mend_records(patched, base.geometry); });
}

}  // namespace perdure::fuzz
