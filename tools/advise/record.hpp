// SPDX-License-Identifier: BSD-3-Clause
//
// Recording a program's workload for `perdure advise`: runs it with PERDURE_TRACE set and finds
// what it left.
// Thread safety: single-threaded; its signals are the process's.
#pragma once

#include <string>
#include <vector>

namespace perdure::tool {

/// A folder for traces, removed with what is in it.
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

/// Runs the program to its end, its standard output on our standard error; the trace with the most
/// transactions of those that its processes and their pools have left. Ctrl-C is the program's.
/// Throws perdure::error: it can't be started, it failed, it recorded nothing.
[[nodiscard]] std::string record(const std::vector<std::string>& program,
                                 const TraceFolder& folder);

}  // namespace perdure::tool
