// SPDX-License-Identifier: BSD-3-Clause
#include "tools/exporter.hpp"

#include <utility>

namespace perdure::tool {
namespace {

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos && !text.empty())
    return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

// Whether the last line of `bytes` (which end in a newline) is empty or white space.
bool ends_in_blank_line(std::string_view bytes) {
  bytes.remove_suffix(1);
  const auto newline = bytes.rfind('\n');
  const auto last = newline == std::string_view::npos ? bytes : bytes.substr(newline + 1);
  return last.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

Exporter::Exporter(const SourceState& source, Sink sink) : source_(source), sink_(std::move(sink)) {
  if (!source_.begun) return;
  control_ = Spec::from_json(source_.spec).value().format == Format::control;
  if (source_.prologue != "\xef\xbb\xbf")
    text(source_.prologue, false);  // a lone byte order mark is the start of the first row's line
  else
    write(source_.prologue);
}

void Exporter::write(std::string_view bytes) {
  if (bytes.empty()) return;
  if (const auto newline = bytes.find('\n');
      !line_end_known_ && newline != std::string_view::npos) {
    line_end_known_ = true;
    if (newline > 0 && bytes[newline - 1] == '\r') line_end_ = "\r\n";
  }
  sink_(bytes);
}

void Exporter::text(std::string_view bytes, bool by_hand) {
  if (bytes.empty() && !by_hand) return;
  write(std::exchange(missing_, {}));
  write(bytes);
  by_hand_ = by_hand;
  if (!bytes.ends_with('\n'))
    missing_ = control_ ? line_end_ + line_end_ : line_end_;
  else if (control_ && !ends_in_blank_line(bytes))
    missing_ = line_end_;
}

void Exporter::row(const StoredRow& row) {
  if (source_.begun)
    text(row.bytes, row.by_hand());
  else
    write(csv_field(row.key) + "," + csv_field(row.bytes) + "\n");
}

void Exporter::end() {
  if (by_hand_) write(std::exchange(missing_, {}));
  write(source_.epilogue);
}

}  // namespace perdure::tool
