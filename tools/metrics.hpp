// SPDX-License-Identifier: BSD-3-Clause
//
// Metrics: numbers in the text format that Prometheus reads, for a file that its node exporter
// collects (--collector.textfile.directory), or any other agent.
// Thread safety: single-threaded.
#pragma once

#include <string>
#include <string_view>

namespace perdure::tool {

class Metrics {
 public:
  /// Every number gets the label name="value", with what the format escapes.
  Metrics(std::string_view label, std::string_view value);

  /// A number that only rises while a program runs; `name` ends with _total.
  void counter(std::string_view name, std::string_view help, double value);
  void gauge(std::string_view name, std::string_view help, double value);
  /// A gauge for each of the states: 1 for the one that is `now`, otherwise 0. `label` names them.
  template <class States>
  void states(std::string_view name, std::string_view help, std::string_view label,
              const States& all, std::string_view now) {
    head(name, help, "gauge");
    for (const std::string_view state : all) line(name, label, state, state == now ? 1 : 0);
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// Writes the text: the file is whole at any time. "-": standard output. Throws perdure::error.
  void write_to(const std::string& path) const;

 private:
  void head(std::string_view name, std::string_view help, std::string_view type);
  void line(std::string_view name, std::string_view label, std::string_view state, double value);
  std::string label_, text_;
};

}  // namespace perdure::tool
