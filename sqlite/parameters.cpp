// SPDX-License-Identifier: BSD-3-Clause
#include "sqlite/parameters.hpp"

#include <charconv>
#include <cstring>

#include "perdure/medium/medium.hpp"

namespace perdure::sqlite {
namespace {

std::uint64_t bytes_of(const std::string& path, const char* name, const char* text) {
  std::uint64_t n = 0;
  const char* const end = text + std::strlen(text);
  const auto [at, failed] = std::from_chars(text, end, n);
  unsigned shift = 0;
  if (failed == std::errc() && end - at == 1)
    shift = *at == 'K' ? 10 : *at == 'M' ? 20 : *at == 'G' ? 30 : 0;
  if (failed != std::errc() || (at != end && shift == 0) || n > ~std::uint64_t{0} >> 30)
    throw error(failure(Code::invalid, path, std::string(name) + "=" + text,
                        "a number of bytes, such as 268435456 or 256M", "correct the URI"));
  return n << shift;
}

}  // namespace

Options options_of(const std::string& path, const std::function<const char*(const char*)>& value) {
  Options o;
  o.creation.threads = 1;  // one connection writes at a time
  o.creation.log_size = std::uint64_t{128} << 20;
  const auto bytes = [&](const char* name, std::uint64_t& to) {
    if (const char* const text = value(name)) to = bytes_of(path, name, text);
  };
  bytes("log_size", o.creation.log_size);
  bytes("max_size", o.creation.max_size);
  if (const char* const engine = value("engine")) o.engine = engine;
  if (const char* const medium = value("medium")) o.medium = medium;
  if (const char* const delays = value("delays")) {
    auto parsed = medium::Delays::named(delays);
    if (!parsed)
      throw error(failure(Code::invalid, path, std::string("delays=") + delays,
                          "a model of docs/media.md", parsed.status().message()));
    o.medium_options.delays = *parsed;
  }
  return o;
}

std::optional<Design> design_of(const std::string& path,
                                const std::function<const char*(const char*)>& value) {
  const char* const design = value("design");
  if (design == nullptr) return {};
  if (std::strcmp(design, "a") == 0) return Design::a;
  if (std::strcmp(design, "b") == 0) return Design::b;
  throw error(failure(Code::invalid, path, std::string("design=") + design,
                      "a or b (docs/sqlite.md)", "correct it, or leave it out"));
}

}  // namespace perdure::sqlite
