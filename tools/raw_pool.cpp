// SPDX-License-Identifier: BSD-3-Clause
#include "tools/raw_pool.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "perdure/base/descriptor.hpp"
#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/engine/follow/can_follow.hpp"
#include "perdure/pool/directory.hpp"
#include "tools/command.hpp"

namespace perdure::tool {

RawPool::RawPool(const PoolArguments& arguments, bool header_only) : path_(arguments.path) {
  auto lock = pool::FileLock::acquire(path_, pool::FileLock::Mode::read, path_);
  if (lock.code() == Code::busy && header_only) {
    in_use_ = true;
    lock = pool::FileLock::acquire(path_, pool::FileLock::Mode::follow, path_);
  }
  lock_ = std::move(lock).value();
  auto chosen = pool::read_header(path_, lock_.fd());
  // A program may be writing it.
  for (int i = 0; i < 100 && in_use_ && !chosen.ok(); ++i)
    chosen = pool::read_header(path_, lock_.fd());
  chosen_ = std::move(chosen).value();
  medium::OpenMedium how;
  how.path = path_;
  how.kind = arguments.medium;
  how.read_only = true;
  how.direct = !arguments.no_direct;
  how.log_bytes = header().log_bytes;
  how.data_bytes = header().data_bytes;
  how.max_data_bytes = pool::Directory(header()).max_data_bytes();
  if (header_only) how.load_bytes = pool::first_ring;
  medium_ = medium::open_medium(how).value();
}

std::string RawPool::engine() const { return engine_of(header()); }
bool RawPool::has_records() const {
  const auto all = engine::registered();
  return std::none_of(all.begin(), all.end(), [&](const engine::EngineInfo& e) {
    return e.family == engine() && !e.ring_records;
  });
}
bool RawPool::serves_readers() const {
  return engine::follow::can_follow(engine::registered(), header());
}

std::string RawPool::layout() const { return layout_of_pool(header()); }

std::vector<RingReport> RawPool::scan_rings(
    const std::function<void(std::uint32_t ring, const log::RecordView&)>& f) {
  const pool::Header& h = header();
  std::vector<RingReport> reports;
  // After an orderly close the rings hold nothing that is still needed.
  if (h.clean == 1 || !has_records()) return reports;
  for (std::uint32_t i = 0; i < h.ring_count; ++i) {
    const medium::RingMap map = medium().map_ring(pool::ring_offset(h, i), h.ring_bytes).value();
    RingReport report{i, h.ring_head[i], {}};
    std::uint64_t last = h.checkpoint_id;
    report.scan =
        log::scan_ring(map, report.head, log::ring_seed(h.uuid, h.epoch, i), h.append_unit,
                       path_ + ": ring " + std::to_string(i), [&](const log::RecordView& record) {
                         last = std::max(last, record.id());
                         if (f) f(i, record);
                       });
    if (report.scan.damage.ok())
      report.scan.damage = log::later_than_header(map, report.head, report.scan.end,
                                                  log::ring_seed(h.uuid, h.epoch, i), h.append_unit,
                                                  last + 1, path_ + ": ring " + std::to_string(i));
    reports.push_back(std::move(report));
  }
  return reports;
}

pool::Header peek_header(const std::string& path) {
  const int fd = base::open_file(path.c_str(), O_RDONLY | O_NONBLOCK);
  if (fd < 0) throw error(system_failure(path, "open", errno, "name a pool file that can be read"));
  auto chosen = pool::read_header(path, fd);
  ::close(fd);
  return chosen.value().header;
}

std::string engine_of(const pool::Header& header) { return std::string(pool::engine_name(header)); }

std::string layout_of_pool(const pool::Header& header) {
  return std::string(pool::layout_text(header));
}

}  // namespace perdure::tool
