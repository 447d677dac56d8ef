// SPDX-License-Identifier: BSD-3-Clause
//
// The golden traces: each engine's calls to its medium, event by event, while a fixed program runs,
// while its pool is closed, and while 20 images of it are recovered. traces.txt has the counts and
// a hash of each trace; the whole text of a trace can be written to a folder, to see what has
// changed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "testing/recording_medium.hpp"

namespace perdure::golden {

/// A trace as text, one event per line: kind, offset, bytes, thread, and a hash of the bytes that
/// are stored outside the header. Threads are numbered in the order in which they appear.
[[nodiscard]] std::string text_of(const std::vector<medium::Event>& events);

/// One line of traces.txt: the number of events of each kind in `text`, and a hash of the whole
/// text.
[[nodiscard]] std::string summary_of(const std::string& text);

/// The file traces.txt: "ENGINE WAY PHASE: SUMMARY".
class TraceFile {
 public:
  explicit TraceFile(std::string path);
  /// The stored summary of a name, or "" if there is none.
  [[nodiscard]] std::string kept(const std::string& name) const;
  /// Stores a summary, in memory until save().
  void keep(const std::string& name, const std::string& summary) { lines_[name] = summary; }
  void save() const;

 private:
  std::string path_;
  std::map<std::string, std::string> lines_;
};

}  // namespace perdure::golden
