// SPDX-License-Identifier: BSD-3-Clause
//
// Exporter: a pool's rows as one stream of bytes.
//
// Of a loaded pool: prologue, rows in order, epilogue: the source's own bytes. Rows put by hand
// stand where they were put: a new one behind all that was there. A row that does not end its
// record (a newline; in control files an empty line behind it) is completed when another row
// follows or when it was put by hand; a source's rows never need it, but for a last one without a
// newline. Of a pool that nothing was loaded into: CSV, `key,row`, quoted as RFC 4180 where need
// be. Not thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tools/spec.hpp"
#include "tools/store_pool.hpp"

namespace perdure::tool {

class Exporter {
 public:
  using Sink = std::function<void(std::string_view)>;
  Exporter(const SourceState& source, Sink sink);

  void row(const StoredRow& row);
  void end();

 private:
  void write(std::string_view bytes);
  void text(std::string_view bytes, bool by_hand);

  SourceState source_;
  Sink sink_;
  bool control_ = false;
  bool by_hand_ = false;         ///< the last row was
  std::string missing_;          ///< what the last row lacks to end its record
  std::string line_end_ = "\n";  ///< as the source's first line has it
  bool line_end_known_ = false;
};

}  // namespace perdure::tool
