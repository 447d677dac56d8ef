// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/header.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "perdure/base/checksum.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/open_pool.hpp"
#include "perdure/pool/page_checksums.hpp"

namespace perdure::pool {
namespace {

std::string number(std::uint64_t n) { return std::to_string(n); }

// Names the first number in a header with a valid checksum that can't be right; empty if all agree.
std::string contradiction(const Header& h) {
  if (h.base % 4096 != 0) return "base " + number(h.base) + " is not a multiple of 4096";
  if (h.max_data_bytes % chunk_bytes != 0 || h.max_data_bytes > max_data_limit)
    return "max_data_bytes " + number(h.max_data_bytes);
  const bool raised = has_feature(h, Feature::raised_limit);
  // mutant: header-raised-limit
  if (raised ? h.raised_max_bytes % chunk_bytes != 0 || h.raised_max_bytes > max_data_limit ||
                   h.raised_max_bytes <= h.first_max_bytes
             : h.raised_max_bytes != 0)
    return "raised_max_bytes " + number(h.raised_max_bytes);
  if (raised ? h.first_max_bytes % chunk_bytes != 0 || h.first_max_bytes < 2 * chunk_bytes
             : h.first_max_bytes != 0)
    return "first_max_bytes " + number(h.first_max_bytes);
  if (h.max_data_bytes != stated_max_bytes(h))
    return "max_data_bytes " + number(h.max_data_bytes) + " in a pool whose limit was raised";
  if (h.data_bytes % 4096 != 0 || h.data_bytes > Directory(h).max_data_bytes())
    return "data_bytes " + number(h.data_bytes);
  if (const std::string sums = contradiction_of_checksums(h); !sums.empty()) return sums;
  if (h.data_bytes < first_chunk(h) * chunk_bytes)
    return "data_bytes " + number(h.data_bytes) + " is less than its directory";
  if (h.ring_count > static_cast<std::uint32_t>(max_rings))
    return "ring_count " + number(h.ring_count);
  if (h.ring_bytes % 4096 != 0 || h.log_bytes % 4096 != 0 || h.log_bytes > max_data_limit)
    return "log_bytes " + number(h.log_bytes);
  if (h.log_bytes < first_ring ||
      (h.ring_count != 0 && h.ring_bytes > (h.log_bytes - first_ring) / h.ring_count))
    return number(h.ring_count) + " rings of " + number(h.ring_bytes) +
           " bytes in a log range of " + number(h.log_bytes);
  if (h.ring_count != 0 && h.ring_bytes == 0) return "rings of no bytes";
  if (h.order == CommitOrder::pipelined && h.ring_count > 1)
    return number(h.ring_count) + " rings in a pool of pipelined commit order";
  if (h.order != CommitOrder::strict && h.order != CommitOrder::pipelined)
    return "order " + number(static_cast<std::uint32_t>(h.order));
  if (h.append_unit != 64 && h.append_unit != 4096) return "append_unit " + number(h.append_unit);
  for (std::uint32_t i = 0; i < h.ring_count; ++i)
    if (h.ring_head[i] % h.append_unit != 0)
      return "ring_head " + number(h.ring_head[i]) + " in units of " + number(h.append_unit);
  if (h.version < feature_version &&
      (h.features_write | h.features_read | h.features_optional) != 0)
    return "features in a header of version " + number(h.version);
  if (h.layout_bytes > layout_capacity) return "layout_bytes " + number(h.layout_bytes);
  if (h.field_names_bytes > field_names_capacity)
    return "field_names_bytes " + number(h.field_names_bytes);
  if (h.root_offset > h.data_bytes || h.root_bytes > h.data_bytes - h.root_offset)
    return "a root object outside the data region";
  return {};
}

Status not_a_pool(const std::string& path, const std::string& found) {
  return failure(Code::incompatible, path, found, "a perdure pool, which begins with \"PERDURE\"",
                 "correct the path; nothing was written");
}

Status cut_short(const std::string& path, std::uint64_t file_bytes, std::uint64_t expected) {
  return failure(Code::corrupt, path,
                 "a pool cut short: the file has " + number(file_bytes) + " bytes",
                 "at least " + number(expected), "restore it from a copy; nothing was written");
}

// The error when no copy is valid.
Status refuse(const std::string& path, const ChosenHeader& c, const Header* a, const Header* b,
              std::uint64_t file_bytes) {
  const auto has = [&](CopyState s) { return c.copy_a == s || c.copy_b == s; };
  if (c.copy_a == CopyState::missing) {
    if (file_bytes == 0) return not_a_pool(path, "an empty file");
    return not_a_pool(path,
                      "a file of " + number(file_bytes) + " bytes that does not begin like a pool");
  }
  if (has(CopyState::impossible)) {
    std::string why;
    (void)judge(c.copy_a == CopyState::impossible ? *a : *b, &why);
    return failure(Code::corrupt, path, "a header that contradicts itself (" + why + ")", {},
                   "restore the pool from a copy; nothing was written");
  }
  if (has(CopyState::damaged)) {
    if (file_bytes < header_b + sizeof(Header))
      return cut_short(path, file_bytes, header_b + sizeof(Header));
    return failure(Code::corrupt, path,
                   "both copies of the header are damaged (their checksums fail)",
                   "at least one whole copy", "restore the pool from a copy; nothing was written");
  }
  if (has(CopyState::other_endian)) {
    return failure(Code::incompatible, path, "a pool made on a machine of the other byte order",
                   "a little-endian pool",
                   "export it on a machine like the one that made it, and load the export here");
  }
  if (has(CopyState::other_version)) {
    const std::uint32_t v = c.copy_a == CopyState::other_version ? a->version : b->version;
    return failure(Code::incompatible, path, "a pool of format version " + number(v),
                   "version " + number(first_version) + " to " + number(format_version),
                   v > format_version ? "open it with a newer Perdure"
                   : v != 0 ? "export it with the Perdure that made it, and load the export here"
                            : "the version says that no Perdure made it; restore it from a copy");
  }
  return not_a_pool(path, "a file that does not begin like a pool");
}

Status check_length(const std::string& path, const Header& h, std::uint64_t file_bytes) {
  return file_bytes < h.log_bytes + h.data_bytes
             ? cut_short(path, file_bytes, h.log_bytes + h.data_bytes)
             : Status();
}

// The n-th line of a text without its end; empty after the last line.
std::string_view line_of(std::string_view text, std::size_t n) {
  for (; n > 0; --n) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

// "perdure::shadow_none" for the instance "shadow/none".
std::string engine_tag(std::string_view name) {
  std::string tag = "perdure::";
  for (const char c : name) tag += c == '/' || c == '-' ? '_' : c;
  return name == "volatile" ? tag + "_" : tag;
}

Status other_layout(const std::string& path, const Header& h, std::string_view mine) {
  const std::string_view theirs = layout_text(h);
  const std::string advice =
      "open it with the root type that made it; to change the type, open it once with that type "
      "and "
      "Options::migrate.add_catalog";
  for (std::size_t n = 0;; ++n) {
    const std::string_view found = line_of(theirs, n), expected = line_of(mine, n);
    if (found.empty() && expected.empty()) break;
    // A text longer than the header's space is cut, perhaps inside its last line.
    const bool cut = theirs.size() == layout_capacity &&
                     found.data() + found.size() == theirs.data() + theirs.size();
    if (cut ? expected.substr(0, found.size()) != found : found != expected) {
      const auto quoted = [](std::string_view s) {
        return s.empty() ? std::string("nothing more") : "\"" + std::string(s) + "\"";
      };
      return failure(Code::incompatible, path,
                     "a pool of another layout: field " + number(n) + " is " + quoted(found),
                     quoted(expected), advice);
    }
    if (cut) break;
  }
  return failure(Code::incompatible, path,
                 "a pool of another layout: it differs beyond the first " + number(theirs.size()) +
                     " bytes of its text, or in its size (" + number(h.root_bytes) + " bytes)",
                 {}, advice);
}

std::uint64_t hash_of_names(std::string_view names) noexcept {
  return base::hash_bytes(names.data(), names.size(), 0);
}

Status other_names(const std::string& path, const Header& h, std::string_view mine) {
  const std::string_view theirs = field_names_text(h);
  const bool cut = theirs.size() == field_names_capacity;
  return failure(Code::incompatible, path,
                 "a pool whose fields have other names: " + std::string(theirs) +
                     (cut ? "... (the first " + number(theirs.size()) + " bytes of them)" : ""),
                 std::string(mine),
                 "if fields of one type have changed places, put them back; if they were only "
                 "renamed, open the pool once with "
                 "Options::migrate.renamed_fields and close it");
}

}  // namespace

bool has_field_names(const Header& header, std::string_view names) noexcept {
  return header.field_names_bytes != 0 && header.field_names_hash == hash_of_names(names);
}

void set_field_names(Header& header, std::string_view names) noexcept {
  header.field_names_bytes =
      static_cast<std::uint32_t>(std::min(names.size(), field_names_capacity));
  std::memset(header.field_names, 0, sizeof header.field_names);
  std::memcpy(header.field_names, names.data(), header.field_names_bytes);
  header.field_names_hash = hash_of_names(names);
  set_feature(header, Feature::field_names);
}

std::uint64_t header_checksum(const Header& header) noexcept {
  return base::hash_bytes(&header, offsetof(Header, checksum), header_seed);
}

CopyState judge(const Header& copy, std::string* why_impossible) {
  // mutant: header-checksum
  const bool sound = header_checksum(copy) == copy.checksum;
  if (!sound) {
    // A flipped bit in one of the three fields that say how to interpret the rest is damage, not
    // another kind of file.
    Header repaired = copy;
    std::memcpy(repaired.magic, magic, sizeof magic);
    repaired.endian = endian_mark;
    for (repaired.version = first_version; repaired.version <= format_version; ++repaired.version)
      if (header_checksum(repaired) == copy.checksum) return CopyState::damaged;
  }
  if (std::memcmp(copy.magic, magic, sizeof magic) != 0) return CopyState::foreign;
  if (copy.endian != endian_mark)
    return copy.endian == __builtin_bswap32(endian_mark) ? CopyState::other_endian
                                                         : CopyState::damaged;
  if (copy.version < first_version || copy.version > format_version)
    return CopyState::other_version;
  if (!sound) return CopyState::damaged;
  std::string why = contradiction(copy);
  // mutant: header-contradiction
  if (why.empty()) return CopyState::valid;
  if (why_impossible != nullptr) *why_impossible = std::move(why);
  return CopyState::impossible;
}

Result<ChosenHeader> choose_header(const std::string& path, const Header* a, const Header* b,
                                   std::uint64_t file_bytes) {
  ChosenHeader c;
  if (a != nullptr) c.copy_a = judge(*a);
  if (b != nullptr) c.copy_b = judge(*b);
  const bool a_good = c.copy_a == CopyState::valid, b_good = c.copy_b == CopyState::valid;
  if (!a_good && !b_good) return refuse(path, c, a, b, file_bytes);
  c.write_b_first = a_good && (!b_good || a->sequence >= b->sequence);
  // mutant: header-newer-copy
  c.header = c.write_b_first ? *a : *b;
  return c;
}

Result<ChosenHeader> read_header(const std::string& path, int fd) {
  struct stat st = {};
  if (::fstat(fd, &st) != 0) return system_failure(path, "fstat", errno);
  std::byte page_a[sizeof(Header)], page_b[sizeof(Header)];
  std::size_t got_a = sizeof page_a, got_b = sizeof page_b;
  const bool device = S_ISCHR(st.st_mode);
  if (device) {
    // A device-dax can be mapped but not read, and only in units of its alignment, which is 2 MiB
    // unless it was configured otherwise.
    void* at = ::mmap(nullptr, medium::region_align, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
      return system_failure(path, "mmap", errno, "expected a /dev/dax device of 2 MiB alignment");
    std::memcpy(page_a, static_cast<std::byte*>(at) + header_a, sizeof page_a);
    std::memcpy(page_b, static_cast<std::byte*>(at) + header_b, sizeof page_b);
    ::munmap(at, medium::region_align);
  } else {
    const auto read_at = [fd](std::byte* to, std::uint64_t offset) -> ssize_t {
      std::size_t done = 0;
      while (done < sizeof(Header)) {
        const ssize_t n =
            ::pread(fd, to + done, sizeof(Header) - done, static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return n;
        if (n == 0) break;
        done += static_cast<std::size_t>(n);
      }
      return static_cast<ssize_t>(done);
    };
    const ssize_t a = read_at(page_a, header_a), b = a < 0 ? a : read_at(page_b, header_b);
    if (a < 0 || b < 0) return system_failure(path, "read of the header", errno);
    got_a = static_cast<std::size_t>(a);
    got_b = static_cast<std::size_t>(b);
  }
  Header a, b;
  std::memcpy(&a, page_a, sizeof a);
  std::memcpy(&b, page_b, sizeof b);
  // The length as it is now: a pool grows before its header says so.
  if (!device && ::fstat(fd, &st) != 0) return system_failure(path, "fstat", errno);
  const auto bytes = device ? ~std::uint64_t{0} : static_cast<std::uint64_t>(st.st_size);
  if (got_a < sizeof a && got_a >= sizeof magic && std::memcmp(page_a, magic, sizeof magic) == 0)
    return cut_short(path, bytes, header_b + sizeof(Header));
  auto chosen = choose_header(path, got_a == sizeof a ? &a : nullptr,
                              got_b == sizeof b ? &b : nullptr, bytes);
  if (!chosen.ok()) return chosen;
  if (Status s = check_length(path, chosen->header, bytes); !s.ok()) return s;
  return chosen;
}

Result<ChosenHeader> read_header_beside(const std::string& path, int fd) {
  constexpr int most_tries = 100;
  for (int tries = 1;; ++tries) {
    auto chosen = read_header(path, fd);
    if (chosen.code() != Code::corrupt || tries == most_tries) return chosen;
  }
}

Result<ChosenHeader> read_header(const medium::Medium& medium) {
  const std::uint64_t bytes = medium.log_bytes() + medium.data_bytes();
  if (medium.log_bytes() < header_b + sizeof(Header))
    return cut_short(medium.path(), bytes, header_b + sizeof(Header));
  Header a, b;
  std::memcpy(&a, medium.at(header_a), sizeof a);
  std::memcpy(&b, medium.at(header_b), sizeof b);
  auto chosen = choose_header(medium.path(), &a, &b, bytes);
  if (!chosen.ok()) return chosen;
  if (Status s = check_length(medium.path(), chosen->header, bytes); !s.ok()) return s;
  return chosen;
}

Status check_identity(const std::string& path, const Header& h, const Identity& who) {
  if (!who.engine_any && engine_name(h) != who.engine) {
    const std::string made_by(engine_name(h));
    return failure(
        Code::incompatible, path, "a pool of engine \"" + made_by + "\"",
        "engine \"" + who.engine + "\"",
        "open it with perdure::Pool<Root, perdure::engines<" + engine_tag(made_by) + ">>");
  }
  // In a pool with a catalog, the catalog's layout counts instead; it is read after recovery.
  if (!who.layout_any && !has_feature(h, Feature::catalog_root)) {
    const std::uint64_t fingerprint = base::hash_bytes(who.layout.data(), who.layout.size(), 0);
    if (h.fingerprint != fingerprint || h.root_bytes != who.root_bytes)
      return other_layout(path, h, who.layout);
    // The pool has no names, or the program has none (another compiler, a root type that states its
    // layout): only the layout counts.
    if (h.field_names_bytes != 0 && !who.field_names.empty() && !who.renamed_fields &&
        !has_field_names(h, who.field_names))
      return other_names(path, h, who.field_names);
  }
  return {};
}

void set_layout(Header& header, std::string_view text) noexcept {
  header.layout_bytes = static_cast<std::uint32_t>(std::min(text.size(), layout_capacity));
  std::memset(header.layout, 0, sizeof header.layout);
  std::memcpy(header.layout, text.data(), header.layout_bytes);
  header.fingerprint = base::hash_bytes(text.data(), text.size(), 0);
}

Status write_header(medium::Medium& medium, Header& header, bool write_b_first) {
  ++header.sequence;
  header.checksum = header_checksum(header);
  // mutant: header-write-order
  const std::uint64_t order[2] = {write_b_first ? header_b : header_a,
                                  write_b_first ? header_a : header_b};
  for (const std::uint64_t offset : order) {
    medium.store(offset, &header, sizeof header);
    medium.flush(offset, sizeof header);
    // The first copy must be whole before the second is touched: otherwise a power cut could tear
    // both.
    if (Status s = medium.fence(); !s.ok()) return s;
  }
  return {};
}

}  // namespace perdure::pool
