// SPDX-License-Identifier: BSD-3-Clause
//
// Spec: how a text file is cut into records and what each record's key is. It is chosen from the
// command line, the file's name and its first bytes, and stored in the pool as JSON, so that a
// resumed load cuts the file exactly as before. Values; thread-safe as such.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/base/status.hpp"

namespace perdure::tool {

enum class Format : std::uint8_t { tsv, csv, control };
[[nodiscard]] std::string_view name(Format format) noexcept;

/// What the user asked for; `resolve` chooses what is absent.
struct SpecOptions {
  std::string format = "auto";  ///< auto | tsv | csv | control
  /// One or several column names or numbers (from 1), or field names, separated by commas.
  std::optional<std::string> key = {};
  std::optional<std::string> delimiter = {};  ///< one character, or \t
  std::optional<std::string> quote = {};      ///< one character, or none
  std::optional<std::string> comment = {};    ///< lines that begin with this character are not rows
  std::optional<bool> header = {};            ///< the first row names the columns
  [[nodiscard]] bool empty() const noexcept {
    return format == "auto" && !key && !delimiter && !quote && !comment && !header;
  }
};

struct Spec {
  Format format = Format::tsv;
  char delimiter = '\t';
  char quote = '\0';    ///< '\0': no quoting
  char comment = '\0';  ///< '\0': no comment lines (control: always '#')
  bool header = false;
  /// Columns (names, or numbers from 1 in decimal) or field names.
  std::vector<std::string> key;
  /// Delimited: the key's columns from 0; known after the header was read.
  std::vector<std::size_t> columns;

  /// {"format":"csv",...}; the same spec always gives the same text.
  [[nodiscard]] std::string to_json() const;
  static Result<Spec> from_json(std::string_view text);
  /// For messages: `csv, delimiter ',', header, key 1`.
  [[nodiscard]] std::string describe() const;
  bool operator==(const Spec& o) const { return to_json() == o.to_json(); }
};

/// Chooses what was left open, from the file's name and its first bytes (about 64 KiB). `invalid`
/// names the option and its allowed values; `unsupported`: the file is compressed.
Result<Spec> resolve(const SpecOptions& options, std::string_view file,
                     std::string_view first_bytes);

/// The first field of a spec that differs from what the options ask, in words, or an empty string.
/// For a load that is resumed.
[[nodiscard]] std::string difference(const Spec& have, const SpecOptions& asked);

}  // namespace perdure::tool
