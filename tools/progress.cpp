// SPDX-License-Identifier: BSD-3-Clause
#include "tools/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/json.hpp"
#include "tools/text.hpp"

namespace perdure::tool {

Progress::Progress(const std::string& kind, std::uint64_t total_bytes, std::string unit)
    : unit_(std::move(unit)), total_(total_bytes) {
  kind_ = kind == "bar"     ? Kind::bar
          : kind == "plain" ? Kind::plain
          : kind == "json"  ? Kind::json
                            : Kind::none;
  if (kind == "auto") kind_ = ::isatty(STDERR_FILENO) == 1 ? Kind::bar : Kind::plain;
}

Progress::~Progress() {
  if (kind_ == Kind::bar && drawn_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::start(std::uint64_t rows, std::uint64_t position) {
  start_rows_ = rows;
  start_position_ = position;
  begun_ = last_ = Clock::now();
}

void Progress::durable(std::uint64_t rows, std::uint64_t position) {
  using std::chrono::milliseconds;
  if (kind_ == Kind::none) return;
  if (kind_ == Kind::json) {
    event("durable", {{unit_, rows}, {"position", position}});
    return;
  }
  const auto now = Clock::now();
  if (now - last_ < (kind_ == Kind::bar ? milliseconds(80) : milliseconds(5000))) return;
  last_ = now;
  draw(rows, position);
}

void Progress::draw(std::uint64_t rows, std::uint64_t position) {
  const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  const double done = total_ == 0 ? 1 : static_cast<double>(position) / static_cast<double>(total_);
  const double rate = seconds > 0 ? static_cast<double>(rows - start_rows_) / seconds : 0;
  const double speed = seconds > 0 ? static_cast<double>(position - start_position_) / seconds : 0;
  const double left = speed > 0 ? static_cast<double>(total_ - position) / speed : 0;
  const std::string text =
      fmt::format("{:5.1f} %  {} {} durable, {} {}/s, {:.0f} s left", 100 * done, grouped(rows),
                  unit_, grouped(static_cast<std::uint64_t>(rate)), unit_, left);
  drawn_ = true;
  if (kind_ == Kind::plain) {
    fmt::print(stderr, "perdure: {}\n", text);
    return;
  }
  winsize size = {};
  const std::size_t columns =
      ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  const std::size_t width =
      std::min<std::size_t>(40, columns > text.size() + 6 ? columns - text.size() - 6 : 0);
  const auto filled = static_cast<std::size_t>(done * static_cast<double>(width));
  const std::string bar =
      width < 5 ? "" : "[" + std::string(filled, '#') + std::string(width - filled, '.') + "] ";
  fmt::print(stderr, "\r{}{}\x1b[K", bar, text.substr(0, columns - 1));
  std::fflush(stderr);
}

void Progress::event(const std::string& name, Json details) {
  if (kind_ != Kind::json) return;
  Json line;
  line["event"] = name;
  line.update(details);
  line["time"] = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  write_all(STDERR_FILENO, json_text(line) + "\n", "standard error");
}

std::function<void(const RecoveryProgress&)> show_recovery(std::string path) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::seconds;
  return [path = std::move(path), terminal = ::isatty(STDERR_FILENO) == 1,
          next = Clock::now() + seconds(1), drawn = false](const RecoveryProgress& p) mutable {
    const bool reads = p.stage == RecoveryProgress::Stage::read;
    const bool over = !reads && p.done == p.total;
    if (over && drawn) fmt::print(stderr, "\r\x1b[K");
    if (over || Clock::now() < next) return;
    const std::string text =
        fmt::format("recovering {}: {} {} of {} of log", path, reads ? "read" : "applied",
                    human_bytes(p.done), human_bytes(p.total));
    if (!terminal) {
      fmt::print(stderr, "perdure: {}\n", text);
      next = Clock::now() + seconds(5);
      return;
    }
    drawn = true;
    fmt::print(stderr, "\r{}\x1b[K", text);
    std::fflush(stderr);
  };
}

}  // namespace perdure::tool
