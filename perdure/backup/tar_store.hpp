// SPDX-License-Identifier: BSD-3-Clause
//
// TarStore: a backup as one stream of bytes, a tar archive (POSIX ustar), so that a shell's pipe
// can carry it anywhere. What it writes, `tar x` makes a folder of; and unpack() does.
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "perdure/backup/store.hpp"
#include "perdure/base/status.hpp"

namespace perdure::backup {

/// A store that writes each object to the descriptor, which stays the caller's. It can be written
/// only, and has nothing in it at first. finish() writes the stream's end.
class TarStore : public Store {
 public:
  [[nodiscard]] static std::shared_ptr<TarStore> on(int fd);
  virtual Status finish() = 0;
};

/// Reads such a stream from a descriptor up to its end into a store. `corrupt` for what is none, or
/// is cut off.
Status unpack(int fd, Store& store);

}  // namespace perdure::backup
