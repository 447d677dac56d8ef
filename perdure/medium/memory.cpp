// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/medium/memory.hpp"

#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "perdure/base/descriptor.hpp"

namespace perdure::medium {
namespace {

constexpr std::uint64_t device_unit = region_align;  // a device-dax maps whole 2 MiB pages

std::string instructions(base::FlushInstruction flush) {
  std::string text(base::name(base::best_stream()));
  text += flush == base::FlushInstruction::none ? ", no flush needed (eADR)"
                                                : ", " + std::string(base::name(flush));
  return text + ", sfence";
}

std::string delay_text(const Delays& d) {
  std::string text;
  const auto part = [&](const std::string& p) { text += (text.empty() ? "" : ", ") + p; };
  if (d.write_ns != 0) part(std::to_string(d.write_ns) + " ns a line");
  if (d.latency_cycles != 0) {
    const auto ns = static_cast<std::uint64_t>(d.latency_cycles / ticks_per_ns());
    part(std::to_string(d.latency_cycles) + " cycles (" + std::to_string(ns) + " ns here) a fence");
  }
  if (d.bandwidth_gb_s > 0) part(std::to_string(d.bandwidth_gb_s) + " GB/s");
  if (d.drain_ns != 0)
    part("8-line buffer drained at " + std::to_string(d.drain_ns) + " ns a line");
  if (d.drain_ns != 0 && d.buffer_each) part("a buffer each thread");
  if (d.fence_ns != 0) part(std::to_string(d.fence_ns) + " ns a fence");
  return text.empty() ? "no added delay" : text;
}

template <class Delay>
Result<std::unique_ptr<Medium>> make(MemoryTraits traits, FileHandle file, const OpenMedium& how) {
  auto medium = std::make_unique<MemoryMedium<Delay>>(std::move(traits), std::move(file), how);
  if (Status s = medium->init(how.max_data_bytes); !s.ok()) return s;
  return std::unique_ptr<Medium>(std::move(medium));
}

// A device has no length to set: zeros the pool's ranges, unless the first page holds other bytes.
Status prepare_device(Medium& medium, const OpenMedium& how) {
  const std::byte* first = medium.at(0);
  for (std::uint64_t i = 0; i < page_bytes; ++i) {
    if (first[i] != std::byte{0}) {
      return failure(Code::exists, how.path, "the device's first page is in use", "zeros",
                     "open it without create; to give up what is there, zero its first 128 KiB");
    }
  }
  static const std::byte zeros[page_bytes] = {};
  const std::uint64_t end = how.log_bytes + how.data_bytes;
  for (std::uint64_t at = 0; at < end; at += page_bytes) medium.stream(at, zeros, page_bytes);
  return medium.fence();
}

}  // namespace

bool cache_is_durable() {
  glob_t found = {};
  bool all = ::glob("/sys/bus/nd/devices/region*/persistence_domain", 0, nullptr, &found) == 0 &&
             found.gl_pathc != 0;
  for (std::size_t i = 0; i < found.gl_pathc; ++i)
    all = all && read_sysfs(found.gl_pathv[i]) == "cpu_cache";
  ::globfree(&found);
  return all;
}

bool map_sync_works(const std::string& path) {
  struct stat st = {};
  Descriptor fd;
  if (::stat(path.c_str(), &st) == 0) {
    if (S_ISCHR(st.st_mode)) return path.rfind("/dev/dax", 0) == 0;  // always synchronous
    if (!S_ISREG(st.st_mode)) return false;
    fd = Descriptor(base::open_file(path.c_str(), O_RDWR));
    if (!fd) fd = Descriptor(base::open_file(path.c_str(), O_RDONLY));
  } else {
    // A nameless file leaves nothing behind.
    fd = Descriptor(base::open_file(folder_of(path).c_str(), O_TMPFILE | O_RDWR, 0600));
  }
  if (!fd) return false;
  void* p = ::mmap(nullptr, page_bytes, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC, fd.get(), 0);
  if (p == MAP_FAILED) return false;
  ::munmap(p, page_bytes);
  return true;
}

template <class Delay>
Status MemoryMedium<Delay>::sync_metadata() noexcept {
  if (!traits_.sync_metadata) return {};
  add(row().syncs, 1);
  return ::fsync(file_.fd.get()) == 0
             ? Status()
             : system_failure(path_, "fsync", errno, "reopen the pool to recover");
}

// Finds out which pages of the file are allocated. A device has no holes.
template <class Delay>
Status MemoryMedium<Delay>::learn_pages(std::uint64_t most) {
  if (file_.character_device) return {};
  if (Status s = keep_page_map(most); !s.ok()) return s;
  if (all_allocated_) {
    note_allocated(0, log_bytes_ + file_.data_bytes);
    return {};
  }
  std::uint64_t end = 0;  // of the part of the log found last that has data
  if (!sparse_) {
    const int fd = file_.fd.get();
    each_data(fd, 0, log_bytes_, [&](std::uint64_t from, std::uint64_t to) {
      note_hole(end, from);
      note_allocated(from, to);
      end = to;
    });
    each_allocated(fd, log_bytes_, log_bytes_ + file_.data_bytes,
                   [&](std::uint64_t from, std::uint64_t to) { note_allocated(from, to); });
  }
  note_hole(end, log_bytes_);
  return {};
}

// No sync is needed: `emulated` promises nothing over a power cut, and MAP_SYNC makes a page's
// block durable before the first store to it.
template <class Delay>
Status MemoryMedium<Delay>::give_blocks(std::uint64_t from, std::uint64_t to) {
  return allocate_blocks(file_.fd.get(), path_, from, to);
}

template <class Delay>
Status MemoryMedium<Delay>::extend(std::uint64_t from, std::uint64_t to) {
  if (file_.character_device) {
    if (log_bytes_ + to > file_.bytes) {
      return failure(Code::full, path_, "the device has " + std::to_string(file_.bytes) + " bytes",
                     std::to_string(log_bytes_ + to), "use a larger device");
    }
    // A device has no holes and no length: only its old contents have to be zeroed, through a
    // separate mapping.
    void* p = ::mmap(nullptr, to - from, PROT_READ | PROT_WRITE, map_flags_, file_.fd.get(),
                     static_cast<off_t>(log_bytes_ + from));
    if (p == MAP_FAILED) return system_failure(path_, "mmap", errno);
    static const std::byte zeros[page_bytes] = {};
    for (std::uint64_t at = 0; at < to - from; at += page_bytes)
      stream_(static_cast<std::byte*>(p) + at, zeros, page_bytes);
    base::store_fence();  // the zeros are durable before the caller publishes the new size
    ::munmap(p, to - from);
    return {};
  }
  if (Status s = allocate_zero(file_.fd.get(), path_, log_bytes_ + from, log_bytes_ + to); !s.ok())
    return s;
  add(row().syncs, 1);
  // The length is durable before the caller publishes it.
  if (::fsync(file_.fd.get()) == 0) return {};
  Status s = system_failure(path_, "fsync", errno);
  shrink(from);
  return s;
}

template <class Delay>
Status MemoryMedium<Delay>::make_hole(std::uint64_t from, std::uint64_t to) {
  return punch_hole(file_.fd.get(), path_, from, to);
}

template <class Delay>
void MemoryMedium<Delay>::shrink(std::uint64_t to) noexcept {
  // A failure only wastes disk space.
  if (!file_.character_device &&
      ::ftruncate(file_.fd.get(), static_cast<off_t>(log_bytes_ + to)) != 0)
    return;
}

template class MemoryMedium<NoDelay>;
template class MemoryMedium<ModelDelay>;

Result<std::unique_ptr<Medium>> open_emulated(const OpenMedium& how) {
  auto file = open_pool_file(how);
  if (!file.ok()) return file.status();
  if (file->character_device)
    return failure(Code::invalid, how.path, "a character device", "a regular file",
                   "use the dax medium");
  MemoryTraits traits;
  traits.kind = "emulated";
  traits.flush = base::best_flush();
  traits.map_flags = MAP_SHARED;
  traits.about = "emulated on " + file_system_name(how.path) + ": " + instructions(traits.flush) +
                 "; " + delay_text(how.delays);
  auto made = how.delays.none() ? make<NoDelay>(std::move(traits), std::move(*file), how)
                                : make<ModelDelay>(std::move(traits), std::move(*file), how);
  if (!made.ok()) discard_new_file(how);
  return made;
}

Result<std::unique_ptr<Medium>> open_dax(const OpenMedium& how) {
  auto file = open_pool_file(how);
  if (!file.ok()) return file.status();
  MemoryTraits traits;
  traits.kind = "dax";
  traits.flush = cache_is_durable() ? base::FlushInstruction::none : base::best_flush();
  if (file->character_device) {
    if (how.path.rfind("/dev/dax", 0) != 0)
      return failure(Code::invalid, how.path, "a character device", "a regular file or /dev/dax*");
    const std::uint64_t odd = (how.log_bytes | how.data_bytes) % device_unit;
    if (odd != 0)
      return failure(Code::invalid, how.path, "sizes that are not whole 2 MiB pages",
                     "multiples of 2097152 on a device-dax");
    traits.map_unit = device_unit;
    traits.map_flags = MAP_SHARED;  // a device-dax is synchronous without MAP_SYNC
    file->data_bytes = file->data_bytes / device_unit * device_unit;
  } else {
    traits.map_flags = MAP_SHARED_VALIDATE | MAP_SYNC;
    traits.sync_metadata = true;
    if (!map_sync_works(how.path)) {
      const std::string fs = file_system_name(how.path);
      discard_new_file(how);
      return failure(Code::unsupported, how.path, fs + " refuses MAP_SYNC here",
                     "a file on a file system mounted with -o dax, or /dev/dax*",
                     "use the file medium");
    }
    if (how.create) {
      if (Status s = sync_file_and_folder(file->fd.get(), how.path); !s.ok()) {
        discard_new_file(how);
        return s;
      }
    }
  }
  const bool device = file->character_device;
  traits.about = std::string(device ? "device-dax" : "MAP_SYNC on " + file_system_name(how.path)) +
                 ": " + instructions(traits.flush);
  auto made = make<NoDelay>(std::move(traits), std::move(*file), how);
  if (!made.ok()) {
    discard_new_file(how);
    return made;
  }
  if (device && how.create) {
    if (Status s = prepare_device(**made, how); !s.ok()) return s;
  }
  return made;
}

}  // namespace perdure::medium
