// SPDX-License-Identifier: BSD-3-Clause
#include "tools/spec.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>

namespace perdure::tool {
namespace {

using std::string;
using std::string_view;

std::vector<string> split_commas(string_view text) {
  std::vector<string> parts;
  for (std::size_t at = 0;;) {
    const auto comma = text.find(',', at);
    parts.emplace_back(text.substr(at, comma == string_view::npos ? comma : comma - at));
    if (comma == string_view::npos) return parts;
    at = comma + 1;
  }
}

bool is_number(string_view text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The first line that is neither empty nor a comment.
string_view first_line(string_view text, char comment) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  while (!text.empty()) {
    const auto end = text.find('\n');
    string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty() && (comment == '\0' || line.front() != comment)) return line;
    if (end == string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return {};
}

// "Field-Name: value", "Field-Name:"
bool looks_like_control(string_view line) {
  std::size_t n = 0;
  while (n < line.size() && (std::isalnum(static_cast<unsigned char>(line[n])) != 0 ||
                             line[n] == '-' || line[n] == '_'))
    ++n;
  return n > 0 && n < line.size() && line[n] == ':' &&
         (n + 1 == line.size() || line[n + 1] == ' ' || line[n + 1] == '\t');
}

string_view extension(string_view file) {
  const auto slash = file.rfind('/');
  if (slash != string_view::npos) file.remove_prefix(slash + 1);
  const auto dot = file.rfind('.');
  return dot == string_view::npos ? file : file.substr(dot);
}

Format guess_format(string_view file, string_view line) {
  const string_view end = extension(file);
  if (end == ".csv" || end == ".CSV") return Format::csv;
  if (end == ".tsv" || end == ".tab" || end == ".TSV") return Format::tsv;
  if (looks_like_control(line)) return Format::control;
  if (line.find('\t') != string_view::npos) return Format::tsv;
  return line.find_first_of(",;|") != string_view::npos ? Format::csv : Format::tsv;
}

char guess_delimiter(string_view line) {
  for (const char c : {',', ';', '|', '\t'}) {
    if (line.find(c) != string_view::npos) return c;
  }
  return ',';
}

Result<char> one_character(string_view option, const string& text, bool may_be_none) {
  if (text == "\\t" || text == "tab") return '\t';
  if (may_be_none && text == "none") return '\0';
  if (text.size() == 1 && text != "\n" && text != "\r") return text[0];
  return failure(Code::invalid, "", string(option) + " '" + text + "'",
                 may_be_none ? "one character (a single byte), tab, or none"
                             : "one character (a single byte), or tab");
}

string_view compression(string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("\x1f\x8b"sv)) return "gzip";
  if (bytes.starts_with("\xfd"
                        "7zXZ"sv))
    return "xz";
  if (bytes.starts_with("\x04\x22\x4d\x18"sv)) return "lz4";
  if (bytes.starts_with("\x28\xb5\x2f\xfd"sv)) return "zstd";
  if (bytes.starts_with("BZh"sv)) return "bzip2";
  return {};
}

string shown(char c) { return c == '\t' ? "tab" : c == '\0' ? "none" : string("'") + c + "'"; }

string joined(const std::vector<string>& parts) {
  string text;
  for (const auto& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

}  // namespace

string_view name(Format format) noexcept {
  switch (format) {
    case Format::tsv: return "tsv";
    case Format::csv: return "csv";
    case Format::control: return "control";
  }
  return "?";
}

string Spec::to_json() const {
  nlohmann::ordered_json j;
  j["format"] = name(format);
  if (format != Format::control) {
    j["delimiter"] = static_cast<unsigned>(static_cast<unsigned char>(delimiter));
    j["quote"] = static_cast<unsigned>(static_cast<unsigned char>(quote));
    j["comment"] = static_cast<unsigned>(static_cast<unsigned char>(comment));
    j["header"] = header;
    j["columns"] = columns;
  }
  j["key"] = key;
  return j.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

Result<Spec> Spec::from_json(string_view text) {
  const auto j = nlohmann::json::parse(text, nullptr, false);
  try {
    Spec s;
    const string format = j.at("format");
    s.format = format == "csv" ? Format::csv : format == "control" ? Format::control : Format::tsv;
    j.at("key").get_to(s.key);
    if (s.format != Format::control) {
      s.delimiter = static_cast<char>(j.at("delimiter").get<unsigned>());
      s.quote = static_cast<char>(j.at("quote").get<unsigned>());
      s.comment = static_cast<char>(j.at("comment").get<unsigned>());
      s.header = j.at("header");
      j.at("columns").get_to(s.columns);
    }
    return s;
  } catch (const nlohmann::json::exception&) {
    return failure(Code::corrupt, "",
                   "a description of the source that can't be read: " + string(text.substr(0, 80)),
                   "JSON with format and key");
  }
}

string Spec::describe() const {
  string text(name(format));
  if (format != Format::control) {
    text += ", delimiter " + shown(delimiter) + ", quote " + shown(quote) +
            (header ? ", with a header row" : ", no header row");
    if (comment != '\0') text += ", comment " + shown(comment);
  }
  return text + ", key " + joined(key);
}

Result<Spec> resolve(const SpecOptions& options, string_view file, string_view first_bytes) {
  Spec s;
  if (const auto packed = compression(first_bytes); !packed.empty()) {
    return failure(Code::unsupported, file, "a file compressed with " + string(packed),
                   "plain text", "decompress it first");
  }
  if (options.comment) {
    auto c = one_character("--comment", *options.comment, true);
    if (!c) return c.status();
    s.comment = *c;
  }
  const string_view line = first_line(first_bytes, s.comment);
  if (options.format == "auto")
    s.format = guess_format(file, s.comment == '\0' ? first_line(first_bytes, '#') : line);
  else if (options.format == "tsv")
    s.format = Format::tsv;
  else if (options.format == "csv")
    s.format = Format::csv;
  else if (options.format == "control")
    s.format = Format::control;
  else
    return failure(Code::invalid, "", "--format " + options.format, "auto, tsv, csv or control");

  if (options.key) {
    s.key = split_commas(*options.key);
    if (std::any_of(s.key.begin(), s.key.end(), [](const string& k) { return k.empty(); })) {
      return failure(Code::invalid, "", "--key '" + *options.key + "'",
                     "names or numbers separated by commas, none of them empty");
    }
  } else {
    s.key = s.format == Format::control ? std::vector<string>{"Package", "Version", "Architecture"}
                                        : std::vector<string>{"1"};
  }
  if (s.format == Format::control) {
    if (options.delimiter || options.quote || options.header || options.comment) {
      return failure(
          Code::invalid, "", "--delimiter, --quote, --comment or --header with format control",
          "none of them", "say --format csv or --format tsv if this is not a Debian control file");
    }
    return s;
  }

  s.delimiter = s.format == Format::tsv ? '\t' : guess_delimiter(line);
  s.quote = s.format == Format::tsv ? '\0' : '"';
  if (options.delimiter) {
    auto c = one_character("--delimiter", *options.delimiter, false);
    if (!c) return c.status();
    s.delimiter = *c;
  }
  if (options.quote) {
    auto c = one_character("--quote", *options.quote, true);
    if (!c) return c.status();
    s.quote = *c;
  }
  if (s.quote == s.delimiter)
    return failure(Code::invalid, "", "the same character as --delimiter and --quote",
                   "two different ones");
  const bool by_name =
      !std::all_of(s.key.begin(), s.key.end(), [](const string& k) { return is_number(k); });
  s.header = options.header.value_or(by_name);
  if (by_name && !s.header) {
    return failure(Code::invalid, "", "--key " + joined(s.key) + " with --no-header",
                   "column numbers, from 1", "name columns only where a header row does");
  }
  if (!s.header) {
    for (const auto& k : s.key) {
      std::size_t number = 0;
      std::from_chars(k.data(), k.data() + k.size(), number);
      if (number == 0) return failure(Code::invalid, "", "--key 0", "a column number, from 1");
      s.columns.push_back(number - 1);
    }
  }
  return s;
}

string difference(const Spec& have, const SpecOptions& asked) {
  const auto differs = [](string_view what, const string& found, const string& expected) {
    return string(what) + " " + found + ", expected " + expected;
  };
  if (asked.format != "auto" && asked.format != name(have.format))
    return differs("--format", asked.format, string(name(have.format)));
  if (asked.key && split_commas(*asked.key) != have.key)
    return differs("--key", *asked.key, joined(have.key));
  if (have.format == Format::control) return {};
  if (asked.header && *asked.header != have.header)
    return differs("a header row:", *asked.header ? "yes" : "no", have.header ? "yes" : "no");
  const auto character = [&](string_view what, const std::optional<string>& text,
                             char c) -> string {
    if (!text) return {};
    const auto parsed = one_character(what, *text, true);
    return parsed && *parsed == c ? string() : differs(what, *text, shown(c));
  };
  string text = character("--delimiter", asked.delimiter, have.delimiter);
  if (text.empty()) text = character("--quote", asked.quote, have.quote);
  return text.empty() ? character("--comment", asked.comment, have.comment) : text;
}

}  // namespace perdure::tool
