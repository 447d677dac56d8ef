// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/base.hpp"

#include <lz4.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "perdure/backup/segment.hpp"
#include "perdure/pool/header.hpp"

namespace perdure::backup {
namespace {

constexpr std::uint32_t version = 1;

// The list's first bytes; the pool's header, the chunks and the hash of all that follow.
struct BaseHeader {
  char magic[4] = {'P', 'D', 'B', 'S'};
  std::uint32_t version = backup::version;
  std::uint64_t id = 0, unix_ns = 0, bytes = 0, chunks = 0;
  std::uint32_t mode = 0, reserved = 0;  // the pool file's permission bits; 0: unknown
};
static_assert(sizeof(BaseHeader) == 48);
struct ListedChunk {
  std::uint64_t chunk;
  Hash hash;
};
static_assert(sizeof(ListedChunk) == 24);

enum class Codec : std::uint32_t { raw = 0, lz4 = 1 };
// A chunk's file: this, then its bytes, compressed where that makes them smaller. The file's name
// is the hash of the bytes themselves; a compressed file that has changed may still give the same.
struct ChunkHeader {
  char magic[4] = {'P', 'D', 'C', 'K'};
  Codec codec = Codec::raw;
  std::uint64_t stored = 0;  // the low word of the hash of the bytes that follow
};
static_assert(sizeof(ChunkHeader) == 16);

Status damaged(const Store& store, const std::string& name, const std::string& what) {
  return failure(Code::corrupt, store.name() + "/" + name, what, "a whole file of a backup",
                 "take the file from another copy of the archive");
}

std::vector<std::byte> chunk_file(const std::byte* bytes) {
  constexpr int n = static_cast<int>(pool::chunk_bytes);
  ChunkHeader header;
  std::vector<std::byte> file(sizeof header + pool::chunk_bytes);
  // Room for less than the chunk: what does not become smaller stays as it is.
  const int packed =
      LZ4_compress_default(reinterpret_cast<const char*>(bytes),
                           reinterpret_cast<char*>(file.data() + sizeof header), n, n - n / 16);
  if (packed > 0) {
    header.codec = Codec::lz4;
    file.resize(sizeof header + static_cast<std::size_t>(packed));
  } else {
    std::memcpy(file.data() + sizeof header, bytes, pool::chunk_bytes);
  }
  header.stored = hash_of(file.data() + sizeof header, file.size() - sizeof header).low;
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

}  // namespace

std::string base_name(std::uint64_t id) { return std::string(base_prefix) + digits_of(id); }

std::string chunk_name(const Hash& hash) {
  const std::string text = hash.text();
  return "chunk/" + text.substr(0, 2) + "/" + text;
}

Status check_owner(Store& store, const std::uint8_t (&uuid)[16]) {
  auto ids = list_bases(store);
  if (!ids) return ids.status();
  if (ids->empty()) return {};
  auto newest = read_base(store, ids->back());
  if (!newest) return newest.status();
  if (std::memcmp(newest->header.uuid, uuid, sizeof uuid) == 0) return {};
  return failure(Code::incompatible, store.name(), "backups of another pool",
                 "an empty folder, or one with backups of this pool", "name another folder");
}

Result<BackupReport> write_base(Store& store, const pool::Header& header, std::uint32_t mode,
                                std::uint64_t unix_ns, const pool::PoolState& state,
                                const pool::StateProgress& progress) {
  if (Status s = check_owner(store, header.uuid); !s.ok()) return s;
  // PRUNE-1
  // mutant: backup-shares-chunks
  auto chunks = store.lock(Store::Use::chunks);
  if (!chunks) return chunks.status();
  BackupReport report;
  report.id = state.id;
  report.bytes = state.bytes();
  std::vector<ListedChunk> list;
  std::unordered_set<std::string> written;
  const std::unique_ptr<Store::Batch> batch = store.batch();
  Status s = pool::each_chunk(
      state, header,
      [&](std::uint64_t chunk, const std::byte* bytes) -> Status {
        const Hash hash = hash_of(bytes, pool::chunk_bytes);
        list.push_back({chunk, hash});
        ++report.chunks;
        const std::string name = chunk_name(hash);
        auto there = store.has(name);
        if (!there) return there.status();
        if (*there) return {};
        if (!written.insert(name).second) return {};
        const std::vector<std::byte> file = chunk_file(bytes);
        ++report.new_chunks;
        report.new_bytes += file.size();
        return batch->put(name, file.data(), file.size());
      },
      progress);
  if (!s.ok()) return s;
  // BASE-1
  // mutant: base-after-chunks
  if (s = batch->flush(); !s.ok()) return s;
  BaseHeader first;
  first.id = state.id;
  first.unix_ns = unix_ns;
  first.bytes = report.bytes;
  first.chunks = list.size();
  first.mode = mode;
  pool::Header closed = header;
  closed.heap_used = report.bytes;
  closed.checksum = pool::header_checksum(closed);
  std::vector<std::byte> file;
  const auto add = [&file](const void* from, std::size_t n) {
    const auto* const bytes = static_cast<const std::byte*>(from);
    file.insert(file.end(), bytes, bytes + n);
  };
  add(&first, sizeof first);
  add(&closed, sizeof closed);
  add(list.data(), list.size() * sizeof(ListedChunk));
  const Hash hash = hash_of(file.data(), file.size());
  add(&hash, sizeof hash);
  auto made = store.put(base_name(state.id), file.data(), file.size());
  if (!made) return made.status();
  if (*made) {
    report.new_bytes += file.size();
    return report;
  }
  auto there = read_base(store, state.id);
  if (!there) return there.status();
  const bool same = std::equal(list.begin(), list.end(), there->chunks.begin(), there->chunks.end(),
                               [](const ListedChunk& a, const BaseChunk& b) {
                                 return a.chunk == b.chunk && a.hash == b.hash;
                               });
  if (!same)
    return failure(Code::exists, store.name() + "/" + base_name(state.id),
                   "a backup of another state with the same id", "none, or one of the same state",
                   "the pool and the folder have parted: name another folder");
  return report;
}

Result<Base> read_base(Store& store, std::uint64_t id) {
  const std::string name = base_name(id);
  auto file = store.get(name);
  if (!file) return file.status();
  BaseHeader first;
  Base base;
  if (file->size() < sizeof first + sizeof base.header + sizeof(Hash))
    return damaged(store, name, std::to_string(file->size()) + " bytes");
  std::memcpy(&first, file->data(), sizeof first);
  if (std::memcmp(first.magic, BaseHeader().magic, sizeof first.magic) != 0)
    return damaged(store, name, "a file that does not begin as a backup");
  if (first.version != version)
    return failure(Code::incompatible, store.name() + "/" + name,
                   "a backup of version " + std::to_string(first.version), "version 1",
                   "use a newer build");
  const std::size_t n = file->size() - sizeof(Hash);
  Hash hash;
  std::memcpy(&hash, file->data() + n, sizeof hash);
  if (hash_of(file->data(), n) != hash || first.id != id ||
      (n - sizeof first - sizeof base.header) % sizeof(ListedChunk) != 0 ||
      (n - sizeof first - sizeof base.header) / sizeof(ListedChunk) != first.chunks)
    return damaged(store, name, "a list that fails its check");
  base.id = id;
  base.unix_ns = first.unix_ns;
  base.bytes = first.bytes;
  base.mode = first.mode;
  std::memcpy(&base.header, file->data() + sizeof first, sizeof base.header);
  if (std::string why; pool::judge(base.header, &why) != pool::CopyState::valid)
    return damaged(store, name, "a pool's header that can't be right " + why);
  base.chunks.resize(first.chunks);
  for (std::size_t i = 0; i < base.chunks.size(); ++i) {
    ListedChunk one;
    std::memcpy(&one, file->data() + sizeof first + sizeof base.header + i * sizeof one,
                sizeof one);
    base.chunks[i] = {one.chunk, one.hash};
  }
  return base;
}

Result<std::vector<std::byte>> read_chunk(Store& store, const Hash& hash) {
  const std::string name = chunk_name(hash);
  auto file = store.get(name);
  if (!file) return file.status();
  ChunkHeader header;
  if (file->size() < sizeof header || file->size() > sizeof header + pool::chunk_bytes)
    return damaged(store, name, std::to_string(file->size()) + " bytes for a chunk");
  std::memcpy(&header, file->data(), sizeof header);
  const std::size_t n = file->size() - sizeof header;
  std::vector<std::byte> bytes(pool::chunk_bytes);
  bool whole = std::memcmp(header.magic, ChunkHeader().magic, sizeof header.magic) == 0 &&
               hash_of(file->data() + sizeof header, n).low == header.stored;
  if (whole && header.codec == Codec::lz4)
    whole = LZ4_decompress_safe(reinterpret_cast<const char*>(file->data() + sizeof header),
                                reinterpret_cast<char*>(bytes.data()), static_cast<int>(n),
                                static_cast<int>(bytes.size())) == static_cast<int>(bytes.size());
  else if (whole && header.codec == Codec::raw && n == bytes.size())
    std::memcpy(bytes.data(), file->data() + sizeof header, n);
  else
    whole = false;
  if (!whole || hash_of(bytes.data(), bytes.size()) != hash)
    return damaged(store, name, "a chunk that fails its check");
  return bytes;
}

Result<std::vector<std::uint64_t>> list_bases(Store& store) {
  auto names = store.list(base_prefix);
  if (!names) return names.status();
  std::vector<std::uint64_t> ids;
  for (const std::string& name : *names) {
    std::string_view rest = std::string_view(name).substr(base_prefix.size());
    std::uint64_t id = 0;
    if (take_digits(rest, id) && rest.empty()) ids.push_back(id);
  }
  return ids;
}

}  // namespace perdure::backup
