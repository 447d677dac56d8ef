// SPDX-License-Identifier: BSD-3-Clause
//
// Exporter: writes a pool's rows as one stream of bytes.
//
// For a loaded pool: prologue, rows in order, epilogue, which are the source's own bytes. Rows put
// by hand stand where they were put: a new one after everything that existed then. A row that does
// not end its record (with a newline; in control files with an empty line after it) is completed
// when another row follows or when it was put by hand; of a source's rows only a last one without a
// newline can need it. For a pool without a load: CSV, `key,row`, quoted as RFC 4180 says where
// necessary. Not thread-safe.
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
  bool by_hand_ = false;         ///< whether the last row was put by hand
  std::string missing_;          ///< what the last row lacks to end its record
  std::string line_end_ = "\n";  ///< the line end of the source's first line
  bool line_end_known_ = false;
};

}  // namespace perdure::tool
