// SPDX-License-Identifier: BSD-3-Clause
#include "s3/client.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <pugixml.hpp>
#include <thread>

namespace perdure::s3 {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds first_pause(50), longest_pause(2000);

std::size_t take_body(char* bytes, std::size_t one, std::size_t n, void* body) {
  try {
    static_cast<std::string*>(body)->append(bytes, one * n);
  } catch (const std::bad_alloc&) {
    return 0;  // libcurl ends the transfer
  }
  return one * n;
}

struct Headers {
  curl_slist* list = nullptr;
  Headers() = default;
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  ~Headers() { curl_slist_free_all(list); }
  void add(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list, line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    list = longer;
  }
};

// Whether an attempt that ended so is known not to have been carried out.
bool never_begun(const Answer& answer, CURLcode code) {
  if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST) return true;
  // SlowDown and the like; a conditional PUT beside another one.
  return answer.status == 429 || answer.status == 503 || answer.status == 409;
}
bool may_pass(const Answer& answer) {
  return answer.status == 0 || answer.status == 408 || answer.status == 429 ||
         answer.status == 409 || answer.status >= 500;
}

// A '/' is %2F in a query.
std::string encoded(const std::string& text) {
  std::string out;
  for (const char c : text) c == '/' ? out += "%2F" : out += c;
  return out;
}

}  // namespace

std::string Answer::code() const {
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size())) return {};
  return document.child("Error").child_value("Code");
}

std::string Answer::words() const {
  if (status == 0) return why;
  std::string text = "HTTP " + std::to_string(status);
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size())) return text;
  for (const char* const part : {"Code", "Message"})
    if (const std::string found = document.child("Error").child_value(part); !found.empty())
      text += ": " + found;
  return text;
}

Client::~Client() {
  for (void* const handle : idle_) curl_easy_cleanup(handle);
}

void* Client::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      void* const handle = idle_.back();
      idle_.pop_back();
      return handle;
    }
    idle_.reserve(64);  // so that give() allocates nothing
  }
  // Once, and for all of libcurl's users in the process.
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  void* const handle = ready == CURLE_OK ? curl_easy_init() : nullptr;
  if (handle == nullptr) throw std::bad_alloc();
  return handle;
}

void Client::give(void* handle) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < idle_.capacity()) {
      idle_.push_back(handle);
      return;
    }
  }
  curl_easy_cleanup(handle);
}

Answer Client::once(void* handle, const Request& request) const {
  Answer answer;
  const std::string url =
      account_.url + "/" + request.key + (request.query.empty() ? "" : "?" + request.query);
  const std::string signature = "aws:amz:" + account_.region + ":s3";
  Headers headers;
  // The transport sees to the bytes, and what is kept here has checks of its own.
  headers.add("x-amz-content-sha256: UNSIGNED-PAYLOAD");
  if (!account_.session_token.empty())
    headers.add("x-amz-security-token: " + account_.session_token);
  if (request.only_new) headers.add("If-None-Match: *");
  curl_easy_reset(handle);  // connections stay
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  // A transfer may be slow, but not stand still.
  const auto patience = static_cast<long>(account_.patience.count());
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, patience);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, (patience + 999) / 1000);
  curl_easy_setopt(handle, CURLOPT_AWS_SIGV4, signature.c_str());
  curl_easy_setopt(handle, CURLOPT_USERNAME, account_.access_key.c_str());
  curl_easy_setopt(handle, CURLOPT_PASSWORD, account_.secret_key.c_str());
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &answer.body);
  if (std::strcmp(request.method, "PUT") == 0) {
    headers.add("Content-Type: application/octet-stream");
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.n));
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.n == 0 ? "" : request.bytes);
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, "PUT");
  } else if (std::strcmp(request.method, "HEAD") == 0) {
    curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
  } else if (std::strcmp(request.method, "GET") != 0) {
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method);
  }
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.list);
  const CURLcode code = curl_easy_perform(handle);
  if (code == CURLE_OK)
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &answer.status);
  else
    answer.why = curl_easy_strerror(code);
  answer.begun = !never_begun(answer, code);
  return answer;
}

Answer Client::send(const Request& request) {
  const auto end = steady_clock::now() + account_.patience;
  void* const handle = take();
  Answer answer;
  try {
    for (milliseconds pause = first_pause;; pause = std::min(pause * 2, longest_pause)) {
      answer = once(handle, request);
      const bool again = may_pass(answer) && (request.repeatable || !answer.begun);
      if (!again || steady_clock::now() + pause >= end) break;
      std::this_thread::sleep_for(pause);
    }
  } catch (...) {
    give(handle);
    throw;
  }
  give(handle);
  return answer;
}

Status failed(const std::string& place, const std::string& what, const Answer& answer) {
  const std::string code = answer.code();
  if (code == "NoSuchBucket")
    return failure(Code::not_found, place, "no such bucket", "one that exists", "make it first");
  return failure(Code::io, place, what + ": " + answer.words(), {},
                 answer.status == 403 ? "see that the key may read, list, write and delete there"
                                      : "see that the store is reachable, and try again");
}

Result<std::vector<std::string>> list_names(Client& client, const std::string& prefix,
                                            const std::string& from, const std::string& place) {
  std::vector<std::string> names;
  for (std::string after;;) {
    const std::string query = "list-type=2&prefix=" + encoded(prefix + from) +
                              (after.empty() ? "" : "&start-after=" + encoded(after));
    const Answer answer = client.send({.query = query});
    if (!answer.ok()) return failed(place, "a list of " + prefix + from, answer);
    pugi::xml_document document;
    const auto all = document.load_buffer(answer.body.data(), answer.body.size())
                         ? document.child("ListBucketResult")
                         : pugi::xml_node();
    if (!all)
      return failure(Code::io, place, "a list that can't be read", "ListBucketResult in XML",
                     "see that the endpoint is an S3-compatible store");
    const std::size_t before = names.size();
    for (const auto& one : all.children("Contents")) {
      const std::string_view key = one.child_value("Key");
      if (!key.starts_with(prefix + from) || key <= after) continue;
      names.emplace_back(key.substr(prefix.size()));
    }
    std::sort(names.begin(), names.end());
    if (std::strcmp(all.child_value("IsTruncated"), "true") != 0) return names;
    if (names.size() == before)
      return failure(Code::io, place, "a list that goes on, and does not move", {},
                     "use a newer version of the store");
    after = prefix + names.back();
  }
}

}  // namespace perdure::s3
