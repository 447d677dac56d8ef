// SPDX-License-Identifier: BSD-3-Clause
//
// Opening in perdure.h: what perdure_options says, for pools and for standbys.
// Thread safety: as perdure.h says.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "perdure/api/c_api.hpp"
#include "perdure/engine/shadow/options.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/open_pool.hpp"

using namespace perdure;
using namespace perdure::c;

namespace {

Status read_options(const char* path, const perdure_options& o, Options& options) {
  constexpr std::uint32_t known = PERDURE_NO_CREATE | PERDURE_MUST_CREATE | PERDURE_OPEN_READ_ONLY |
                                  PERDURE_ANY_LAYOUT | PERDURE_CALLER_ISOLATES | PERDURE_BUFFERED |
                                  PERDURE_NO_HELPER | PERDURE_RAISE_MAX_SIZE | PERDURE_CHECKSUMS;
  if ((o.flags & ~known) != 0)
    return failure(Code::invalid, path, "flags " + std::to_string(o.flags),
                   "PERDURE_NO_CREATE | ...");
  options.create = (o.flags & PERDURE_NO_CREATE) == 0;
  options.must_create = (o.flags & PERDURE_MUST_CREATE) != 0;
  options.read_only = (o.flags & PERDURE_OPEN_READ_ONLY) != 0;
  options.isolation =
      (o.flags & PERDURE_CALLER_ISOLATES) != 0 ? Isolation::caller : Isolation::full;
  options.medium_options.direct = (o.flags & PERDURE_BUFFERED) == 0;
  if ((o.flags & PERDURE_NO_HELPER) != 0 || o.snapshot_memory != 0) {
    ShadowOptions shadow;
    if ((o.flags & PERDURE_NO_HELPER) != 0) shadow.helper = ShadowOptions::Helper::off;
    if (o.snapshot_memory != 0) shadow.snapshot_memory = o.snapshot_memory;
    options.engine_options.set(shadow);
  }
  options.checksums = (o.flags & PERDURE_CHECKSUMS) != 0;
  if (o.engine != nullptr) options.engine = o.engine;
  if (o.medium != nullptr) options.medium = o.medium;
  if (o.max_size != 0) options.creation.max_size = o.max_size;
  options.creation.raise_max_size = (o.flags & PERDURE_RAISE_MAX_SIZE) != 0;
  options.creation.initial_size = o.initial_size;
  options.creation.log_size = o.log_size;
  if (o.threads != 0) options.creation.threads = o.threads;
  options.max_resident = o.max_resident;
  if (o.archive != nullptr) options.archive.folder = o.archive;
  if (o.replicate != nullptr) options.replicate.log = o.replicate;
  if (o.replicate_as != nullptr) options.replicate.name = o.replicate_as;
  if (o.replicate_patience != 0) options.replicate.patience = milliseconds_of(o.replicate_patience);
  options.replicate.beat_every = milliseconds_of(o.replicate_beat);
  if (o.delays != nullptr) {
    auto delays = medium::Delays::named(o.delays);
    if (!delays) return delays.status();
    options.medium_options.delays = *delays;
  }
  if (!understood(o.durability, Durability::durable, options.durability))
    return failure(Code::invalid, path, "durability " + std::to_string(o.durability),
                   "PERDURE_DEFAULT, _DURABLE, _GROUP or _ASYNC");
  return {};
}

}  // namespace

namespace perdure::c {

std::chrono::milliseconds milliseconds_of(std::uint64_t n) noexcept {
  constexpr std::uint64_t most = 1000ULL * 60 * 60 * 24 * 365;
  return std::chrono::milliseconds(std::min(n, most));
}

Result<Opening> read_opening(const char* call, const char* path, const perdure_options* given) {
  if (path == nullptr) return failure(Code::invalid, call, "no path", "a pool file's");
  const perdure_options o = given != nullptr ? *given : perdure_options{};
  Opening opening;
  opening.path = path;
  if (Status s = read_options(path, o, opening.options); !s.ok()) return s;
  // The text that layout_of<T>() makes for a T that states its layout_id.
  opening.root = {std::string("0: ") + (o.layout != nullptr ? o.layout : "bytes") + " @0 " +
                      std::to_string(o.root_bytes) + "\n",
                  o.root_bytes, (o.flags & PERDURE_ANY_LAYOUT) != 0};
  return opening;
}

Result<std::unique_ptr<perdure_pool>> open_pool(const Opening& opening) {
  // This comes first: where there is no memory for it, no file is created.
  auto pool = std::make_unique<perdure_pool>();
  auto opened = ErasedPool::open(opening.path, opening.options, opening.root);
  if (!opened) return opened.status();
  pool->impl = std::move(*opened);
  pool->durability = opening.options.durability;
  auto& file = pool->impl->file();
  pool->view = file.view();
  if (file.header().root_bytes != 0) pool->root = pool->view + file.root_offset();
  pool->first_data = pool::first_chunk(file.header()) * pool::chunk_bytes;
  pool->raised = file.header().raised_max_bytes != 0 || file.header().checksums_bytes != 0;
  return pool;
}

}  // namespace perdure::c

extern "C" {

int perdure_open(const char* path, const perdure_options* given, perdure_pool** out) {
  return guarded([&]() -> int {
    if (out == nullptr)
      return fail(
          PERDURE_INVALID,
          "perdure_open: found no place for the pool, expected the address of a perdure_pool*");
    *out = nullptr;
    auto opening = read_opening("perdure_open", path, given);
    if (!opening) return fail(opening.status());
    auto pool = open_pool(*opening);
    if (!pool) return fail(pool.status());
    *out = pool->release();
    return PERDURE_OK;
  });
}

}  // extern "C"
