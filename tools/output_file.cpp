// SPDX-License-Identifier: BSD-3-Clause
#include "tools/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "perdure/base/descriptor.hpp"
#include "perdure/pool/create.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
OutputFile::OutputFile(const std::string& path, const std::string& not_this) : path_(path) {
  struct stat there = {}, other = {};
  const bool exists = ::stat(path.c_str(), &there) == 0;
  if (exists && ::stat(not_this.c_str(), &other) == 0 && there.st_dev == other.st_dev &&
      there.st_ino == other.st_ino)
    throw error(failure(Code::invalid, path, "the pool itself", "another file to export to"));
  if (path == "-")
    fd_ = STDOUT_FILENO;
  else if (!exists || S_ISREG(there.st_mode))
    temporary_ = path + ".part-" + std::to_string(::getpid());
  if (fd_ < 0)
    fd_ = base::open_file(temporary_.empty() ? path.c_str() : temporary_.c_str(),
                          O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd_ < 0) throw error(system_failure(path, "open", errno));
}

OutputFile::~OutputFile() {
  if (fd_ > STDOUT_FILENO) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::write(std::string_view bytes) {
  buffer_ += bytes;
  bytes_ += bytes.size();
  if (buffer_.size() >= 1 << 20) flush();
}

void OutputFile::flush() {
  write_all(fd_, buffer_, path_ == "-" ? "standard output" : path_);
  buffer_.clear();
}

void OutputFile::finish() {
  flush();
  if (temporary_.empty()) return;
  if (::fsync(fd_) != 0) throw error(system_failure(path_, "fsync", errno));
  give_name(temporary_, path_, false);
  temporary_.clear();
}

error name_taken(const std::string& path) {
  return error(failure(Code::exists, path, "a file of this name", "none",
                       "name another, or remove that one first"));
}

void give_name(const std::string& temporary, const std::string& path, bool is_new) {
  if (is_new ? ::link(temporary.c_str(), path.c_str()) != 0
             : ::rename(temporary.c_str(), path.c_str()) != 0) {
    if (errno == EEXIST) throw name_taken(path);
    throw error(system_failure(path, is_new ? "link" : "rename", errno));
  }
  if (is_new) ::unlink(temporary.c_str());
  pool::sync_folder(path).or_throw();
}

}  // namespace perdure::tool
