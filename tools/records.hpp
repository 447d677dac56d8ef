// SPDX-License-Identifier: BSD-3-Clause
//
// RecordReader: cuts a text file into records without losing a byte.
//
// Invariant: prologue + the raw bytes of all records in order + epilogue == the file. The prologue
// is a byte order mark and the header row (with what precedes it); a record's raw bytes are its own
// lines with their line ends, the blank and comment lines before it and, in control files, the
// empty lines after it; the epilogue is the blank and comment lines that remain at the end. A
// reader started anew at a record's end (resume) yields exactly the records that the first one
// would have yielded. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/base/status.hpp"
#include "tools/source_file.hpp"
#include "tools/spec.hpp"

namespace perdure::tool {

struct Record {
  std::string_view raw;    ///< valid until the reader's next call
  std::string key;         ///< the key fields, unquoted; several are joined by join_key
  std::uint64_t line = 0;  ///< number, from 1, of the line where the record itself begins
};

/// One part is returned as it is. Several parts are joined by a space; a part that is empty,
/// contains a space or begins with a double quote is written in double quotes, with inner quotes
/// doubled, so that different keys never join to the same text.
[[nodiscard]] std::string join_key(const std::vector<std::string>& parts);

class RecordReader {
 public:
  RecordReader(SourceFile& file, Spec spec) : file_(file), spec_(std::move(spec)) {}

  /// Called at the file's first byte: reads the prologue and finds the key's columns in the header
  /// row.
  Status begin();
  /// Called at a record's end: `line` is the number of the line that begins there. The spec must
  /// have its columns.
  void resume(std::uint64_t position, std::uint64_t line);
  /// Reads the next record; returns false at the end, where epilogue() is known.
  Result<bool> next(Record& record);

  [[nodiscard]] const Spec& spec() const noexcept { return spec_; }
  [[nodiscard]] const std::string& prologue() const noexcept { return prologue_; }
  [[nodiscard]] const std::string& epilogue() const noexcept { return epilogue_; }
  /// The position of the first byte not yet yielded.
  [[nodiscard]] std::uint64_t position() const noexcept { return file_.position() + yielded_; }
  [[nodiscard]] std::uint64_t line() const noexcept { return line_; }

 private:
  [[nodiscard]] Status check_line_ends(std::size_t at);
  bool end_of_line(std::size_t from, std::size_t& end);
  [[nodiscard]] std::string_view line_text(std::size_t from, std::size_t end) const;
  bool skip_junk(std::size_t& at, std::uint64_t& line);
  Status read_row(std::size_t at, std::size_t& end, std::uint64_t& line, std::size_t wanted);
  Status read_field(std::size_t& at, std::string& field, std::uint64_t& line);
  Status read_stanza(std::size_t at, std::size_t& end, std::uint64_t& line);
  Status take_line(std::string_view text, std::uint64_t line, std::size_t& field);
  Status key_of_row(Record& record) const;
  Status key_of_stanza(Record& record) const;
  Status find_columns();
  [[nodiscard]] Status bad(std::uint64_t line, std::string_view found, std::string_view expected,
                           std::string_view advice = {}) const;

  SourceFile& file_;
  Spec spec_;
  std::string prologue_, epilogue_;
  std::size_t yielded_ = 0;  ///< bytes at the start of the window that the last record covers
  std::uint64_t line_ = 1;
  bool ended_ = false;
  /// Delimited: the row's columns; control: the key fields' values.
  std::vector<std::string> fields_;
  std::vector<bool> present_;  ///< control: which key fields the stanza has
};

}  // namespace perdure::tool
