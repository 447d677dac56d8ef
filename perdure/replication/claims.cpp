// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/replication/claims.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <cstdio>
#include <thread>
#include <utility>

#include "perdure/backup/hash.hpp"
#include "perdure/replication/logs.hpp"

namespace perdure::replication {
namespace {

std::string number(std::uint64_t n) { return std::to_string(n); }

std::string claim_text(std::uint64_t claim) {
  char text[17];
  (void)std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(claim));
  return text;
}

// Never 0.
std::uint64_t random_number() {
  std::uint64_t n = 0;
  while (n == 0)
    if (::getrandom(&n, sizeof n, 0) != static_cast<ssize_t>(sizeof n)) n = 0;
  return n;
}

}  // namespace

std::string copy_name(const ReplicateOptions& options, const std::string& path) {
  if (!options.name.empty()) return options.name + ":" + path;
  char machine[256] = {};
  if (::gethostname(machine, sizeof machine - 1) != 0) return "unknown:" + path;
  return std::string(machine) + ":" + path;
}

std::string copies_of(const std::uint8_t (&uuid)[16]) {
  return backup::hash_of(uuid, sizeof uuid).text() + "-";
}
std::string copy_id(const std::uint8_t (&uuid)[16], const std::string& name) {
  return copies_of(uuid) + backup::hash_of(name.data(), name.size()).text();
}

Claims::Claims(std::string path, const pool::ReplicationWords& words)
    : path_(std::move(path)), words_(words), own_(words.own != 0) {}

Status Claims::on_term(const backup::Frame& frame, const StreamPlace& after, std::uint64_t last) {
  const backup::FrameHeader& h = frame.header;
  const std::string text(reinterpret_cast<const char*>(frame.payload), h.payload_bytes);
  const auto begins = [&](std::uint64_t claim) {
    return claim != 0 && text.starts_with(claim_text(claim));
  };
  own_ = begins(words_.claim) || begins(words_.claim_before);
  other_ = text.size() > 17 ? std::string(text.c_str() + 17) : "of an unknown name";
  // mutant: primary-diverged
  if (own_ || last <= h.last) return {};
  return failure(Code::diverged, path_,
                 "transactions " + number(h.last + 1) + " to " + number(last) +
                     ", which the copy " + other_ + " began term " + number(after.term) +
                     " without",
                 "none that the replicated log lacks",
                 "keep this file, and make the copy anew from a backup; `perdure log` shows these "
                 "transactions");
}

void Claims::renew() {
  words_.claim_before = words_.claim;
  words_.claim = random_number();
}

std::string Claims::text(const std::string& name) const {
  return claim_text(words_.claim) + " " + name;
}

const pool::ReplicationWords& Claims::words_at(const StreamPlace& place) noexcept {
  set_place(words_, place);
  words_.own = own_ ? 1 : 0;
  return words_;
}

Status claim_term(Stream& stream, Claims& claims, const LogService& log, const ClaimTerm& how) {
  bool noted = false;
  for (Status why;;) {
    // What the log has of earlier openings is known by their numbers, which the next one replaces.
    Status s = stream.read(how.on_frame);
    const std::uint64_t term = stream.place().term;
    // A claim of before, which had no answer, may be in the log.
    // mutant: claim-in-place
    if (s.ok() && how.instead_of != 0 && term != how.instead_of && !claims.own())
      return failure(Code::deposed, how.path,
                     "the copy " + claims.other() + " has begun term " + number(term));
    if (s.ok() && !noted) {
      claims.renew();
      // mutant: primary-claim-durable
      if (s = how.note(claims.words_at(stream.resume_place())); !s.ok()) return s;
      noted = true;
    }
    if (s.ok()) {
      auto claimed =
          stream.claim(claims.text(how.name), how.on_frame, how.instead_of != 0 ? term : 0);
      if (claimed.ok() && *claimed == Stream::Claim::primary) break;
      s = claimed.status();
      why = claimed.ok() ? stream.why() : s;
    } else {
      why = s;
    }
    if (!s.ok() && !may_pass(s)) return s;
    if (std::chrono::steady_clock::now() >= how.late) return no_answer(how.path, log, why);
    std::this_thread::sleep_for(retry_after);
  }
  claims.won();
  return {};
}

}  // namespace perdure::replication
