// SPDX-License-Identifier: BSD-3-Clause
//
// Opening a pool, the part that needs no types: choose the instance, open the file, recover, start
// the session.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "perdure/api/options.hpp"
#include "perdure/engine/entry.hpp"
#include "perdure/pool/pool_file.hpp"

namespace perdure::detail {

struct Opened {
  std::unique_ptr<pool::PoolFile> file;
  std::size_t index = 0;  ///< of the entry chosen
  engine::Config config;
  engine::Recovery recovery;
};

struct RootType;  // layout.hpp

/// Steps of an opening; until recovery nothing is written to a pool that exists. `medium`: use this
/// one instead of opening the path (tests); `fresh` formats it. What fails leaves no new file; what
/// has been opened stays, unless the
/// caller says drop_unless_kept() because it has steps of its own that may fail.
Result<Opened> open_pool(const std::string& path, const Options& options,
                         std::span<const engine::Entry> candidates, const RootType& root,
                         std::unique_ptr<medium::Medium> medium = nullptr, bool fresh = false);

/// In a handler: what the exception in flight says of an opening. One that is not the library's
/// passes.
Status opening_failed(const std::string& path);

/// Runs callbacks when ids become durable, on a thread that is started at the first use.
class Completions {
 public:
  explicit Completions(std::function<Status(std::uint64_t)> wait);
  ~Completions();  ///< resolves what is left with what wait() says
  /// Throws error(too_many_threads) where no thread can be started: then f is not called.
  void add(std::uint64_t id, std::function<void(Status)> f);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The heap's part of check(): audits bitmaps and directory of `bytes` (home), compares with
/// `owned` (home offsets of the blocks that containers own).
CheckReport compare_heap(const pool::PoolFile& file, const std::byte* home,
                         std::vector<std::uint64_t> owned, bool walked);

}  // namespace perdure::detail
