// SPDX-License-Identifier: BSD-3-Clause
#include "tools/json.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/text.hpp"

namespace perdure::tool {

std::string json_text(const Json& document, int indent) {
  return document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

void print_json(const Json& document) {
  write_all(STDOUT_FILENO, json_text(document, 2) + "\n", "standard output");
}

void print_json_error(std::string_view code, std::string_view message) {
  Json document;
  document["error"] = {{"code", code}, {"message", message}};
  std::puts(json_text(document, 2).c_str());
}

void set_bytes(Json& document, const std::string& name, std::string_view bytes) {
  Json text = std::string(bytes);
  try {
    (void)text.dump();  // throws if it is not UTF-8
    document[name] = std::move(text);
  } catch (const nlohmann::json::exception&) {
    std::string hex;
    for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
    document[name + "_hex"] = hex;
  }
}

}  // namespace perdure::tool
