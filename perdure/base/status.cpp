// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/base/status.hpp"

#include <cerrno>
#include <cstring>

namespace perdure {

std::string_view name(Code code) noexcept {
  switch (code) {
    case Code::ok: return "ok";
    case Code::io: return "io";
    case Code::busy: return "busy";
    case Code::corrupt: return "corrupt";
    case Code::incompatible: return "incompatible";
    case Code::full: return "full";
    case Code::too_big: return "too_big";
    case Code::read_only: return "read_only";
    case Code::not_found: return "not_found";
    case Code::invalid: return "invalid";
    case Code::unsupported: return "unsupported";
    case Code::poisoned: return "poisoned";
    case Code::exists: return "exists";
    case Code::closed: return "closed";
    case Code::out_of_memory: return "out_of_memory";
    case Code::too_many_threads: return "too_many_threads";
  }
  return "unknown";
}

Status::Status(Code code, std::string message)
    : detail_(code == Code::ok ? nullptr : std::make_unique<Detail>(Detail{code, std::move(message)})) {}

Status::Status(const Status& other) : detail_(other.detail_ ? std::make_unique<Detail>(*other.detail_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) detail_ = other.detail_ ? std::make_unique<Detail>(*other.detail_) : nullptr;
  return *this;
}

const std::string& Status::message() const noexcept {
  static const std::string none;
  return detail_ ? detail_->message : none;
}

void Status::or_throw() const {
  if (!ok()) throw error(*this);
}

Status failure(Code code, std::string_view file, std::string_view found, std::string_view expected, std::string_view advice) {
  std::string text;
  if (!file.empty()) text.append(file).append(": ");
  text.append(found);
  if (!expected.empty()) text.append(", expected ").append(expected);
  if (!advice.empty()) text.append("; ").append(advice);
  return {code, std::move(text)};
}

Status system_failure(std::string_view file, std::string_view call, int err, std::string_view advice) {
  Code code = Code::io;
  if (err == ENOSPC || err == EDQUOT) code = Code::full;
  if (err == ENOENT) code = Code::not_found;
  if (err == ENOMEM) code = Code::out_of_memory;
  if (err == EROFS) code = Code::read_only;
  if (advice.empty() && err == EMFILE) advice = "raise the process's limit of open files (`ulimit -n`), or close some";
  std::string found = std::string(call) + " failed: " + std::strerror(err);
  return failure(code, file, found, {}, advice);
}

}  // namespace perdure
