// SPDX-License-Identifier: BSD-3-Clause
#include "testing/recording_medium.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace perdure::medium {

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

Result<std::unique_ptr<RecordingMedium>> RecordingMedium::make(const RecordingOptions& options,
                                                               std::span<const std::byte> image) {
  RecordingOptions named = options;
  if (named.path.empty()) named.path = "recording";
  std::unique_ptr<RecordingMedium> m(new RecordingMedium(named));
  if (Status s = m->init("perdure-recording", image); !s.ok()) return s;
  if (!options.record) return m;
  // It is as long as the file: a longer one would cost a pass over all of it at each opening.
  std::vector<std::uint64_t> words((m->log_bytes_ + m->data_bytes()) / 8);
  if (!image.empty()) std::memcpy(words.data(), image.data(), image.size());
  m->image_ = std::make_unique<Image>(std::move(words), m->data_bytes());
  m->pending_ = std::make_unique<Persistency>(*m->image_);
  return m;
}

void RecordingMedium::must_record(const char* call) const {
  if (options_.record) return;
  std::fprintf(stderr, "perdure: RecordingMedium::%s(): found a medium made with record = false\n",
               call);
  std::abort();
}

void RecordingMedium::happened(const Event& event) {
  for (const TraceEvent& e : trace_.events) pending_->apply(trace_, e);
  trace_.clear();
  image_->forget_the_past();
  events_.push_back(event);
}

void RecordingMedium::stored(std::uint64_t offset, std::size_t n, bool past_cache) {
  if (!options_.record) return;
  const int thread = base::thread_slot();
  trace_.wrote(past_cache ? TraceEvent::Kind::stream : TraceEvent::Kind::store, thread, offset, n,
               address(offset));
  Event e{past_cache ? Event::Kind::stream : Event::Kind::store, thread, offset, n, {}, {}};
  if (options_.keep_bytes) e.data.assign(address(offset), address(offset) + n);
  happened(e);
}

void RecordingMedium::flushed(std::uint64_t first, std::uint64_t count) {
  if (!options_.record) return;
  const int thread = base::thread_slot();
  trace_.flushed(thread, first * line_bytes, count * line_bytes);
  happened({Event::Kind::flush, thread, first * line_bytes, count * line_bytes, {}, {}});
}

void RecordingMedium::fenced(bool everything) {
  if (!options_.record) return;
  const int thread = base::thread_slot();
  trace_.note(TraceEvent::Kind::fence, thread);
  happened({everything ? Event::Kind::flush_all : Event::Kind::fence, thread, 0, 0, {}, {}});
}

void RecordingMedium::grown(std::uint64_t data_bytes) {
  if (!options_.record) return;
  const int thread = base::thread_slot();
  pending_->cover((log_bytes_ + data_bytes) / 8);
  trace_.note(TraceEvent::Kind::grow, thread, data_bytes);
  happened({Event::Kind::grow, thread, 0, data_bytes, {}, {}});
}

void RecordingMedium::fence_now(bool everything) {
  std::shared_ptr<Hooks> hooks;
  if (!everything) {
    const std::lock_guard lock(hooks_mutex_);
    hooks = hooks_;
    if (hooks) ++hooks->running;
  }
  if (hooks && hooks->before) hooks->before();
  DramMedium::fence_now(everything);
  if (!hooks) return;
  if (hooks->after) hooks->after();
  const std::lock_guard lock(hooks_mutex_);
  if (--hooks->running == 0) hooks_idle_.notify_all();
}

void RecordingMedium::mark(std::string_view label, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  events_.push_back({Event::Kind::mark, base::thread_slot(), id, 0, std::string(label), {}});
}

std::vector<Event> RecordingMedium::events() const {
  const std::lock_guard lock(mutex_);
  must_record("events");
  return events_;
}

void RecordingMedium::forget_events() {
  const std::lock_guard lock(mutex_);
  events_.clear();
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

std::vector<std::byte> RecordingMedium::durable_image() const {
  const std::lock_guard lock(mutex_);
  must_record("durable_image");
  const auto* const bytes = reinterpret_cast<const std::byte*>(image_->words());
  return {bytes, bytes + log_bytes_ + data_bytes()};
}

std::vector<std::byte> RecordingMedium::current_image() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::byte> image(log_, log_ + log_bytes_);
  image.insert(image.end(), data_, data_ + data_bytes());
  return image;
}

bool RecordingMedium::is_durable(std::uint64_t offset, std::uint64_t n) const {
  const std::lock_guard lock(mutex_);
  must_record("is_durable");
  for (std::uint64_t w = offset / 8; n != 0 && w <= (offset + n - 1) / 8; ++w)
    if (pending_->pending(w)) return false;
  return true;
}

}  // namespace perdure::medium
