// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/create.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "perdure/base/checksum.hpp"
#include "perdure/base/descriptor.hpp"
#include "perdure/pool/allocation.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/heap_apply.hpp"
#include "perdure/pool/page_checksums.hpp"

namespace perdure::pool {
namespace {

constexpr std::uint64_t default_log = 64ULL << 20;
constexpr std::uint64_t room_at_birth = 16;  // chunks in addition to the root's
constexpr std::size_t longest_ending = sizeof ".creating.pool" - 1;

std::string number(std::uint64_t n) { return std::to_string(n); }
constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

std::uint64_t root_chunks(std::uint64_t root_bytes) {
  if (root_bytes == 0) return 0;
  return root_bytes > max_small ? round_up(root_bytes, chunk_bytes) / chunk_bytes
                                : span_chunks(size_class(root_bytes));
}

Status check_request(const OpenFile& how, const Identity& who, std::uint32_t rings) {
  if (rings > static_cast<std::uint32_t>(max_rings))
    return failure(Code::invalid, how.path, number(rings) + " log rings",
                   "at most " + number(max_rings), "ask for fewer threads");
  if (who.engine.empty() || who.engine.size() >= sizeof(Header::engine))
    return failure(Code::invalid, how.path,
                   "an engine name of " + number(who.engine.size()) + " bytes", "1 to 31");
  return {};
}

// Computes max_data_bytes and data_bytes.
Status plan_data(const OpenFile& how, const Identity& who, Plan& plan) {
  plan.max_data_bytes = round_up(std::min(how.max_bytes, max_data_limit), chunk_bytes);
  if (how.max_bytes > max_data_limit)
    return failure(Code::invalid, how.path, "a max_size of " + number(how.max_bytes) + " bytes",
                   "at most " + number(max_data_limit));
  if (how.checksums) plan.checksums = checksums_of_new_pool(plan.max_data_bytes);
  const std::uint64_t least = (first_chunk(plan.directory()) +
                               std::max<std::uint64_t>(root_chunks(root_block_bytes(who)), 1)) *
                              chunk_bytes;
  if (plan.max_data_bytes < least)
    return failure(Code::invalid, how.path, "a max_size of " + number(how.max_bytes) + " bytes",
                   "at least " + number(least) + " for this root object");
  const std::uint64_t wanted =
      std::max(round_up(how.initial_bytes, chunk_bytes), least + room_at_birth * chunk_bytes);
  plan.data_bytes = std::min(wanted, plan.max_data_bytes);
  return {};
}

}  // namespace

Status fresh_uuid(std::uint8_t (&uuid)[16], std::uint64_t seed) {
  std::size_t done = 0;
  if (seed != 0) {
    const std::uint64_t halves[2] = {base::mix(seed), base::mix(~seed)};
    std::memcpy(uuid, halves, sizeof uuid);
    done = sizeof uuid;
  }
  while (done < sizeof uuid) {
    const ssize_t n = ::getrandom(uuid + done, sizeof uuid - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_failure("", "getrandom", errno);
    done += static_cast<std::size_t>(n);
  }
  uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0f) | 0x40);  // RFC 4122, version 4
  uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3f) | 0x80);
  return {};
}

namespace {

void store_zeros(medium::Medium& medium, std::uint64_t offset, std::uint64_t n) {
  const std::vector<std::byte> zeros(std::min<std::uint64_t>(n, 1 << 20));
  for (std::uint64_t done = 0; done < n; done += zeros.size()) {
    const auto step = std::min<std::uint64_t>(zeros.size(), n - done);
    medium.store(offset + done, zeros.data(), step);
    medium.flush(offset + done, step);
  }
}

// Rewrites a message about the file under its working name for a user that knows only the pool's.
Status under_its_name(const Status& s, const std::string& working, const std::string& name) {
  std::string text = s.message();
  for (std::size_t at = text.find(working); at != std::string::npos;
       at = text.find(working, at + name.size()))
    text.replace(at, working.size(), name);
  return {s.code(), text};
}

// Gives the finished file its name; never replaces another file. Returns 0 or an errno.
int name_file(const std::string& working, const std::string& path) {
  if (::renameat2(AT_FDCWD, working.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // The file system has no RENAME_NOREPLACE.
  if (::link(working.c_str(), path.c_str()) != 0) return errno;
  // If a kill leaves it there, it is only a second name, which the next creator removes.
  return ::unlink(working.c_str()) == 0 ? 0 : errno;
}

// Gives the pool under creation the mode and owner of the empty file that it replaces.
Status take_rights(const FileLock& empty, const FileLock& made, const std::string& path) {
  struct stat st = {};
  if (::fstat(empty.fd(), &st) != 0) return system_failure(path, "fstat", errno);
  // Only root may do this; otherwise the file belongs to its creator.
  [[maybe_unused]] const int kept = ::fchown(made.fd(), st.st_uid, st.st_gid);
  if (::fchmod(made.fd(), st.st_mode & 07777) != 0) return system_failure(path, "fchmod", errno);
  return {};
}

// The path at which a new pool is made: `path` or, if that is a dangling symbolic link, the path
// that it leads to, as with open(O_CREAT).
Result<std::string> path_to_create(const std::string& path) {
  std::string at = path;
  for (int links = 0; links < 40; ++links) {
    std::string to(PATH_MAX, '\0');
    const ssize_t n = ::readlink(at.c_str(), to.data(), to.size());
    if (n < 0) return at;  // not a link; the creation reports any other problem with it
    to.resize(static_cast<std::size_t>(n));
    const std::size_t slash = at.rfind('/');
    at = to.starts_with('/') || slash == std::string::npos ? to : at.substr(0, slash + 1) + to;
  }
  return failure(Code::invalid, path, "a symbolic link that leads to itself",
                 "one that leads to a file", "correct the link");
}

// Where the pool is made: `path` with `.creating`, or a hash of the name with `.creating` where the
// longer name would be too long.
std::string working_path(const std::string& path) {
  const std::size_t name = path.rfind('/') + 1;  // 0 if there is no folder
  if (path.size() - name + longest_ending <= NAME_MAX) return path + ".creating";
  char hash[17];
  std::snprintf(
      hash, sizeof hash, "%016llx",
      static_cast<unsigned long long>(base::hash_bytes(path.data() + name, path.size() - name, 0)));
  return path.substr(0, name) + hash + ".creating";
}

// Removes the working files unless the creation was finished.
struct Cleaner {
  const std::string& lock_path;
  const std::string* file_path;
  bool file_made = false;
  ~Cleaner() {
    if (file_made) ::unlink(file_path->c_str());
    // While it is locked: a process that opened it meanwhile finds its name gone, and starts over.
    ::unlink(lock_path.c_str());
  }
};

}  // namespace

Result<Plan> plan_pool(const OpenFile& how, const Identity& who) {
  Plan plan;
  plan.rings = how.rings != 0 ? how.rings : who.rings;
  if (Status s = check_request(how, who, plan.rings); !s.ok()) return s;
  if (how.log_bytes > max_data_limit)
    return failure(Code::invalid, how.path, "a log of " + number(how.log_bytes) + " bytes",
                   "at most " + number(max_data_limit));
  const std::uint64_t rings = std::max<std::uint64_t>(plan.rings, 1);
  if (how.log_bytes == 0) {
    plan.ring_bytes = (default_log - first_ring) / rings / 4096 * 4096;
    plan.log_bytes = plan.rings == 0 ? medium::region_align : default_log;
  } else {
    plan.ring_bytes = std::max(round_up((how.log_bytes + rings - 1) / rings, 4096), who.min_ring);
    plan.log_bytes = round_up(first_ring + plan.ring_bytes * plan.rings, medium::region_align);
  }
  if (plan.rings == 0) plan.ring_bytes = 0;
  if (Status s = plan_data(how, who, plan); !s.ok()) return s;
  return plan;
}

Result<Plan> plan_on(const medium::Medium& medium, const OpenFile& how, const Identity& who) {
  Plan plan;
  plan.rings = how.rings != 0 ? how.rings : who.rings;
  if (Status s = check_request(how, who, plan.rings); !s.ok()) return s;
  OpenFile sized = how;
  // All that the medium has, but at most max_bytes.
  sized.max_bytes =
      std::max(std::min(round_up(how.max_bytes, chunk_bytes), medium.max_data_bytes()),
               medium.data_bytes()) /
      chunk_bytes * chunk_bytes;
  if (Status s = plan_data(sized, who, plan); !s.ok()) return s;
  const std::uint64_t least = first_chunk(plan.directory()) +
                              std::max<std::uint64_t>(root_chunks(root_block_bytes(who)), 1);
  plan.data_bytes = medium.data_bytes() / chunk_bytes * chunk_bytes;
  if (plan.data_bytes < least * chunk_bytes)
    return failure(Code::invalid, how.path,
                   "a medium whose data region has " + number(medium.data_bytes()) + " bytes",
                   "at least " + number(least * chunk_bytes));
  plan.log_bytes = medium.log_bytes();
  const std::uint64_t rings = std::max<std::uint64_t>(plan.rings, 1);
  const std::uint64_t room =
      plan.log_bytes < first_ring ? 0 : (plan.log_bytes - first_ring) / rings / 4096 * 4096;
  plan.ring_bytes =
      how.log_bytes == 0
          ? room
          : std::max(round_up((how.log_bytes + rings - 1) / rings, 4096), who.min_ring);
  if (plan.rings == 0) plan.ring_bytes = 0;
  if (plan.log_bytes < first_ring || plan.ring_bytes > room ||
      (plan.rings != 0 && plan.ring_bytes < who.min_ring))
    return failure(
        Code::invalid, how.path,
        "a medium whose log range has " + number(plan.log_bytes) + " bytes",
        "at least " + number(first_ring + std::max(plan.ring_bytes, who.min_ring) * plan.rings));
  return plan;
}

Result<Plan> plan_on_device(std::uint64_t bytes, const OpenFile& how, const Identity& who) {
  OpenFile sized = how;
  sized.max_bytes = round_up(how.max_bytes, medium::region_align);
  auto plan = plan_pool(sized, who);
  if (!plan.ok()) return plan;
  // A device can be mapped only in pieces of its alignment.
  plan->ring_bytes = round_up(plan->ring_bytes, medium::region_align);
  plan->log_bytes = round_up(first_ring + plan->ring_bytes * plan->rings, medium::region_align);
  const std::uint64_t least = plan->log_bytes + round_up(plan->data_bytes, medium::region_align);
  if (bytes < least)
    return failure(Code::full, how.path, "a device of " + number(bytes) + " bytes",
                   "at least " + number(least), "ask for a smaller log");
  // A device has its size from the start: the data region is all of it, as far as max_size allows.
  plan->data_bytes =
      std::min((bytes - plan->log_bytes) / medium::region_align * medium::region_align,
               plan->max_data_bytes);
  return plan;
}

HeapOp root_op(const Header& header) noexcept {
  HeapOp op;
  if (header.root_bytes == 0) return op;
  op.offset = header.root_offset;
  op.cls = size_class(header.root_bytes);
  op.chunks =
      op.cls == large_class ? static_cast<std::uint32_t>(root_chunks(header.root_bytes)) : 0;
  return op;
}

Status format_pool(medium::Medium& medium, const Plan& plan, const OpenFile& how,
                   const Identity& who, bool blank, AddressRange& space) {
  Header h{};
  std::memcpy(h.magic, magic, sizeof magic);
  h.version = format_version;
  h.endian = endian_mark;
  if (Status s = fresh_uuid(h.uuid, how.uuid_seed); !s.ok()) return s;
  std::memcpy(h.engine, who.engine.data(), who.engine.size());
  auto range = how.base != 0 ? AddressRange::reserve(how.base, plan.max_data_bytes, how.path)
                             : AddressRange::choose(h.uuid, plan.max_data_bytes, how.path);
  if (!range.ok()) return range.status();
  space = std::move(*range);
  h.base = space.base();
  h.max_data_bytes = plan.max_data_bytes;
  h.log_bytes = plan.log_bytes;
  h.ring_bytes = plan.ring_bytes;
  h.ring_count = plan.rings;
  h.order = who.order;
  h.append_unit = static_cast<std::uint32_t>(medium.append_unit());
  set_layout(h, who.layout);
  if (!who.field_names.empty()) set_field_names(h, who.field_names);
  if (!who.catalog.empty() && who.root_bytes != 0) set_feature(h, Feature::catalog_root);
  h.root_bytes = root_block_bytes(who);
  h.data_bytes = plan.data_bytes;
  if (plan.checksums.bytes != 0) {
    h.checksums_offset = plan.checksums.offset;
    h.checksums_bytes = plan.checksums.bytes;
    set_feature(h, Feature::data_checksums);
  }
  h.clean = 1;
  h.heap_exact = 1;
  h.created_unix = how.uuid_seed != 0 ? 0 : static_cast<std::uint64_t>(std::time(nullptr));

  const std::uint64_t objects = first_chunk(plan.directory()) * chunk_bytes;
  if (!blank) {  // clears old contents: there must be no header, no directory and no root
    store_zeros(medium, header_a, sizeof h);
    store_zeros(medium, header_b, sizeof h);
    // Before the data region changes: a half-made pool must not look like the old one.
    if (Status s = medium.fence(); !s.ok()) return s;
    store_zeros(medium, plan.log_bytes, objects + root_chunks(root_block_bytes(who)) * chunk_bytes);
    // Durable before the header's first copy, which can be torn.
    medium.store(header_b, unfinished_magic, sizeof unfinished_magic);
    medium.flush(header_b, sizeof unfinished_magic);
  }
  if (Status s = allocate_frame(medium, h); !s.ok()) return s;
  if (how.initial_bytes != 0)  // an explicit size is allocated at once, not only promised
    if (Status s = allocate_chunks(medium, 0, h.data_bytes / chunk_bytes); !s.ok()) return s;
  if (root_block_bytes(who) != 0) {
    const std::uint32_t cls = size_class(root_block_bytes(who));
    h.root_offset = objects + (cls == large_class ? 0 : classes[cls].first);
    if (Status s =
            allocate_chunks(medium, objects / chunk_bytes, root_chunks(root_block_bytes(who)));
        !s.ok())
      return s;
    const HeapOp op = root_op(h);
    NewDataRegion data(medium, plan.log_bytes);
    apply(data, op, h);
    h.heap_used = op_bytes(op);
    // CATALOG-1: flushed here, and fenced below before the header.
    if (const std::string first = first_catalog(who, h.base + h.root_offset); !first.empty()) {
      medium.store(plan.log_bytes + h.root_offset, first.data(), first.size());
      medium.flush(plan.log_bytes + h.root_offset, first.size());
    }
  }
  // FEATURE-1: a program that stores without asking for blocks must not write this pool.
  if (!medium.allocated(0, plan.log_bytes + plan.data_bytes)) set_feature(h, Feature::small_logs);
  if (PageChecksums::has(h)) PageChecksums(medium, h).compute_all(h.data_bytes);
  // The data region is durable before the header that makes it a pool's.
  if (Status s = medium.fence(); !s.ok()) return s;
  if (Status s = write_header(medium, h, false); !s.ok()) return s;
  // mutant: call create-flush-all
  return medium.flush_all();
}

void NewDataRegion::store_chunk(std::uint64_t chunk, const std::byte* bytes) {
  constexpr std::uint64_t page = 4096;
  const std::uint64_t begin = chunk * chunk_bytes;
  const std::uint64_t end = std::min(begin + chunk_bytes, medium_.data_bytes());
  const auto is_zero = [](std::byte b) { return b == std::byte{0}; };
  for (std::uint64_t at = begin; at < end; at += page) {
    const std::byte* const from = bytes + (at - begin);
    const std::uint64_t n = std::min(page, end - at);
    if (!std::all_of(from, from + n, is_zero)) store(at, from, n);
  }
}

Status sync_folder(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : (slash == 0 ? "/" : path.substr(0, slash));
  const int fd = base::open_file(folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (fd < 0) return system_failure(folder, "open", errno);
  const int r = ::fsync(fd), err = errno;
  ::close(fd);
  return r == 0 || err == EINVAL ? Status() : system_failure(folder, "fsync", err);
}

bool empty_file(int fd) noexcept {
  struct stat st = {};
  return ::fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
}

Result<NewFile> create_file(const OpenFile& how, const Identity& who, const FileLock* empty) {
  const auto plan = plan_pool(how, who);
  if (!plan.ok()) return plan.status();
  return create_file(how, *plan, empty, [&](medium::Medium& medium, AddressRange& space) {
    return format_pool(medium, *plan, how, who, true, space);
  });
}

Result<NewFile> create_file(
    const OpenFile& how, const Plan& plan, const FileLock* empty,
    const std::function<Status(medium::Medium& medium, AddressRange& space)>& format) {
  const auto path = path_to_create(how.path);
  if (!path.ok()) return path.status();
  const std::string lock_path = working_path(*path), working = lock_path + ".pool";
  for (int attempt = 0; attempt < 100; ++attempt) {
    auto creating = FileLock::acquire(lock_path, FileLock::Mode::create, how.path);
    if (!creating.ok()) return creating.status();
    bool is_it = false;
    // If this fails, the name may be another creator's: it stays, and the next creator removes it.
    if (Status s = creating->look_at(lock_path.c_str(), is_it); !s.ok()) return s;
    if (!is_it) continue;  // its last holder has just removed the name
    Cleaner cleaner{lock_path, &working};
    // Determines whether the name belongs to another file.
    const auto look_for_others = [&](bool& taken) -> Status {
      struct stat st = {};
      if (empty == nullptr) return taken = ::lstat(path->c_str(), &st) == 0, Status();
      bool is_ours = false;
      Status s = empty->look_at(path->c_str(), is_ours);
      taken = !is_ours || !empty_file(empty->fd());
      return s;
    };
    bool taken = false;
    if (Status s = look_for_others(taken); !s.ok()) return s;
    if (taken)
      return failure(Code::exists, how.path, "the file exists already", "no such file",
                     "open it without must_create");
    // Removes the file of a creator that was killed.
    if (::unlink(working.c_str()) != 0 && errno != ENOENT)
      return system_failure(working, "unlink", errno);

    medium::OpenMedium m;
    m.path = working;
    m.kind = how.medium;
    m.create = true;
    m.sparse = true;
    m.direct = how.direct;
    m.log_bytes = plan.log_bytes;
    m.data_bytes = plan.data_bytes;
    m.max_data_bytes = plan.data_bytes;
    m.delays = how.delays;
    cleaner.file_made = true;
    auto medium = medium::open_medium(m);
    if (!medium.ok()) return under_its_name(medium.status(), working, how.path);
    NewFile made;
    if (Status s = format(**medium, made.space); !s.ok())
      return under_its_name(s, working, how.path);
    // Unmapped and closed: the pool is opened again under its name, as at every later opening.
    medium->reset();

    auto lock = FileLock::acquire(working, FileLock::Mode::write, how.path);
    if (!lock.ok()) return lock.status();
    if (how.mode != 0 && ::fchmod(lock->fd(), how.mode) != 0)
      return system_failure(how.path, "fchmod", errno);
    if (empty != nullptr) {
      if (Status s = take_rights(*empty, *lock, how.path); !s.ok()) return s;
      if (Status s = look_for_others(taken); !s.ok()) return s;
      if (taken)
        return failure(Code::exists, how.path, "a file that was empty, and is not any more",
                       "an empty file", "open it again");
    }
    // Other processes of this library can't write the empty file, because it is locked.
    if (const int err = empty != nullptr
                            ? (::rename(working.c_str(), path->c_str()) == 0 ? 0 : errno)
                            : name_file(working, *path);
        err != 0) {
      if (err == EEXIST)
        return failure(Code::exists, how.path, "the file exists already", "no such file",
                       "open it without must_create");
      return system_failure(how.path, "rename", err);
    }
    cleaner.file_path = &*path;
    if (Status s = sync_folder(*path); !s.ok()) {
      // An empty file was there before, and stays.
      if (empty != nullptr) cleaner.file_made = ::ftruncate(lock->fd(), 0) != 0;
      return s;
    }
    cleaner.file_made = false;
    made.lock = std::move(*lock);
    return made;
  }
  return failure(Code::busy, how.path, "other processes keep creating and removing it", {},
                 "try again");
}

bool blank_device(int fd) {
  struct stat st = {};
  if (::fstat(fd, &st) != 0 || !S_ISCHR(st.st_mode)) return false;
  void* at = ::mmap(nullptr, medium::region_align, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return false;
  const auto* bytes = static_cast<const char*>(at);
  const auto zero = [bytes](std::uint64_t from, std::uint64_t to) {
    return std::all_of(bytes + from, bytes + to, [](char c) { return c == 0; });
  };
  const std::uint64_t a_end = header_a + sizeof(Header), b_end = header_b + sizeof(Header);
  const bool unfinished =
      std::memcmp(bytes + header_b, unfinished_magic, sizeof unfinished_magic) == 0;
  const bool blank = unfinished ? zero(header_b + sizeof unfinished_magic, b_end)
                                : zero(header_a, a_end) && zero(header_b, b_end);
  ::munmap(at, medium::region_align);
  return blank;
}

Status create_on_device(const FileLock& lock, const OpenFile& how, const Identity& who,
                        AddressRange& space) {
  struct stat st = {};
  if (::fstat(lock.fd(), &st) != 0) return system_failure(how.path, "fstat", errno);
  const std::string size =
      "/sys/dev/char/" + number(major(st.st_rdev)) + ":" + number(minor(st.st_rdev)) + "/size";
  const std::uint64_t bytes = std::strtoull(base::read_whole_file(size).c_str(), nullptr, 10);
  const auto plan = plan_on_device(bytes, how, who);
  if (!plan.ok()) return plan.status();
  medium::OpenMedium m;
  m.path = how.path;
  m.kind = how.medium;
  m.log_bytes = plan->log_bytes;
  m.data_bytes = plan->data_bytes;
  m.max_data_bytes = plan->data_bytes;
  m.delays = how.delays;
  auto medium = medium::open_medium(m);
  if (!medium.ok()) return medium.status();
  // Clears what an interrupted creation left there, before the page that says that there was one.
  store_zeros(**medium, header_a, sizeof(Header));
  if (Status s = (*medium)->fence(); !s.ok()) return s;
  medium->reset();
  m.create = true;
  medium = medium::open_medium(m);
  if (!medium.ok()) return medium.status();
  return format_pool(**medium, *plan, how, who, false, space);
}

}  // namespace perdure::pool
