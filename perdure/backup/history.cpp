// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/history.hpp"

#include <cstring>
#include <utility>

#include "perdure/log/record.hpp"
#include "perdure/pool/header.hpp"

namespace perdure::backup {

Result<std::unique_ptr<Frames>> FramesAfter::open(Store& store, const Base& base) {
  std::unique_ptr<FramesAfter> frames(new FramesAfter(store, base));
  auto segments = list_segments(store);
  if (!segments) return segments.status();
  for (const SegmentName& name : *segments)
    if (name.last >= base.id) frames->names_.push_back(name);
  return std::unique_ptr<Frames>(std::move(frames));
}

Status FramesAfter::each(const std::function<Result<bool>(const Frame&)>& f,
                         const std::function<Status()>& release) {
  HistoryEnd at;  // behind the segment before
  bool first = true, more = true;
  for (std::size_t i = 0; i < names_.size() && more; ++i) {
    const SegmentName& name = names_[i];
    const std::string path = store_->name() + "/" + name.text();
    if (!first && name.number != names_[i - 1].number + 1)
      return failure(Code::corrupt, store_->name(),
                     "no file of the log between number " + std::to_string(names_[i - 1].number) +
                         " and number " + std::to_string(name.number),
                     "every number", "take the missing files from another copy of the archive");
    auto bytes = store_->get(name.text());
    if (!bytes) return bytes.status();
    auto read = read_segment(name, std::move(*bytes), store_->name());
    if (!read) return read.status();
    const Segment& segment = *read;
    if (std::memcmp(segment.header.uuid, uuid_, sizeof uuid_) != 0)
      return failure(Code::corrupt, path, "a file of another pool's log",
                     "one of the pool whose backup this is", "put it where it belongs");
    // An archive that began anew where it had come to lacks nothing.
    const bool anew = segment.header.chain_before == Hash{} &&
                      segment.header.run == segment.header.before && segment.header.run == at.last;
    // mutant: restore-stops-at-gap
    if (segment.header.run > (first ? base_id_ : at.last)) {
      gap_ = true;
      return {};
    }
    HistoryEnd end = segment.begin();
    if (first && end.last > base_id_)
      return failure(Code::corrupt, store_->name(),
                     "no file of the log with transaction " + std::to_string(base_id_ + 1),
                     "every file after the backup " + std::to_string(base_id_),
                     "take the missing files from another copy of the archive");
    // mutant: restore-checks-chain
    if (!first && !anew && (end.last != at.last || !(end.chain == at.chain)))
      return failure(Code::corrupt, path, "a file of the log that does not continue the one before",
                     "one that does", "take both files from another copy of the archive");
    Status s = each_frame(
        segment.frames(), segment.frames_bytes(), path, end, [&](const Frame& frame) -> Status {
          if (!more) return {};
          if (frame.header.kind == FrameKind::group && frame.header.last <= base_id_) return {};
          auto wanted = f(frame);
          if (!wanted) return wanted.status();
          more = *wanted;
          return {};
        });
    if (!s.ok()) return s;
    if (release)
      if (s = release(); !s.ok()) return s;
    at = end;
    first = false;
  }
  return {};
}

Result<pool::Header> header_of(const Frame& frame, const std::string& name) {
  pool::Header header;
  std::memcpy(&header, frame.payload, sizeof header);
  if (std::string why; pool::judge(header, &why) != pool::CopyState::valid)
    return failure(Code::corrupt, name, "a pool's header that can't be right " + why, "a valid one",
                   "report this: its check has passed");
  return header;
}

Result<Entries> entries_of(const Frame& frame, std::uint64_t above, std::uint64_t upto,
                           const std::string& name) {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(frame.payload);
  const std::uint64_t n = frame.header.payload_bytes / 8;
  Entries found{words, 0, 0};
  const std::uint64_t* begin = words;
  std::uint64_t before = frame.header.before;
  bool rises = true;
  const bool whole = log::each_entry(words, n, [&](const log::Entry& e) {
    if (e.kind != log::EntryKind::end) return;
    const std::uint64_t id = e.values[0];
    const std::uint64_t* const after = e.values + 1;
    rises = rises && id > before && id <= frame.header.last;
    before = id;
    // mutant: restore-skips-what-the-backup-has
    if (id <= above) {
      begin = after;
    } else if (id <= upto) {
      found.n = static_cast<std::uint64_t>(after - begin);
      found.last = id;
    }
  });
  if (!whole || !rises)
    return failure(
        Code::corrupt, name,
        whole ? "a frame whose transactions are not in order" : "a frame whose entries overrun it",
        "whole entries, by rising ids", "report this: its check has passed");
  found.words = begin;
  return found;
}

}  // namespace perdure::backup
