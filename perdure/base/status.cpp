// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/base/status.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <new>

namespace perdure {
namespace {

constexpr std::size_t codes = static_cast<std::size_t>(Code::diverged) + 1;

}  // namespace

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
    case Code::expired: return "expired";
    case Code::deposed: return "deposed";
    case Code::unavailable: return "unavailable";
    case Code::in_doubt: return "in_doubt";
    case Code::diverged: return "diverged";
  }
  return "unknown";
}

// One per code; they are never destroyed.
const Status::Detail& Status::spare(Code code) noexcept {
  static const auto* const all = [] {
    auto* const made = new std::array<Detail, codes>;
    for (std::size_t i = 0; i < codes; ++i) {
      const auto c = static_cast<Code>(i);
      (*made)[i] = {c, std::string(name(c)) + ": there was no memory for more of the message"};
    }
    return made;
  }();
  return (*all)[static_cast<std::size_t>(code)];
}

// Makes the spare ones at load, while there is memory.
[[maybe_unused]] static const Status made_early = Status::without_memory(Code::io);

Status Status::without_memory(Code code) noexcept {
  Status s;
  if (code != Code::ok) s.detail_.reset(&spare(code));
  return s;
}

void Status::Drop::operator()(const Detail* detail) const noexcept {
  if (detail != &spare(detail->code)) delete detail;
}

Status::Status(Code code, std::string message) noexcept {
  if (code == Code::ok) return;
  const Detail* const made = new (std::nothrow) Detail{code, std::move(message)};
  detail_.reset(made != nullptr ? made : &spare(code));
}

Status::Status(const Status& other) noexcept {
  if (!other.ok()) try {
      detail_.reset(new Detail(*other.detail_));
    } catch (const std::bad_alloc&) {
      detail_.reset(&spare(other.code()));
    }
}

Status& Status::operator=(const Status& other) noexcept {
  if (this != &other) *this = Status(other);
  return *this;
}

const std::string& Status::message() const noexcept {
  static const std::string none;
  return detail_ ? detail_->message : none;
}

void Status::or_throw() const {
  if (!ok()) throw error(*this);
}

Status failure(Code code, std::string_view file, std::string_view found, std::string_view expected,
               std::string_view advice) noexcept {
  try {
    std::string text;
    if (!file.empty()) text.append(file).append(": ");
    text.append(found);
    if (!expected.empty()) text.append(", expected ").append(expected);
    if (!advice.empty()) text.append("; ").append(advice);
    return {code, std::move(text)};
  } catch (const std::bad_alloc&) {
    return Status::without_memory(code);
  }
}

Status system_failure(std::string_view file, std::string_view call, int err,
                      std::string_view advice) noexcept {
  Code code = Code::io;
  if (err == ENOSPC || err == EDQUOT) code = Code::full;
  if (err == ENOENT) code = Code::not_found;
  if (err == ENOMEM) code = Code::out_of_memory;
  if (err == EROFS) code = Code::read_only;
  if (advice.empty() && err == EMFILE)
    advice = "raise the process's limit of open files (`ulimit -n`), or close some";
  try {
    return failure(code, file, std::string(call) + " failed: " + std::strerror(err), {}, advice);
  } catch (const std::bad_alloc&) {
    return Status::without_memory(code);
  }
}

}  // namespace perdure
