// SPDX-License-Identifier: BSD-3-Clause
//
// Opening files, pipes and memory files so that no descriptor of the library is ever 0, 1 or 2, or
// survives an exec.
//
// A program may run with its standard descriptors closed. The kernel gives the lowest free number,
// so a plain open() would make a pool the program's standard output, and the next printf would
// overwrite the pool's header. Every descriptor of the library, of SQLite's file system and of the
// tools comes from here; the test `layering` refuses the raw calls elsewhere.
// Invariant FD-1: at no instant is a number below 3 open on something that a write could change.
// The standard numbers that are closed are occupied by descriptors that can be neither read nor
// written (O_PATH) while the real one is opened, and are given back after.
// Thread safety: all functions, from any thread.
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include <string>

namespace perdure::base {

/// open(): the descriptor is 3 or higher and closes on exec. -1 with errno set as open() sets it,
/// or as F_DUPFD_CLOEXEC does.
[[nodiscard]] int open_file(const char* path, int flags, mode_t mode = 0) noexcept;
/// shm_open() likewise.
[[nodiscard]] int open_shared_memory(const char* name, int flags, mode_t mode = 0) noexcept;
/// memfd_create() likewise.
[[nodiscard]] int open_memory_file(const char* name) noexcept;
/// pipe2() likewise: 0, or -1 with errno set and nothing open. `ends`: [0] is read from, [1] is
/// written to.
[[nodiscard]] int open_pipe(int (&ends)[2]) noexcept;
/// opendir() likewise: null with errno set. The caller closes it with closedir().
[[nodiscard]] DIR* open_folder(const char* path) noexcept;

/// The whole contents of a file, for the small ones in /proc and /sys; empty when it can't be read.
/// Throws std::bad_alloc.
[[nodiscard]] std::string read_whole_file(const std::string& path);

}  // namespace perdure::base
