// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure follow POOL`: prints the events that a pool's transactions emit, as they become durable;
// also of a pool that a program has open, and of an archive alone.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>

#include "perdure/backup/events.hpp"
#include "perdure/base/thread_slot.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

struct Arguments {
  std::string path, from = "now";
  EventOptions events;
  std::uint64_t limit = 0;
  double wait = -1;
} arguments;

// now, start, ID, or ID.ORDINAL: behind that.
std::optional<EventPosition> position_of(const std::string& text) {
  if (text == "now") return std::nullopt;
  if (text == "start") return EventPosition::start();
  EventPosition at;
  const char* const end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, at.id);
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '.')
    read = std::from_chars(read.ptr + 1, end, at.ordinal);
  if (read.ec != std::errc() || read.ptr != end)
    throw UsageError("found --from " + text +
                     ", expected now, start, an id, or an id and an event's number in it (17.0)");
  return at;
}

bool is_folder(const std::string& path) {
  struct stat st = {};
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

void print(const App& app, const Event& event) {
  std::string line;
  if (app.json) {
    Json j;
    j["id"] = event.position.id;
    j["ordinal"] = event.position.ordinal;
    j["unix_ns"] = event.unix_ns;
    set_bytes(j, "topic", event.topic);
    j["schema"] = event.schema;
    set_bytes(j, "event", event.bytes);
    line = j.dump(-1);
  } else {
    line = fmt::format("{}.{}\t{}\t{}", event.position.id, event.position.ordinal,
                       escaped(event.topic), escaped(event.bytes));
  }
  // Each at once: others wait for it.
  write_all(STDOUT_FILENO, line + "\n", "standard output");
}

int run(App& app) {
  base::ensure_thread_slot().or_throw();
  using namespace std::chrono;
  EventOptions options = arguments.events;
  options.after = position_of(arguments.from);
  const bool folder = is_folder(arguments.path);
  if (folder) options.archive = arguments.path;
  EventStream stream =
      folder ? open_archived_events(options) : open_events(arguments.path, options);
  const auto idle = arguments.wait < 0
                        ? hours(24 * 365)
                        : duration_cast<milliseconds>(duration<double>(arguments.wait));
  std::uint64_t count = 0;
  for (Event event; arguments.limit == 0 || count < arguments.limit; ++count) {
    if (!stream.next(event, duration_cast<milliseconds>(idle))) break;
    print(app, event);
    if (!options.consumer.empty()) stream.acknowledge();
  }
  return exit_ok;
}

}  // namespace

void add_follow(App& app) {
  auto sub = app.add("follow", "print the events that transactions emit, as they become durable",
                     "perdure follow shop.perdure --topic 'orders/*' --json");
  sub.option("POOL", arguments.path, "the pool file, or the folder of its archive").required();
  sub.option("--archive", arguments.events.archive,
             "the folder of the pool's archive, for events that the log does not have any more");
  sub.option("--topic", arguments.events.topic, "only of this topic; 'orders/*': of all below it");
  sub.option("--from", arguments.from,
             "now, start, or behind what was seen last: an id, or an id and a number in it (17.0)")
      .show_default();
  sub.option(
      "--consumer", arguments.events.consumer,
      "a name under which the archive keeps how far this command has come: it goes on there");
  sub.option("--limit", arguments.limit, "end after so many events (0: never)").show_default();
  sub.option("--wait", arguments.wait, "end when no event has come for so many seconds (-1: never)")
      .show_default();
  sub.runs(run);
}

}  // namespace perdure::tool
