// SPDX-License-Identifier: BSD-3-Clause
#include "tools/advise/program.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "perdure/pool/size_classes.hpp"

namespace perdure::tool {
namespace {

using engine::TraceKind;

constexpr std::uint32_t none = ~0U;
constexpr std::uint64_t page = 4096;
// Of one block. Replaying a larger one as this size changes nothing.
constexpr std::uint64_t max_bytes = std::uint64_t{1} << 30;

/// Where a transaction lies in a thread's words.
struct Place {
  std::uint64_t sequence;
  std::uint32_t stream;
  std::size_t begin, end;  // words, including its begin
};

std::vector<Place> places(const engine::WorkloadTrace& trace) {
  std::vector<Place> all;
  for (std::uint32_t t = 0; t < trace.threads.size(); ++t) {
    const auto& words = trace.threads[t];
    for (std::size_t i = 0; i < words.size(); ++i) {
      const TraceKind kind = engine::kind_of(words[i]);
      if (kind == TraceKind::begin) {
        if (!all.empty() && all.back().stream == t) all.back().end = i;
        all.push_back({words[i + 1], t, i, words.size()});
      }
      if (engine::has_second(kind)) ++i;
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Place& a, const Place& b) { return a.sequence < b.sequence; });
  return all;
}

/// The replay thread of each stream (see the last paragraph of the header's head).
std::vector<std::uint32_t> group(const std::vector<Place>& all, std::size_t streams) {
  struct Stream {
    std::uint64_t first = 0, last = 0, count = 0;
  };
  std::vector<Stream> seen(streams);
  for (const Place& p : all) {
    Stream& s = seen[p.stream];
    if (s.count++ == 0) s.first = p.sequence;
    s.last = p.sequence;
  }
  std::vector<std::uint32_t> order(streams), of(streams, none);
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return seen[a].first < seen[b].first; });
  std::vector<Stream> groups;
  for (const std::uint32_t s : order) {
    if (seen[s].count == 0) continue;
    const auto free = std::find_if(groups.begin(), groups.end(),
                                   [&](const Stream& g) { return g.last < seen[s].first; });
    of[s] = static_cast<std::uint32_t>(free - groups.begin());
    if (free == groups.end())
      groups.push_back(seen[s]);
    else
      free->last = seen[s].last, free->count += seen[s].count;
  }
  std::uint64_t most = 0;
  for (const Stream& g : groups) most = std::max(most, g.count);
  // The busy threads stay and are numbered anew; each of the others goes to the one with the least
  // work.
  std::vector<std::uint32_t> by_count(groups.size()), renamed(groups.size());
  std::iota(by_count.begin(), by_count.end(), 0U);
  std::stable_sort(by_count.begin(), by_count.end(),
                   [&](auto a, auto b) { return groups[a].count > groups[b].count; });
  std::vector<std::uint64_t> load;
  for (const std::uint32_t g : by_count) {
    if (load.size() < max_replay_threads && groups[g].count * 10 >= most) {
      renamed[g] = static_cast<std::uint32_t>(load.size());
      load.push_back(groups[g].count);
    } else {
      const auto least = std::min_element(load.begin(), load.end());
      renamed[g] = static_cast<std::uint32_t>(least - load.begin());
      *least += groups[g].count;
    }
  }
  for (std::uint32_t& g : of)
    if (g != none) g = renamed[g];
  return of;
}

std::uint64_t block_size(std::uint64_t bytes) {
  const std::uint32_t cls = pool::size_class(bytes);
  return cls < pool::small_classes ? pool::class_bytes(cls) : (bytes + page - 1) / page * page;
}

/// Makes a program in three passes: which threads use each block, which pages the arena must have,
/// the operations.
class Maker {
 public:
  Maker(const engine::WorkloadTrace& trace, const std::vector<Place>& all, std::uint64_t first,
        std::uint64_t count)
      : trace_(trace),
        in_(all.begin() + static_cast<std::ptrdiff_t>(first),
            all.begin() + static_cast<std::ptrdiff_t>(first + count)) {
    program_.first = first;
    program_.transactions = count;
    thread_of_ = group(in_, trace.threads.size());
    std::uint32_t threads = 0;
    for (const std::uint32_t t : thread_of_)
      if (t != none) threads = std::max(threads, t + 1);
    program_.threads.resize(threads);
  }
  ReplayProgram make() {
    for (const Place& p : in_)
      walk(p, [this](std::uint32_t t, TraceKind kind, std::uint64_t at, std::uint64_t n) {
        look(t, kind, at, n);
      });
    for (const Place& p : in_)
      walk(p, [this](std::uint32_t, TraceKind kind, std::uint64_t at, std::uint64_t n) {
        touch(kind, at, n);
      });
    next_ = 0;
    std::sort(pages_.begin(), pages_.end());
    pages_.erase(std::unique(pages_.begin(), pages_.end()), pages_.end());
    const std::uint64_t most = max_arena_bytes / page;
    program_.folded = pages_.size() > most;
    page_count_ = std::min<std::uint64_t>(std::max<std::size_t>(pages_.size(), 1), most);
    // A bulk access may reach beyond the last page.
    program_.arena_bytes = page_count_ * page + (largest_bulk_ + page - 1) / page * page;
    number_blocks();
    for (const Place& p : in_) {
      ReplayThread& t = program_.threads[thread_of_[p.stream]];
      const std::uint64_t begin = trace_.threads[p.stream][p.begin];
      const auto first = static_cast<std::uint32_t>(t.ops.size());
      walk(p, [this](std::uint32_t to, TraceKind kind, std::uint64_t at, std::uint64_t n) {
        write(to, kind, at, n);
      });
      std::uint64_t log_bytes = 0;
      for (auto op = t.ops.begin() + first; op != t.ops.end(); ++op)
        log_bytes += op->kind == ReplayKind::write_words ? std::uint64_t{op->n} * 16
                     : op->kind >= ReplayKind::write     ? 16
                                                         : 0;
      program_.largest_log_bytes = std::max(program_.largest_log_bytes, log_bytes);
      const bool update = engine::is_update(begin);
      t.transactions.push_back({first, static_cast<std::uint32_t>(t.ops.size()) - first, update,
                                !update && engine::durability_of(begin) != Durability::async});
    }
    return std::move(program_);
  }

 private:
  struct Block {
    std::uint64_t offset, bytes;
    std::uint32_t thread, freed_by = none;
    bool shared = false;
    std::uint32_t number = none;  // its number within its thread
  };
  template <class F>
  void walk(const Place& p, F&& f) const {
    const auto& words = trace_.threads[p.stream];
    const std::uint32_t t = thread_of_[p.stream];
    for (std::size_t i = p.begin + 2; i < p.end; ++i) {
      const TraceKind kind = engine::kind_of(words[i]);
      const std::uint64_t at = engine::low_of(words[i]);
      f(t, kind, at, engine::has_second(kind) ? words[++i] : 1);
    }
  }
  // Pass one: which block an operation is about, and which threads use each block.
  void look(std::uint32_t t, TraceKind kind, std::uint64_t at, std::uint64_t n) {
    switch (kind) {
      case TraceKind::alloc: {
        const std::uint64_t bytes = block_size(std::min(n, max_bytes));
        // Its free was not recorded.
        for (auto i = live_.lower_bound(at); i != live_.end() && i->first < at + bytes;)
          i = live_.erase(i);
        about_.push_back(static_cast<std::uint32_t>(blocks_.size()));
        live_[at] = about_.back();
        blocks_.push_back({at, bytes, t});
        program_.block_bytes += bytes;
        return;
      }
      case TraceKind::free: {
        const auto found = live_.find(at);
        about_.push_back(found == live_.end() ? none : found->second);
        if (found == live_.end()) return;
        blocks_[found->second].freed_by = t;
        live_.erase(found);
        return;
      }
      default: break;
    }
    const std::uint64_t bytes = n * 8;
    auto i = live_.upper_bound(at);
    if (i != live_.begin()) {
      Block& b = blocks_[(--i)->second];
      if (at + bytes <= b.offset + b.bytes) {
        if (b.thread != t) b.shared = true;
        about_.push_back(i->second);
        return;
      }
    }
    about_.push_back(none);
  }
  // Whether it lies in a block of its own thread; otherwise in the arena.
  [[nodiscard]] bool own(std::uint32_t about) const {
    return about != none && !blocks_[about].shared &&
           (blocks_[about].freed_by == none || blocks_[about].freed_by == blocks_[about].thread);
  }
  // Pass two.
  void touch(TraceKind kind, std::uint64_t at, std::uint64_t n) {
    const std::uint32_t about = about_[next_++];
    if (kind == TraceKind::alloc || kind == TraceKind::free || own(about)) return;
    const std::uint64_t bytes = n * 8;
    if (bytes > 8) largest_bulk_ = std::max(largest_bulk_, bytes);
    for (std::uint64_t p = at / page; p <= (at + bytes - 1) / page; ++p)
      if (pages_.empty() || pages_.back() != p) pages_.push_back(p);
  }
  void number_blocks() {
    for (Block& b : blocks_) {
      ReplayThread& t = program_.threads[b.thread];
      program_.arena_shared += b.shared ? 1 : 0;
      if (b.freed_by == b.thread || (b.freed_by == none && !b.shared)) b.number = t.blocks++;
      if (b.freed_by == none && !b.shared)
        t.leftover.push_back(b.number), t.leftover_bytes += b.bytes;
    }
  }
  // Pass three.
  void write(std::uint32_t t, TraceKind kind, std::uint64_t at, std::uint64_t n) {
    ReplayThread& to = program_.threads[t];
    const std::uint32_t about = about_[next_++];
    if (kind == TraceKind::alloc) {
      const Block& b = blocks_[about];
      const auto bytes = static_cast<std::uint32_t>(std::min(n, max_bytes));
      if (b.number != none)
        to.ops.push_back({ReplayKind::alloc, bytes, b.number, 0});
      else
        to.ops.push_back({ReplayKind::alloc_stray, bytes, 0, 0});
      return;
    }
    if (kind == TraceKind::free) {
      if (about != none && blocks_[about].thread == t) {
        to.ops.push_back({ReplayKind::free, 0, blocks_[about].number, 0});
        return;
      }
      const std::uint64_t bytes = std::min(about != none ? blocks_[about].bytes
                                           : n != 0      ? n
                                                         : 64,
                                           max_bytes);
      auto found = std::find_if(to.ready.begin(), to.ready.end(),
                                [bytes](const auto& r) { return r.bytes == bytes; });
      if (found == to.ready.end()) found = to.ready.insert(found, {bytes, 0});
      ++found->each_pass;
      to.ops.push_back(
          {ReplayKind::free_ready, 0, static_cast<std::uint32_t>(found - to.ready.begin()), 0});
      return;
    }
    const bool in_block = own(about);
    const std::uint64_t word = in_block ? (at - blocks_[about].offset) / 8 : place(at);
    const ReplayKind as = kind == TraceKind::read         ? ReplayKind::read
                          : kind == TraceKind::read_words ? ReplayKind::read_words
                          : kind == TraceKind::write      ? ReplayKind::write
                                                          : ReplayKind::write_words;
    to.ops.push_back({as, static_cast<std::uint32_t>(n), in_block ? blocks_[about].number : 0,
                      static_cast<std::uint32_t>(word)});
  }
  [[nodiscard]] std::uint64_t place(std::uint64_t at) const {
    const auto found = std::lower_bound(pages_.begin(), pages_.end(), at / page);
    const auto index = static_cast<std::uint64_t>(found - pages_.begin()) % page_count_;
    return (index * page + at % page) / 8;
  }

  const engine::WorkloadTrace& trace_;
  const std::vector<Place> in_;
  ReplayProgram program_;
  std::vector<std::uint32_t> thread_of_;  // of each stream
  std::map<std::uint64_t, std::uint32_t> live_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> about_;  // the block of each operation, in order
  std::size_t next_ = 0;
  std::vector<std::uint64_t> pages_;
  std::uint64_t page_count_ = 1, largest_bulk_ = 0;
};

}  // namespace

Workload describe_workload(const engine::WorkloadTrace& trace) {
  Workload w;
  for (const auto& words : trace.threads) {
    if (words.empty()) continue;
    ++w.threads;
    std::uint64_t writes = 0;
    engine::for_each_op(words, [&](TraceKind kind, std::uint64_t low, std::uint64_t n) {
      switch (kind) {
        case TraceKind::begin:
          ++w.transactions;
          ++(engine::is_update(low) ? w.updates : w.views);
          writes = 0;
          break;
        case TraceKind::read: ++w.reads; break;
        case TraceKind::read_words: w.reads += n; break;
        case TraceKind::write: ++w.writes, ++writes; break;
        case TraceKind::write_words: w.writes += n, writes += n; break;
        case TraceKind::alloc: ++w.allocs, w.alloc_bytes += n; break;
        case TraceKind::free: ++w.frees; break;
      }
      w.largest_writes = std::max(w.largest_writes, writes);
    });
  }
  return w;
}

ReplayProgram make_program(const engine::WorkloadTrace& trace, std::uint64_t first,
                           std::uint64_t count) {
  const auto all = places(trace);
  first = std::min<std::uint64_t>(first, all.size());
  return Maker(trace, all, first, std::min<std::uint64_t>(count, all.size() - first)).make();
}

}  // namespace perdure::tool
