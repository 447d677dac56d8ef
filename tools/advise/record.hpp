// SPDX-License-Identifier: BSD-3-Clause
//
// Records a program's workload for `perdure advise`: runs the program with PERDURE_TRACE set and
// finds the traces that it left.
// Thread safety: single-threaded; it changes the signal handling of the process.
#pragma once

#include <string>
#include <vector>

namespace perdure::tool {

/// A folder for traces, removed with its contents.
class TraceFolder {
 public:
  TraceFolder();
  ~TraceFolder();
  TraceFolder(const TraceFolder&) = delete;
  TraceFolder& operator=(const TraceFolder&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// Runs the program to its end, with its standard output on our standard error. Returns the trace
/// with the most transactions among those that its processes and their pools have left. Ctrl-C goes
/// to the program. Throws perdure::error if it can't be started, failed or recorded nothing.
[[nodiscard]] std::string record(const std::vector<std::string>& program,
                                 const TraceFolder& folder);

}  // namespace perdure::tool
