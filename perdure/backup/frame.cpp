// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/frame.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "perdure/base/room.hpp"

namespace perdure::backup {
namespace {

constexpr std::size_t chained = offsetof(FrameHeader, chain_before);

Hash chain_of(const Hash& before, const FrameHeader& header, const void* payload) {
  return hash_of(&before, sizeof before, &header, chained, payload, header.payload_bytes);
}

Status strange_frame(const std::string& name, const std::string& what) {
  return failure(Code::corrupt, name, what, "a frame that continues the one before it",
                 "take the file from another copy of the archive");
}

}  // namespace

std::uint64_t unix_nanoseconds() {
  using std::chrono::system_clock;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(system_clock::now().time_since_epoch())
          .count());
}

void append_frame(std::vector<std::byte>& to, FrameHeader header, const void* payload,
                  std::uint64_t payload_bytes, HistoryEnd& end) {
  if (payload_bytes > 0xffffffff)
    throw error(failure(Code::too_big, "",
                        "a transaction with " + std::to_string(payload_bytes) + " bytes of log",
                        "less than 4 GiB for the archive", "give the pool a smaller log"));
  std::memcpy(header.magic, frame_magic, sizeof header.magic);
  header.version = frame_version;
  header.before = end.last;
  header.unix_ns = std::max(header.unix_ns, end.unix_ns);
  header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  header.chain_before = end.chain.low;
  header.chain = chain_of(end.chain, header, payload);
  const auto* const first = reinterpret_cast<const std::byte*>(&header);
  const auto* const entries = static_cast<const std::byte*>(payload);
  base::make_room(to, sizeof header + payload_bytes);
  to.insert(to.end(), first, first + sizeof header);
  to.insert(to.end(), entries, entries + payload_bytes);
  end = {header.last, header.unix_ns, header.chain};
}

void append_header_frame(std::vector<std::byte>& to, const pool::Header& header,
                         std::uint64_t unix_ns, HistoryEnd& end) {
  FrameHeader frame{};
  frame.kind = FrameKind::header;
  std::memcpy(frame.uuid, header.uuid, sizeof frame.uuid);
  frame.last = end.last;
  frame.data_bytes = header.data_bytes;
  frame.unix_ns = unix_ns;
  append_frame(to, frame, &header, sizeof header, end);
}

Result<Frame> read_frame(const std::byte* bytes, std::uint64_t n, const std::string& name,
                         const std::string& what) {
  Frame frame{};
  if (n < sizeof frame.header) return strange_frame(name, what + " ends too early");
  std::memcpy(&frame.header, bytes, sizeof frame.header);
  const FrameHeader& h = frame.header;
  frame.payload = bytes + sizeof h;
  if (std::memcmp(h.magic, frame_magic, sizeof h.magic) != 0)
    return strange_frame(name, what + " does not begin as a frame");
  if (h.version != frame_version || h.codec != 0)
    return failure(
        Code::incompatible, name,
        what + " has version " + std::to_string(h.version) + ", codec " + std::to_string(h.codec),
        "version 1, codec 0", "use a newer build");
  if (h.payload_bytes > n - sizeof h || h.payload_bytes % 8 != 0)
    return strange_frame(name, what + " ends too early");
  return frame;
}

Status known_kind(const Frame& frame, const std::string& name, const std::string& what) {
  const FrameHeader& h = frame.header;
  if (h.kind == FrameKind::header && h.payload_bytes != sizeof(pool::Header))
    return strange_frame(name, what + " has no whole header");
  if (h.kind < FrameKind::group || h.kind > FrameKind::header)
    return failure(Code::incompatible, name,
                   what + " is of kind " + std::to_string(static_cast<unsigned>(h.kind)),
                   "a group, a part, a term or a header", "use a newer build");
  return {};
}

bool continues(const Frame& frame, const HistoryEnd& end) {
  const FrameHeader& h = frame.header;
  return h.before == end.last && h.last >= h.before && h.chain_before == end.chain.low &&
         chain_of(end.chain, h, frame.payload) == h.chain;
}

Status each_frame(const std::byte* bytes, std::uint64_t n, const std::string& name, HistoryEnd& end,
                  const std::function<Status(const Frame&)>& f) {
  for (std::uint64_t at = 0; at < n;) {
    const std::string place = "the frame at byte " + std::to_string(at);
    auto frame = read_frame(bytes + at, n - at, name, place);
    if (!frame) return frame.status();
    const FrameHeader& h = frame->header;
    if (h.before != end.last || h.last < h.before || h.chain_before != end.chain.low)
      return strange_frame(name, place + " follows transaction " + std::to_string(h.before) +
                                     ", not " + std::to_string(end.last));
    if (!continues(*frame, end)) return strange_frame(name, place + " fails its check");
    if (Status s = known_kind(*frame, name, place); !s.ok()) return s;
    if (h.kind == FrameKind::term || h.kind == FrameKind::part)
      return strange_frame(name, place + " is one of a replicated log");
    if (Status s = f(*frame); !s.ok()) return s;
    end = {h.last, h.unix_ns, h.chain};
    at += sizeof h + h.payload_bytes;
  }
  return {};
}

void EntryGatherer::add(const log::RecordView& record) {
  const std::uint64_t* const from = record.words + log::header_words;
  const std::uint64_t n = record.payload_words();
  base::make_room(words_, n + 2);
  words_.insert(words_.end(), from, from + n);
  // In a group each transaction but one, or each, is closed already.
  std::uint64_t ended = 0;
  (void)log::each_entry(from, n, [&](const log::Entry& e) {
    if (e.kind == log::EntryKind::end) ended = e.values[0];
  });
  if (ended != record.id()) {
    words_.push_back(log::entry_key(log::EntryKind::end, 0, 0));
    words_.push_back(record.id());
  }
  transactions_ += static_cast<std::uint32_t>(record.transactions());
  last_ = record.id();
}

FrameHeader EntryGatherer::header(std::uint64_t last, std::uint64_t data_bytes,
                                  std::uint64_t unix_ns) const noexcept {
  FrameHeader header{};
  header.kind = FrameKind::group;
  header.last = last;
  header.transactions = transactions_;
  header.data_bytes = data_bytes;
  header.unix_ns = unix_ns;
  return header;
}

void EntryGatherer::clear() noexcept {
  words_.clear();
  transactions_ = 0;
}

void EntryGatherer::append_to(std::vector<std::byte>& to, const std::uint8_t (&uuid)[16],
                              std::uint64_t last, std::uint64_t data_bytes, std::uint64_t unix_ns,
                              HistoryEnd& end) {
  FrameHeader frame = header(last, data_bytes, unix_ns);
  std::memcpy(frame.uuid, uuid, sizeof frame.uuid);
  append_frame(to, frame, payload(), bytes(), end);
  clear();
}

}  // namespace perdure::backup
