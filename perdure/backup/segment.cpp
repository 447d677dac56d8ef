// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/segment.hpp"

#include <charconv>
#include <cstring>
#include <utility>

namespace perdure::backup {
namespace {

constexpr char magic[4] = {'P', 'D', 'S', 'G'};
constexpr std::uint32_t version = 1;
constexpr std::size_t digits = 20;

}  // namespace

std::string digits_of(std::uint64_t n) {
  const std::string number = std::to_string(n);
  return std::string(digits - number.size(), '0') + number;
}

bool take_digits(std::string_view& text, std::uint64_t& n) {
  if (text.size() < digits) return false;
  const auto end = text.data() + digits;
  const auto read = std::from_chars(text.data(), end, n);
  if (read.ec != std::errc() || read.ptr != end) return false;
  text.remove_prefix(digits);
  return true;
}

std::string SegmentName::text() const {
  return std::string(segment_prefix) + digits_of(number) + "-" + digits_of(before) + "-" +
         digits_of(last);
}

std::optional<SegmentName> parse_segment_name(std::string_view name) {
  SegmentName found;
  if (!name.starts_with(segment_prefix)) return {};
  name.remove_prefix(segment_prefix.size());
  const auto dash = [&name] {
    if (!name.starts_with('-')) return false;
    name.remove_prefix(1);
    return true;
  };
  if (!take_digits(name, found.number) || !dash() || !take_digits(name, found.before) || !dash() ||
      !take_digits(name, found.last) || !name.empty())
    return {};
  return found;
}

Result<std::vector<SegmentName>> list_segments(Store& store) {
  auto names = store.list(segment_prefix);
  if (!names) return names.status();
  std::vector<SegmentName> segments;
  for (const std::string& name : *names)
    if (const auto parsed = parse_segment_name(name)) segments.push_back(*parsed);
  return segments;
}

std::vector<std::byte> make_segment(const SegmentName& name, std::uint64_t run,
                                    const std::uint8_t (&uuid)[16], const HistoryEnd& begin,
                                    const std::vector<std::byte>& frames) {
  SegmentHeader header{};
  std::memcpy(header.magic, magic, sizeof magic);
  header.version = version;
  std::memcpy(header.uuid, uuid, sizeof header.uuid);
  header.before = name.before;
  header.last = name.last;
  header.chain_before = begin.chain;
  header.unix_ns = begin.unix_ns;
  header.number = name.number;
  header.run = run;
  std::vector<std::byte> bytes(sizeof header + frames.size() + sizeof(Hash));
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, frames.data(), frames.size());
  const std::size_t n = sizeof header + frames.size();
  const Hash hash = hash_of(bytes.data(), n);
  std::memcpy(bytes.data() + n, &hash, sizeof hash);
  return bytes;
}

Result<Segment> read_segment(const SegmentName& name, std::vector<std::byte> bytes,
                             const std::string& where) {
  const std::string file = where + "/" + name.text();
  const auto damaged = [&file](const std::string& what, const std::string& expected) {
    return failure(Code::corrupt, file, what, expected,
                   "take the file from another copy of the archive");
  };
  Segment s;
  s.name = name;
  if (bytes.size() < sizeof s.header + sizeof(Hash))
    return damaged(std::to_string(bytes.size()) + " bytes", "a whole segment");
  std::memcpy(&s.header, bytes.data(), sizeof s.header);
  if (std::memcmp(s.header.magic, magic, sizeof magic) != 0)
    return damaged("a file that does not begin as a segment", "PDSG");
  if (s.header.version != version)
    return failure(Code::incompatible, file,
                   "a segment of version " + std::to_string(s.header.version), "version 1",
                   "use a newer build");
  const std::size_t n = bytes.size() - sizeof(Hash);
  Hash hash;
  std::memcpy(&hash, bytes.data() + n, sizeof hash);
  if (hash_of(bytes.data(), n) != hash)
    return damaged("a segment that fails its check", "the hash at its end");
  if (s.header.before != name.before || s.header.last != name.last ||
      s.header.number != name.number)
    return damaged(
        "transactions " + std::to_string(s.header.before) + " to " + std::to_string(s.header.last),
        "those that its name says");
  s.bytes = std::move(bytes);
  return s;
}

}  // namespace perdure::backup
