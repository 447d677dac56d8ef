// SPDX-License-Identifier: BSD-3-Clause
#include "tests/golden/trace.hpp"

#include <fstream>
#include <sstream>

#include "perdure/base/checksum.hpp"
#include "perdure/pool/format.hpp"

namespace perdure::golden {

std::string text_of(const std::vector<medium::Event>& events) {
  std::map<int, std::size_t> threads;
  std::ostringstream out;
  for (const medium::Event& e : events) {
    const std::size_t thread = threads.try_emplace(e.thread, threads.size()).first->second;
    out << medium::name(e.kind) << ' ' << e.offset << ' ' << e.bytes << " thread " << thread;
    // The header says when the pool was made, and has a checksum over that.
    if (!e.data.empty() && e.offset >= pool::first_ring)
      out << " data " << std::hex << base::hash_bytes(e.data.data(), e.data.size(), 0) << std::dec;
    out << '\n';
  }
  return out.str();
}

std::string summary_of(const std::string& text) {
  std::map<std::string, std::size_t> counts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) ++counts[line.substr(0, line.find(' '))];
  std::ostringstream out;
  for (const auto& [kind, count] : counts) out << kind << ' ' << count << ", ";
  out << "hash " << std::hex << base::hash_bytes(text.data(), text.size(), 0);
  return out.str();
}

TraceFile::TraceFile(std::string path) : path_(std::move(path)) {
  std::ifstream in(path_);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("#") && colon != std::string::npos)
      lines_[line.substr(0, colon)] = line.substr(colon + 2);
  }
}

std::string TraceFile::kept(const std::string& name) const {
  const auto found = lines_.find(name);
  return found == lines_.end() ? "" : found->second;
}

void TraceFile::save() const {
  std::ofstream out(path_);
  out << "# Written by golden_traces_test with PERDURE_GOLDEN=keep; see docs/testing.md.\n";
  for (const auto& [name, summary] : lines_) out << name << ": " << summary << '\n';
}

}  // namespace perdure::golden
