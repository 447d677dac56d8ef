// SPDX-License-Identifier: BSD-3-Clause
//
// open_medium and diagnose: which medium a path gets, and why. Thread safety: all functions may be
// called from any thread.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perdure/base/descriptor.hpp"
#include "perdure/medium/file.hpp"
#include "perdure/medium/memory.hpp"

namespace perdure::medium {
namespace {

// Does the file system accept O_DIRECT? open() fails on all that refuse it (tmpfs: EINVAL).
bool direct_works(const std::string& path) {
  struct stat st = {};
  const bool there = ::stat(path.c_str(), &st) == 0;
  if (there && !S_ISREG(st.st_mode)) return false;
  const Descriptor fd(
      there ? base::open_file(path.c_str(), O_RDONLY | O_DIRECT)
            : base::open_file(folder_of(path).c_str(), O_TMPFILE | O_RDWR | O_DIRECT, 0600));
  return static_cast<bool>(fd);
}

}  // namespace

Result<std::unique_ptr<Medium>> open_medium(const OpenMedium& how) {
  if (how.kind != "auto" && how.kind != "file" && how.kind != "dax" && how.kind != "emulated") {
    return failure(Code::invalid, how.path, "medium \"" + how.kind + "\"",
                   "auto, file, dax or emulated");
  }
  if (how.kind == "emulated") return open_emulated(how);
  if (!how.delays.none())
    return failure(Code::invalid, how.path, "delays on medium \"" + how.kind + "\"",
                   "none, or the medium emulated");
  if (how.kind == "dax") return open_dax(how);
  if (how.kind == "auto" && map_sync_works(how.path)) return open_dax(how);
  return FileMedium::open(how);
}

Result<Diagnosis> diagnose(const std::string& path) {
  if (path.empty()) return failure(Code::invalid, "", "an empty path", "the path of a pool file");
  struct stat st = {};
  const bool there = ::stat(path.c_str(), &st) == 0;
  const std::string folder = folder_of(path);
  struct stat dir = {};
  if (!there && (::stat(folder.c_str(), &dir) != 0 || !S_ISDIR(dir.st_mode))) {
    return failure(Code::not_found, path, "neither the file nor its folder exists", {},
                   "make the folder first");
  }
  if (there && S_ISDIR(st.st_mode))
    return failure(Code::invalid, path, "a folder", "the path of a pool file in it");
  Diagnosis d;
  const bool device = there && S_ISCHR(st.st_mode);
  if (there && !S_ISREG(st.st_mode) && !(device && path.rfind("/dev/dax", 0) == 0)) {
    return failure(Code::invalid, path, "not a regular file", "a pool file or a /dev/dax device");
  }
  d.file_system = device ? "device-dax" : file_system_name(there ? path : folder);
  d.map_sync = map_sync_works(path);
  d.direct = direct_works(path);
  d.eadr = cache_is_durable();
  const auto flush = d.map_sync && d.eadr ? base::FlushInstruction::none : base::best_flush();
  d.flush_instruction = base::name(flush);
  if (d.map_sync) {
    d.kind = "dax";
    d.reason = device ? "a device-dax is memory that stays"
                      : "MAP_SYNC is accepted: stores reach persistent memory directly";
    d.reason += d.eadr ? "; the caches are in the power-fail domain (eADR)"
                       : "; lines are written back with " + d.flush_instruction;
    return d;
  }
  d.kind = "file";
  d.reason = d.file_system +
             " refuses MAP_SYNC (not persistent memory mounted with -o dax), so commits are "
             "written to the file; ";
  d.reason +=
      d.direct ? "O_DIRECT is accepted: the log is written past the page cache"
               : "O_DIRECT is refused: the log is written through the page cache, then fdatasync";
  if (d.file_system == "tmpfs") d.reason += "; tmpfs keeps nothing over a power cut or reboot";
  return d;
}

}  // namespace perdure::medium
