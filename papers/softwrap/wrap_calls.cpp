// SPDX-License-Identifier: BSD-3-Clause
#include "papers/softwrap/wrap_calls.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "papers/softwrap/instances.hpp"
#include "perdure/api/pool.hpp"
#include "perdure/api/running.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/pool/size_classes.hpp"

namespace perdure::papers::softwrap {

/// The state for either variant of aliasing.
class WrapCalls::State {
 public:
  virtual ~State() = default;
  virtual void open(WrapOptions options) = 0;
  virtual void close_wrap() = 0;
  virtual void abort() = 0;
  virtual void read(void* to, const void* source, std::size_t n) = 0;
  virtual void write(void* destination, const void* from, std::size_t n) = 0;
  virtual void* place(const void* object, std::size_t n) = 0;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* block) = 0;
  virtual void checkpoint() = 0;
  virtual engine::Stats stats() = 0;
  virtual pool::OpenPool& file() noexcept = 0;
  virtual void end() = 0;  ///< aborts and closes; drops failures
  virtual Status close() = 0;
  [[nodiscard]] unsigned& depth() noexcept {
    return depths_[static_cast<std::size_t>(base::thread_slot())].n;
  }
  /// Returns whether this is a forked child's copy: the pool's threads are the parent's.
  [[nodiscard]] bool inherited() const noexcept { return owner_.is_parent(); }
  [[nodiscard]] unsigned all_open() const noexcept {
    unsigned n = 0;
    for (const auto& d : depths_) n += d.n != 0 ? 1 : 0;
    return n;
  }

 private:
  struct alignas(128) Depth {
    unsigned n = 0;
  };
  std::array<Depth, base::max_threads> depths_;
  const base::Owner owner_;
};

namespace {

error outside(const std::string& path, const char* call) {
  return error(failure(Code::invalid, path, std::string(call) + " outside a wrap",
                       "a wrapOpen() on this thread before it"));
}

template <class Instance>
class Over final : public WrapCalls::State {
  using Running = detail::Running<Instance>;
  using Transaction = typename Running::Engine::Transaction;

 public:
  explicit Over(detail::Opened opened) : running_(std::move(opened)) {}

  void open(WrapOptions options) override {
    Transaction& c = transaction();
    for (int left = 3;; --left) {
      c.begin(true);
      Status s;
      if (options.aliasing == Aliasing::local) s = c.alias_locally();
      if (options.aliasing == Aliasing::global) s = c.alias_globally();
      if (s.ok() && c.roomy()) return;
      c.rollback();
      s.or_throw();
      if (left == 0) throw no_log_space();
      engine::make_log_space(*running_.engine, c, {c.half()});
    }
  }
  void close_wrap() override {
    guarded([](Transaction& c) { c.commit(Durability::durable); });
  }
  void abort() override { transaction().rollback(); }
  void read(void* to, const void* source, std::size_t n) override {
    guarded([&](Transaction& c) { ReadTx<Transaction>(c).read_bytes(to, source, n); });
  }
  void write(void* destination, const void* from, std::size_t n) override {
    guarded([&](Transaction& c) { Tx<Transaction>(c).write_bytes(destination, from, n); });
  }
  void* place(const void* object, std::size_t n) override {
    void* block = nullptr;
    guarded([&](Transaction& c) {
      auto* const to = c.alloc(n);
      const auto* const from = static_cast<const std::byte*>(object);
      const auto offset = static_cast<std::uint64_t>(to - running_.file().view());
      // Replayed heap ops, and a span's directory word that a crash leaves although its chunk is
      // another's by now, take the first bytes of a chunk for a bitmap: these are logged.
      for (std::uint64_t i = 0, part = 0; i < n; i += part) {
        const std::uint64_t in_chunk = (offset + i) % pool::chunk_bytes;
        const bool bitmap = in_chunk < pool::max_bitmap_bytes;
        const std::uint64_t end = bitmap ? pool::max_bitmap_bytes : pool::chunk_bytes;
        part = std::min<std::uint64_t>(n - i, end - in_chunk);
        // mutant: softwrap-object-beside-bitmaps, softwrap-object-without-aliases
        if (bitmap || !c.unaliased(offset + i, (part + 7) / 8))
          Tx<Transaction>(c).write_bytes(to + i, from + i, part);
        else
          c.stream_object(to + i, from + i, part);
      }
      block = to;
    });
    return block;
  }
  void* allocate(std::size_t bytes) override {
    void* block = nullptr;
    guarded([&](Transaction& c) { block = c.alloc(bytes); });
    return block;
  }
  void free(void* block) override {
    guarded([&](Transaction& c) { c.free(block); });
  }
  void checkpoint() override { running_.checkpoint().or_throw(); }
  engine::Stats stats() override { return running_.engine->stats(); }
  pool::OpenPool& file() noexcept override { return running_.file(); }
  void end() override {
    if (running_.engine->core().state() != 0) return;
    // No thread may abort other threads' wraps: the pool stays as after a crash.
    if (all_open() != 0) return;
    try {
      (void)running_.close();
    } catch (...) {  // the next opening recovers
    }
  }
  Status close() override { return running_.close(); }

 private:
  Transaction& transaction() { return running_.engine->transaction(); }
  error no_log_space() {
    return error(failure(Code::busy, running_.file().path(),
                         "a wrap that found no more space in the log or an alias table, or a block "
                         "that is being retired",
                         "half a log bucket and half a table to be enough",
                         "it has been rolled back: open it again; if it is told so again, store "
                         "less in one, or make log_size and alias_entries larger"));
  }
  /// An exception from f ends the wrap, except for `invalid`.
  template <class F>
  void guarded(F&& f) {
    Transaction& c = transaction();
    const auto give_up = [&] {
      c.rollback();
      depth() = 0;
    };
    try {
      f(c);
    } catch (const engine::LogFull& full) {
      give_up();
      engine::make_log_space(*running_.engine, c, full.needed);
      throw no_log_space();
    } catch (const error& e) {
      if (e.code() != Code::invalid) give_up();
      running_.engine->core().poison_with_medium();
      throw;
    } catch (...) {
      give_up();
      throw;
    }
  }

  Running running_;
};

std::unique_ptr<WrapCalls::State> open_state(const std::string& path, Options options,
                                             const detail::RootType& root,
                                             std::unique_ptr<medium::Medium> medium) {
  options.isolation = Isolation::caller;
  if (!options.engine.empty() && !options.engine.ends_with("/none")) options.engine += "/none";
  std::vector<engine::EngineInfo> forms;
  engine::add_entries<softwrap_none>(forms);
  engine::add_entries<softwrap_local_none>(forms);
  const bool fresh = medium != nullptr;
  auto opened = detail::open_pool(path, options, forms, root, std::move(medium), fresh).value();
  if (opened.config.instance == forms[0].name)
    return std::make_unique<Over<softwrap_none>>(std::move(opened));
  return std::make_unique<Over<softwrap_local_none>>(std::move(opened));
}

}  // namespace

WrapCalls::WrapCalls(const std::string& path, const Options& options, const detail::RootType& root,
                     std::unique_ptr<medium::Medium> medium)
    : state_(open_state(path, options, root, std::move(medium))) {}

WrapCalls::~WrapCalls() {
  if (state_->inherited()) {
    (void)state_.release();
    return;
  }
  // A thread without a thread slot has no wrap, and can close nothing: the next opening recovers.
  if (!base::ensure_thread_slot().ok()) return;
  if (state_->depth() != 0) wrapAbort();
  state_->end();
}

void* WrapCalls::root_address() const noexcept {
  return state_->file().view() + state_->file().root_offset();
}

void WrapCalls::wrapOpen(WrapOptions options) {
  if (state_->depth() == 0) state_->open(options);
  ++state_->depth();
}

void WrapCalls::wrapClose() {
  unsigned& depth = state_->depth();
  if (depth == 0) throw outside(file().path(), "wrapClose()");
  if (depth == 1) state_->close_wrap();  // an exception from it has set the depth to 0
  --depth;
}

void WrapCalls::wrapAbort() {
  if (state_->depth() == 0) throw outside(file().path(), "wrapAbort()");
  state_->abort();
  state_->depth() = 0;
}

void WrapCalls::wrapRead(void* to, const void* source, std::size_t n) {
  if (state_->depth() != 0) return state_->read(to, source, n);
  wrapOpen();
  state_->read(to, source, n);
  wrapClose();
}

void WrapCalls::must_have(const void* address, std::size_t n) const {
  const auto home = reinterpret_cast<std::uintptr_t>(state_->file().view()),
             at = reinterpret_cast<std::uintptr_t>(address);
  if (at < home || at - home + n > state_->file().header().data_bytes)
    throw error(failure(Code::invalid, state_->file().path(), "an address that is not in the pool",
                        "one in root(), or in an allocated block"));
}

void WrapCalls::wrapWrite(void* destination, const void* from, std::size_t n) {
  if (state_->depth() == 0) throw outside(file().path(), "a store");
  must_have(destination, n);
  state_->write(destination, from, n);
}

void WrapCalls::wrapFlip(void** pointer, const void* object, std::size_t n) {
  if (state_->depth() == 0) throw outside(file().path(), "wrapFlip()");
  must_have(pointer, sizeof *pointer);
  void* old = nullptr;
  wrapRead(&old, pointer, sizeof old);
  if (old != nullptr) pfree(old);  // first: `invalid` leaves the wrap as it was
  void* const now = state_->place(object, n);
  wrapWrite(pointer, &now, sizeof now);
}

void* WrapCalls::pmalloc(std::size_t bytes) {
  if (state_->depth() == 0) throw outside(file().path(), "pmalloc()");
  return state_->allocate(bytes);
}

void WrapCalls::pfree(void* block) {
  if (state_->depth() == 0) throw outside(file().path(), "pfree()");
  state_->free(block);
}

void WrapCalls::checkpoint() {
  if (state_->depth() != 0)
    throw error(failure(Code::invalid, file().path(), "checkpoint() inside a wrap",
                        "none open on this thread", "close or abort it first"));
  state_->checkpoint();
}

engine::Stats WrapCalls::stats() { return state_->stats(); }

pool::OpenPool& WrapCalls::file() noexcept { return state_->file(); }

void WrapCalls::close() {
  if (const unsigned n = state_->all_open(); n != 0)
    throw error(failure(Code::invalid, file().path(), std::to_string(n) + " open wraps", "none",
                        "close or abort them first"));
  state_->close().or_throw();
}

}  // namespace perdure::papers::softwrap
