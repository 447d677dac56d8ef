// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/copy.hpp"

#include <cstring>
#include <ctime>

#include "perdure/pool/allocation.hpp"
#include "perdure/pool/create.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/page_checksums.hpp"

namespace perdure::pool {

namespace {

Result<Header> header_for(const std::string& path, const Header& of,
                          const ReplicationWords& words) {
  Header h = of;
  // A feature that this build does not know may need more than blocks.
  if (Status s = check_features(path, h, true); !s.ok()) return s;
  h.created_unix = static_cast<std::uint64_t>(std::time(nullptr));
  set_feature(h, Feature::small_logs);
  if (words != ReplicationWords{}) set_feature(h, Feature::replication_words);
  h.replication = words;
  return h;
}

// Behind the words of section 0: no state of the pool had an object there.
bool has_first_checksums(const Header& h) noexcept {
  return h.checksums_bytes != 0 &&
         Directory(h).first_chunk() * chunk_bytes == h.checksums_offset + h.checksums_bytes;
}

}  // namespace

Result<Header> header_of_copy(const std::string& path, const Header& of) {
  auto header = header_for(path, of, {});  // it is another pool
  if (header.ok())
    if (Status s = fresh_uuid(header->uuid, 0); !s.ok()) return s;
  return header;
}

Result<Header> header_of_replica(const std::string& path, const Header& of,
                                 const ReplicationWords& words) {
  auto header = header_for(path, of, words);
  // mutant: replica-drops-moved-checksums
  if (header.ok() && !has_first_checksums(*header)) {
    header->features_write &= ~info(Feature::data_checksums).bit();
    header->checksums_offset = header->checksums_bytes = 0;
  }
  return header;
}

Status same_places(const std::string& path, const Header& mine, const Header& theirs) {
  const Directory here(mine), there(theirs);
  const auto differ = [&](const char* what, std::uint64_t has, std::uint64_t wanted) {
    return failure(Code::incompatible, path, what + (" of " + std::to_string(has)),
                   std::to_string(wanted) + ", as the primary has now",
                   "make this copy anew from a backup of the primary");
  };
  if (here.max_data_bytes() != there.max_data_bytes())
    return differ("a max_size", here.max_data_bytes(), there.max_data_bytes());
  if (here.word(here.chunks() - 1) != there.word(there.chunks() - 1))
    return differ("a directory with its last word at an offset", here.word(here.chunks() - 1),
                  there.word(there.chunks() - 1));
  if (here.first_chunk() != there.first_chunk())
    return differ("a first chunk for objects", here.first_chunk(), there.first_chunk());
  return {};
}

bool adopt_contents(Header& mine, const Header& theirs) noexcept {
  Header h = mine;
  for (const Feature f : {Feature::combined_records, Feature::field_names, Feature::catalog_root,
                          Feature::note_entries, Feature::copied_objects})
    if (has_feature(theirs, f)) set_feature(h, f);
  h.root_offset = theirs.root_offset;
  h.root_bytes = theirs.root_bytes;
  h.fingerprint = theirs.fingerprint;
  h.layout_bytes = theirs.layout_bytes;
  std::memcpy(h.layout, theirs.layout, sizeof h.layout);
  h.field_names_bytes = theirs.field_names_bytes;
  h.field_names_hash = theirs.field_names_hash;
  std::memcpy(h.field_names, theirs.field_names, sizeof h.field_names);
  if (std::memcmp(&h, &mine, sizeof h) == 0) return false;
  mine = h;
  return true;
}

Status create_copy(const std::string& path, const Header& header, std::uint32_t mode,
                   const std::function<Status(medium::Medium& medium)>& fill) {
  OpenFile how;
  how.path = path;
  how.direct = false;  // nothing is appended to the log
  how.mode = mode;
  Plan plan;
  plan.log_bytes = header.log_bytes;
  plan.ring_bytes = header.ring_bytes;
  plan.rings = header.ring_count;
  plan.data_bytes = header.data_bytes;
  plan.max_data_bytes = Directory(header).max_data_bytes();
  Status made = create_file(how, plan, nullptr, [&](medium::Medium& medium, AddressRange&) {
                  Header h = header;
                  if (Status s = allocate_frame(medium, h); !s.ok()) return s;
                  if (Status s = fill(medium); !s.ok()) return s;
                  if (PageChecksums::has(h)) PageChecksums(medium, h).compute_all(h.data_bytes);
                  // Durable before the header that makes it a pool's.
                  if (Status s = medium.fence(); !s.ok()) return s;
                  if (Status s = write_header(medium, h, false); !s.ok()) return s;
                  return medium.flush_all();
                }).status();
  if (made.code() == Code::exists)
    return failure(Code::exists, path, "a file of that name", "none: a copy replaces no file",
                   "name another file, or remove this one first");
  return made;
}

Status copy_pool(const OpenPool& pool, const std::string& path, const PoolState& state,
                 const StateProgress& progress) {
  auto header = header_of_copy(pool.path(), pool.header_of_clean_close(state.id));
  if (!header) return header.status();
  header->heap_exact = 1;
  header->heap_used = state.bytes();
  return create_copy(path, *header, pool.file_mode(), [&](medium::Medium& medium) {
    const Directory directory(*header);
    NewDataRegion data(medium, header->log_bytes);
    return each_chunk(
        state, directory,
        [&](std::uint64_t chunk, const std::byte* bytes) {
          if (!directory.holds_words(chunk))
            if (Status s = allocate_chunks(medium, chunk, 1); !s.ok()) return s;
          data.store_chunk(chunk, bytes);
          return Status();
        },
        progress);
  });
}

}  // namespace perdure::pool
