// SPDX-License-Identifier: BSD-3-Clause
#include "tools/command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "perdure/engine/any.hpp"
#include "perdure/engine/stat_page.hpp"

namespace perdure::tool {
namespace {

std::vector<std::string> durable_engines() {
  std::vector<std::string> names;
  for (const engine::Entry& e : engine::registered())
    if (e.name == e.family && e.family != "volatile") names.emplace_back(e.name);
  return names;
}

}  // namespace

CLI::App* App::add(CLI::App* parent, const std::string& name, const std::string& what,
                   const std::string& example) {
  CLI::App* sub = parent->add_subcommand(name, what);
  sub->add_flag("--json", json, "print one JSON document");
  sub->footer(
      "Example:\n  " + example +
      "\n\nExit status: 0 done, 1 the answer is no or a problem was found, 2 usage, 3 error.");
  return sub;
}

void App::print(const Json& document) {
  write_all(STDOUT_FILENO,
            document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
            "standard output");
}

void PoolArguments::add_to(CLI::App* sub) {
  sub->add_option("POOL", path, "the pool file")->required();
  sub->add_option("--medium", medium, "auto, file, dax or emulated")
      ->check(CLI::IsMember({"auto", "file", "dax", "emulated"}))
      ->capture_default_str();
  sub->add_flag("--no-direct", no_direct, "do not write the log with O_DIRECT (medium file)");
}

void PoolArguments::add_creation_to(CLI::App* sub, const std::string& log) {
  sub->add_option("--engine", engine, "engine of a pool that is created (default: shadow)")
      ->check(CLI::IsMember(durable_engines()));
  sub->add_option("--max-size", max_size,
                  "largest size of a pool that is created, e.g. 8GiB (address space, not disk)")
      ->transform(CLI::AsSizeValue(false));
  sub->add_option("--log-size", log_size, "size of the log of a pool that is created (" + log + ")")
      ->transform(CLI::AsSizeValue(false));
}

void set_bytes(Json& document, const std::string& name, std::string_view bytes) {
  Json text = std::string(bytes);
  try {
    (void)text.dump();  // throws for what is not UTF-8
    document[name] = std::move(text);
  } catch (const nlohmann::json::exception&) {
    std::string hex;
    for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
    document[name + "_hex"] = hex;
  }
}

std::string escaped(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    switch (c) {
      case '\\': text += "\\\\"; break;
      case '\t': text += "\\t"; break;
      case '\n': text += "\\n"; break;
      case '\r': text += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else
          text += c;
    }
  }
  return text;
}

std::string human_bytes(std::uint64_t n) {
  if (n < 1024) return fmt::format("{} bytes", n);
  double value = static_cast<double>(n);
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (value /= 1024; value >= 1024 && unit < 3; value /= 1024) ++unit;
  return fmt::format("{:.4g} {}", value, units[unit]);
}

std::string grouped(std::uint64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

// behind "/perdure-"
std::string uuid_text(const std::uint8_t (&uuid)[16]) {
  return engine::stat_page_name(uuid).substr(9);
}

void write_all(int fd, std::string_view bytes, std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw error(system_failure(name, "write", errno));
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string read_all(int fd, std::string_view name) {
  std::string bytes;
  for (;;) {
    const std::size_t had = bytes.size();
    bytes.resize(had + 65536);
    const ssize_t n = ::read(fd, bytes.data() + had, 65536);
    bytes.resize(had + static_cast<std::size_t>(n > 0 ? n : 0));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw error(system_failure(name, "read", errno));
    if (n == 0) return bytes;
  }
}

}  // namespace perdure::tool
