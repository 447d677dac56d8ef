// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/copy.hpp"

#include <ctime>

#include "perdure/pool/allocation.hpp"
#include "perdure/pool/create.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/page_checksums.hpp"

namespace perdure::pool {

Result<Header> header_of_copy(const std::string& path, const Header& of) {
  auto header = header_of_replica(path, of, {});  // it is another pool
  if (header.ok())
    if (Status s = fresh_uuid(header->uuid, 0); !s.ok()) return s;
  return header;
}

Result<Header> header_of_replica(const std::string& path, const Header& of,
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
