// SPDX-License-Identifier: BSD-3-Clause
//
// Opens files, pipes and memory files so that no descriptor of the library is ever 0, 1 or 2, or
// survives an exec.
//
// A program may run with its standard descriptors closed. The kernel gives the lowest free number,
// so a plain open() would make a pool the program's standard output, and the next printf would
// overwrite the pool's header. Every descriptor of the library, of SQLite's file system and of the
// tools comes from here; the test `layering` refuses the raw calls elsewhere.
// Invariant FD-1: at no instant is a number below 3 open on something that a write could change.
// While the real descriptor is opened, the standard numbers that are closed are occupied by
// descriptors that can be neither read nor written (O_PATH); they are closed again afterwards.
// Thread safety: all functions may be called from any thread.
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include <string>

namespace perdure::base {

/// Like open(): the descriptor is 3 or higher and is closed on exec. Returns -1 with errno set as
/// open() or F_DUPFD_CLOEXEC sets it.
[[nodiscard]] int open_file(const char* path, int flags, mode_t mode = 0) noexcept;
/// Like shm_open(), with the same guarantees.
[[nodiscard]] int open_shared_memory(const char* name, int flags, mode_t mode = 0) noexcept;
/// Like memfd_create(), with the same guarantees.
[[nodiscard]] int open_memory_file(const char* name) noexcept;
/// Like pipe2(), with the same guarantees. Returns 0, or -1 with errno set and nothing open. The
/// caller reads from ends[0] and writes to ends[1].
[[nodiscard]] int open_pipe(int (&ends)[2]) noexcept;
/// Like inotify_init1(IN_NONBLOCK), with the same guarantees.
[[nodiscard]] int open_inotify() noexcept;
/// Like opendir(), with the same guarantees. Returns null with errno set. The caller closes it with
/// closedir().
[[nodiscard]] DIR* open_folder(const char* path) noexcept;

/// Returns the whole contents of a file, meant for the small ones in /proc and /sys. The result is
/// empty if the file can't be read. Throws std::bad_alloc.
[[nodiscard]] std::string read_whole_file(const std::string& path);

}  // namespace perdure::base
