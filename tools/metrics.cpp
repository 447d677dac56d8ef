// SPDX-License-Identifier: BSD-3-Clause
#include "tools/metrics.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "tools/output_file.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    result += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return result + '"';
}

}  // namespace

Metrics::Metrics(std::string_view label, std::string_view value)
    : label_(std::string(label) + "=" + quoted(value)) {}

void Metrics::head(std::string_view name, std::string_view help, std::string_view type) {
  text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

void Metrics::line(std::string_view name, std::string_view label, std::string_view state,
                   double value) {
  const std::string more = label.empty() ? "" : fmt::format(",{}={}", label, quoted(state));
  text_ += fmt::format("{}{{{}{}}} {:.17g}\n", name, label_, more, value);
}

void Metrics::counter(std::string_view name, std::string_view help, double value) {
  head(name, help, "counter");
  line(name, {}, {}, value);
}

void Metrics::gauge(std::string_view name, std::string_view help, double value) {
  head(name, help, "gauge");
  line(name, {}, {}, value);
}

void Metrics::write_to(const std::string& path) const {
  if (path == "-") return write_all(STDOUT_FILENO, text_, "standard output");
  OutputFile file(path, {});
  file.write(text_);
  file.finish();
}

}  // namespace perdure::tool
