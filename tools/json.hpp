// SPDX-License-Identifier: BSD-3-Clause
//
// JSON documents of `perdure` and how they are written. This header only names the type, so that a
// header that takes or returns a document costs little; a source that builds a document or looks
// into it includes <nlohmann/json.hpp> itself.
// Thread safety: functions of their arguments alone; standard output belongs to the process.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace perdure::tool {

/// A JSON value whose objects keep the order in which members were added.
using Json = nlohmann::ordered_json;

/// The document on one line, or indented by `indent` columns per level. Bytes that are not UTF-8
/// become U+FFFD.
[[nodiscard]] std::string json_text(const Json& document, int indent = -1);
/// Prints one document to standard output. Throws perdure::error.
void print_json(const Json& document);
/// Prints {"error": {"code": code, "message": message}} to standard output.
void print_json_error(std::string_view code, std::string_view message);

/// Sets document[name], or document[name + "_hex"] if the bytes are not UTF-8 (JSON has no other
/// text).
void set_bytes(Json& document, const std::string& name, std::string_view bytes);

}  // namespace perdure::tool
