// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/medium/recording.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>

namespace perdure::medium {
namespace {

std::uint64_t load_word(const std::byte* p) noexcept {
  std::uint64_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return v;
}

}  // namespace

std::string_view name(Event::Kind kind) noexcept {
  switch (kind) {
    case Event::Kind::store: return "store";
    case Event::Kind::stream: return "stream";
    case Event::Kind::flush: return "flush";
    case Event::Kind::fence: return "fence";
    case Event::Kind::flush_all: return "flush_all";
    case Event::Kind::grow: return "grow";
    case Event::Kind::mark: return "mark";
  }
  return "unknown";
}

RecordingMedium::RecordingMedium(const RecordingOptions& o) : options_(o) {
  path_ = o.path;
  log_bytes_ = o.log_bytes;
  append_unit_ = o.append_unit;
  fence_is_sync_ = o.fence_is_sync;
  read_only_ = o.read_only;
  map_flags_ = MAP_SHARED;
}

RecordingMedium::~RecordingMedium() {
  if (durable_ != nullptr) ::munmap(durable_, durable_bytes_);
}

Result<std::unique_ptr<RecordingMedium>> RecordingMedium::make(const RecordingOptions& options, std::span<const std::byte> image) {
  if (options.log_bytes == 0 || options.log_bytes % page_bytes != 0 || options.home_bytes % page_bytes != 0) {
    return failure(Code::invalid, options.path, "sizes that are not whole pages", "multiples of 4096");
  }
  if (image.size() > options.log_bytes + options.home_bytes) {
    return failure(Code::invalid, options.path, "an image of " + std::to_string(image.size()) + " bytes", "at most log_bytes + home_bytes");
  }
  std::unique_ptr<RecordingMedium> m(new RecordingMedium(options));
  if (Status s = m->init(image); !s.ok()) return s;
  return m;
}

Status RecordingMedium::init(std::span<const std::byte> image) {
  auto memory = make_memory_file("perdure-recording", log_bytes_ + options_.home_bytes);
  if (!memory.ok()) return memory.status();
  memory_ = std::move(*memory);
  const auto pages_with_data = [&](auto&& f) {  // a page of zeros is a hole: most of a small pool
    static constexpr std::array<std::byte, page_bytes> zeros{};
    for (std::size_t at = 0; at < image.size(); at += page_bytes) {
      const std::size_t n = std::min(page_bytes, image.size() - at);
      if (std::memcmp(image.data() + at, zeros.data(), n) != 0) f(at, n);
    }
  };
  int error = 0;
  pages_with_data([&](std::size_t at, std::size_t n) {
    const ssize_t written = ::pwrite(memory_.get(), image.data() + at, n, static_cast<off_t>(at));
    if (written != static_cast<ssize_t>(n)) error = written < 0 ? errno : EIO;
  });
  if (error != 0) return system_failure(path_, "pwrite to a memory file", error);
  if (options_.sparse) {
    if (Status s = keep_page_map(log_bytes_ + std::max(options_.home_bytes, options_.max_home_bytes)); !s.ok()) return s;
    pages_with_data([&](std::size_t at, std::size_t n) { note_allocated(at, at + n); });
  }
  if (Status s = map_all(memory_.get(), memory_.get(), options_.home_bytes, options_.max_home_bytes); !s.ok()) return s;
  durable_bytes_ = log_bytes_ + max_home_bytes_;
  void* p = ::mmap(nullptr, durable_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return system_failure(path_, "mmap", errno, "record a smaller pool");
  durable_ = static_cast<std::byte*>(p);
  pages_with_data([&](std::size_t at, std::size_t n) { std::memcpy(durable_ + at, image.data() + at, n); });
  return {};
}

void RecordingMedium::write(Event::Kind kind, std::uint64_t offset, const void* src, std::size_t n) {
  if (n == 0) return;
  assert(allocated(offset, n));
  const int thread = base::thread_slot();
  copy_words(address(offset), src, n);
  const bool streamed = kind == Event::Kind::stream;
  for (std::uint64_t w = offset / 8; w <= (offset + n - 1) / 8; ++w) {
    Line& line = lines_[w / words];
    line.version[w % words] = ++clock_;
    line.streamed_by[w % words] = streamed ? thread + 1 : 0;
    if (!streamed) continue;
    Capture& c = pending_[thread][w / words];
    c.version[w % words] = clock_;
    c.value[w % words] = load_word(address(w * 8));
  }
  Event e{kind, thread, offset, n, {}, {}};
  if (options_.keep_bytes) {
    const auto* bytes = static_cast<const std::byte*>(src);
    e.data.assign(bytes, bytes + n);
  }
  events_.push_back(std::move(e));
}

void RecordingMedium::store(std::uint64_t offset, const void* src, std::size_t n) noexcept {
  const std::lock_guard lock(mutex_);
  write(Event::Kind::store, offset, src, n);
  add(row().stores, 1);
  add(row().stored_bytes, n);
}

void RecordingMedium::stream(std::uint64_t offset, const void* src, std::size_t n) noexcept {
  assert(offset % line_bytes == 0 && n % line_bytes == 0);
  const std::lock_guard lock(mutex_);
  write(Event::Kind::stream, offset, src, n);
  add(row().streamed_lines, n / line_bytes);
  add(row().written_bytes, n);
}

void RecordingMedium::append(const RingMap& ring, std::uint64_t pos, const void* src, std::size_t n) noexcept {
  const std::uint64_t at = ring_index(ring, pos);
  assert(at % line_bytes == 0 && n % line_bytes == 0 && n <= ring.bytes);
  const std::uint64_t first = n < ring.bytes - at ? n : ring.bytes - at;
  const std::lock_guard lock(mutex_);
  write(Event::Kind::stream, ring.offset + at, src, first);
  write(Event::Kind::stream, ring.offset, static_cast<const std::byte*>(src) + first, n - first);
  add(row().streamed_lines, n / line_bytes);
  add(row().written_bytes, n);
}

void RecordingMedium::capture(int thread, std::uint64_t line_number) {
  const auto found = lines_.find(line_number);
  if (found == lines_.end()) return;  // as in the first image: durable
  const Line& line = found->second;
  Capture& c = pending_[thread][line_number];
  for (std::size_t w = 0; w < words; ++w) {
    if (line.streamed_by[w] != 0 && line.streamed_by[w] != thread + 1) continue;  // R2
    c.version[w] = line.version[w];
    c.value[w] = load_word(address(line_number * line_bytes + w * 8));
  }
}

void RecordingMedium::flush(std::uint64_t offset, std::size_t n) noexcept {
  if (n == 0) return;
  const std::lock_guard lock(mutex_);
  const int thread = base::thread_slot();
  for (std::uint64_t l = offset / line_bytes; l <= (offset + n - 1) / line_bytes; ++l) capture(thread, l);
  events_.push_back({Event::Kind::flush, thread, offset, n, {}, {}});
  const std::uint64_t lines = lines_touched(offset, n);
  add(row().flushed_lines, lines);
  add(row().written_bytes, lines * line_bytes);
}

void RecordingMedium::set_durable(std::uint64_t line, std::size_t word, std::uint64_t value) noexcept {
  std::memcpy(durable_ + line * line_bytes + word * 8, &value, sizeof value);
}

void RecordingMedium::settle(int thread) {
  const auto mine = pending_.find(thread);
  if (mine == pending_.end()) return;
  for (const auto& [number, c] : mine->second) {
    Line& line = lines_[number];
    for (std::size_t w = 0; w < words; ++w) {
      if (line.streamed_by[w] == thread + 1) line.streamed_by[w] = 0;
      if (c.version[w] <= line.durable[w]) continue;  // R3
      line.durable[w] = c.version[w];
      set_durable(number, w, c.value[w]);
    }
  }
  pending_.erase(mine);
}

Status RecordingMedium::fence() noexcept {
  std::shared_ptr<Hooks> hooks;
  {
    const std::lock_guard lock(hooks_mutex_);
    hooks = hooks_;
    if (hooks) ++hooks->running;
  }
  if (hooks && hooks->before) hooks->before();
  {
    const std::lock_guard lock(mutex_);
    settle(base::thread_slot());
    events_.push_back({Event::Kind::fence, base::thread_slot(), 0, 0, {}, {}});
    add(row().fences, 1);
  }
  if (hooks) {
    if (hooks->after) hooks->after();
    const std::lock_guard lock(hooks_mutex_);
    if (--hooks->running == 0) hooks_idle_.notify_all();
  }
  return {};
}

Status RecordingMedium::flush_all() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& [number, line] : lines_) {
    for (std::size_t w = 0; w < words; ++w) {
      line.durable[w] = line.version[w];
      line.streamed_by[w] = 0;
      if (line.version[w] != 0) set_durable(number, w, load_word(address(number * line_bytes + w * 8)));
    }
  }
  pending_.clear();
  events_.push_back({Event::Kind::flush_all, base::thread_slot(), 0, 0, {}, {}});
  return {};
}

void RecordingMedium::mark(std::string_view label, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  events_.push_back({Event::Kind::mark, base::thread_slot(), id, 0, std::string(label), {}});
}

std::vector<Event> RecordingMedium::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

void RecordingMedium::forget_events() {
  const std::lock_guard lock(mutex_);
  events_.clear();
}

std::vector<std::byte> RecordingMedium::durable_image() const {
  const std::lock_guard lock(mutex_);
  return {durable_, durable_ + log_bytes_ + home_bytes()};
}

std::vector<std::byte> RecordingMedium::current_image() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::byte> image(log_, log_ + log_bytes_);
  image.insert(image.end(), home_, home_ + home_bytes());
  return image;
}

bool RecordingMedium::is_durable(std::uint64_t offset, std::uint64_t n) const {
  const std::lock_guard lock(mutex_);
  for (std::uint64_t w = offset / 8; n != 0 && w <= (offset + n - 1) / 8; ++w) {
    const auto line = lines_.find(w / words);
    if (line != lines_.end() && line->second.version[w % words] != line->second.durable[w % words]) return false;
  }
  return true;
}

void RecordingMedium::set_fence_hooks(std::function<void()> before, std::function<void()> after) {
  auto hooks = before || after ? std::make_shared<Hooks>() : nullptr;
  if (hooks) {
    hooks->before = std::move(before);
    hooks->after = std::move(after);
  }
  std::unique_lock lock(hooks_mutex_);
  hooks_.swap(hooks);
  if (hooks) hooks_idle_.wait(lock, [&] { return hooks->running == 0; });
}

Status RecordingMedium::extend(std::uint64_t from, std::uint64_t to) {
  // cut and grown again: zero, whatever lay there
  if (::ftruncate(memory_.get(), static_cast<off_t>(log_bytes_ + from)) != 0 ||
      ::ftruncate(memory_.get(), static_cast<off_t>(log_bytes_ + to)) != 0) {
    return system_failure(path_, "ftruncate", errno);
  }
  const std::lock_guard lock(mutex_);
  events_.push_back({Event::Kind::grow, base::thread_slot(), 0, to, {}, {}});
  return {};
}

void RecordingMedium::shrink(std::uint64_t to) noexcept {
  if (::ftruncate(memory_.get(), static_cast<off_t>(log_bytes_ + to)) != 0) return;  // only room is lost
}

}  // namespace perdure::medium
