// SPDX-License-Identifier: BSD-3-Clause
#include "tools/advise/picture.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/json.hpp"
#include "tools/output_file.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

// Lengths in pixels. Within a panel, names are at the left, bars beside them and the axis below.
constexpr double panel_width = 560, names_width = 190, bars_width = 340, row_height = 20,
                 bar_height = 14, top = 44, bottom = 58;
constexpr const char *advised = "#228833", *durable = "#4477aa", *not_durable = "#bbbbbb";

struct Bar {
  std::string engine;
  const char* colour;
  double rate, slowest, fastest;  // thousand transactions per second
};
struct Panel {
  std::string title;
  std::vector<Bar> bars;
};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

/// The distance of the axis's marks: 1, 2 or 5 times a power of ten, such that at most six fit up
/// to `end`.
double step_of(double end) {
  const double power = std::pow(10, std::floor(std::log10(end / 6)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power * 6 >= end) return factor * power;
  return 10 * power;
}

std::vector<Panel> panels_of(const Json& document) {
  std::vector<Panel> panels;
  std::vector<std::string> modes;
  for (const Json& cell : document["cells"]) {
    if (cell.contains("error")) continue;
    const std::string mode = cell["mode"];
    const auto at =
        static_cast<std::size_t>(std::find(modes.begin(), modes.end(), mode) - modes.begin());
    if (at == modes.size()) {
      modes.push_back(mode);
      panels.push_back({mode + ", medium " + document["replay"]["medium"].get<std::string>(), {}});
    }
    Bar bar{cell["engine"], cell["durable"].get<bool>() ? durable : not_durable,
            cell["per_second"].get<double>() / 1000, 0, 0};
    const Json advice = document["advice"].value(mode, Json::object());
    if (advice.is_object() && advice.contains("engine") && advice["engine"] == bar.engine)
      bar.colour = advised;
    bar.slowest = bar.fastest = bar.rate;
    for (const Json& round : cell["rounds"])
      if (round.is_number() && round.get<double>() > 0) {
        bar.slowest = std::min(bar.slowest, round.get<double>() / 1000);
        bar.fastest = std::max(bar.fastest, round.get<double>() / 1000);
      }
    panels[at].bars.push_back(std::move(bar));
  }
  return panels;
}

void draw(std::string& svg, const Panel& panel, double left) {
  double end = 0;
  for (const Bar& bar : panel.bars) end = std::max(end, bar.fastest);
  if (end <= 0) end = 1;
  const double zero = left + names_width, scale = bars_width / end;
  const double base = top + row_height * static_cast<double>(panel.bars.size());
  const auto out = std::back_inserter(svg);
  fmt::format_to(out, "<g>\n<text class=\"title\" x=\"{:.1f}\" y=\"24\">{}</text>\n", zero,
                 escaped(panel.title));
  const double step = step_of(end);
  for (int i = 0; i * step <= end; ++i) {
    const double x = zero + i * step * scale;
    fmt::format_to(out,
                   "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>\n",
                   x, top, base);
    fmt::format_to(out, "<text class=\"mark\" x=\"{:.1f}\" y=\"{:.1f}\">{:g}</text>\n", x,
                   base + 16, i * step);
  }
  double y = top;
  for (const Bar& bar : panel.bars) {
    const double middle = y + row_height / 2, slowest = zero + bar.slowest * scale,
                 fastest = zero + bar.fastest * scale;
    fmt::format_to(out, "<text class=\"name\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", zero - 6,
                   middle + 4, escaped(bar.engine));
    fmt::format_to(
        out,
        "<rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\">",
        zero, middle - bar_height / 2, bar.rate * scale, bar_height, bar.colour);
    fmt::format_to(
        out, "<title>{}: {:.1f} thousand transactions/s, rounds {:.1f} to {:.1f}</title></rect>\n",
        escaped(bar.engine), bar.rate, bar.slowest, bar.fastest);
    fmt::format_to(out,
                   "<path class=\"whisker\" d=\"M{0:.1f} {2:.1f}H{1:.1f}M{0:.1f} {3:.1f}v6M{1:.1f} "
                   "{3:.1f}v6\"/>\n",
                   slowest, fastest, middle, middle - 3);
    y += row_height;
  }
  fmt::format_to(out,
                 "<text class=\"axis\" x=\"{:.1f}\" y=\"{:.1f}\">thousand transactions/s (green: "
                 "advised; grey: not durable)</text>\n</g>\n",
                 zero, base + 38);
}

}  // namespace

void check_picture(const std::string& path) {
  if (!path.ends_with(".svg"))
    throw error(failure(Code::invalid, path, "a picture's name that does not end in .svg",
                        "one that does: pictures are written as SVG"));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
    throw error(system_failure(path, "the picture's folder", errno));
}

std::string picture_of(const Json& document) {
  const std::vector<Panel> panels = panels_of(document);
  std::size_t rows = 1;
  for (const Panel& panel : panels) rows = std::max(rows, panel.bars.size());
  const double width = panel_width * static_cast<double>(std::max<std::size_t>(1, panels.size()));
  const double height = top + row_height * static_cast<double>(rows) + bottom;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" role=\"img\">\n"
      "<title>perdure advise: throughput of each engine</title>\n"
      "<style>text {{ font: 12px sans-serif; fill: #222 }} .title {{ font-size: 14px }} .name {{ "
      "text-anchor: end }} "
      ".mark {{ text-anchor: middle }} .grid {{ stroke: #ddd }} .whisker {{ stroke: #333; fill: "
      "none }}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height);
  double left = 0;
  for (const Panel& panel : panels) {
    draw(svg, panel, left);
    left += panel_width;
  }
  return svg + "</svg>\n";
}

void draw_picture(const Json& document, const std::string& path) {
  OutputFile file(path, "");
  file.write(picture_of(document));
  file.finish();
}

}  // namespace perdure::tool
