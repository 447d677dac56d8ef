// SPDX-License-Identifier: BSD-3-Clause
//
// The golden traces: what each engine asks of a medium, event by event, while a fixed program runs,
// while its pool is closed, and while 20 images of it are recovered. traces.txt keeps the counts
// and a hash of each; the whole text of a trace can be written to a folder, to see what changed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "testing/recording_medium.hpp"

namespace perdure::golden {

/// A trace as text, one event a line: kind, offset, bytes, thread, and of what is stored outside
/// the header a hash of the bytes. Threads are numbered in the order in which they appear.
[[nodiscard]] std::string text_of(const std::vector<medium::Event>& events);

/// One line of traces.txt: how many events of each kind `text` has, and a hash of all of it.
[[nodiscard]] std::string summary_of(const std::string& text);

/// The file traces.txt: "ENGINE WAY PHASE: SUMMARY".
class TraceFile {
 public:
  explicit TraceFile(std::string path);
  /// The summary that is kept for a name, or "" where there is none.
  [[nodiscard]] std::string kept(const std::string& name) const;
  /// Keeps a summary, in memory until save().
  void keep(const std::string& name, const std::string& summary) { lines_[name] = summary; }
  void save() const;

 private:
  std::string path_;
  std::map<std::string, std::string> lines_;
};

}  // namespace perdure::golden
