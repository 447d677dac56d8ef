// SPDX-License-Identifier: BSD-3-Clause
#include "testing/explorer.hpp"

#include <algorithm>
#include <cassert>

namespace perdure::crash {

using Kind = medium::TraceEvent::Kind;

Subject::~Subject() = default;

Counts& Counts::operator+=(const Counts& o) noexcept {
  points += o.points;
  images += o.images;
  recoveries += o.recoveries;
  distinct += o.distinct;
  for (unsigned d = 0; d <= max_depth; ++d) at_depth[d] += o.at_depth[d];
  deepest = std::max(deepest, o.deepest);
  seconds += o.seconds;
  return *this;
}

Explorer::Explorer(Arena& arena, Image& image, Subject& subject, const ExploreOptions& options,
                   Seen& seen)
    : arena_(arena),
      image_(image),
      subject_(subject),
      options_(options),
      seen_(seen),
      random_(options.seed) {
  for (unsigned d = 0; d <= std::min(options.depth, max_depth); ++d)
    levels_.push_back(std::make_unique<Level>(Level{Persistency(image), {}, {}}));
}

void Explorer::run(const medium::Trace& trace) {
  start_ = std::chrono::steady_clock::now();
  level(trace, Crash());
  counts_.seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

bool Explorer::over() const {
  if (!failure_.empty() || counts_.recoveries >= options_.max_recoveries) return true;
  return counts_.recoveries % 64 == 0 &&
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() >
             options_.seconds;
}

void Explorer::level(const medium::Trace& trace, Crash crash) {
  Level& here = *levels_[crash.depth];
  const std::size_t mark = image_.mark();
  const std::uint64_t data_bytes = image_.data_bytes();
  here.pending.reset();
  const auto at = [&](std::size_t i, const char* what) {
    here.where = std::string(what) + " (event " + std::to_string(i) + " of " +
                 std::to_string(trace.events.size()) + ")";
    point(here, crash);
  };
  for (std::size_t i = 0; i < trace.events.size() && !over(); ++i) {
    const medium::TraceEvent& e = trace.events[i];
    switch (e.kind) {
      case Kind::begin:
        crash.created = true;
        if (e.count == 0) crash.most = std::max(crash.most, e.offset + 1);
        break;
      case Kind::done:
        crash.created = true;
        assert(e.count < max_threads);
        crash.min_of[e.count] = std::max(crash.min_of[e.count], e.offset);
        crash.least = crash.min_of[0];
        at(i, "at an acknowledgement");
        break;
      case Kind::fence: at(i, "before a fence"); break;
      default: break;
    }
    here.pending.apply(trace, e);
  }
  if (!over()) at(trace.events.size(), "at the end");
  image_.back_to(mark);
  image_.data_bytes(data_bytes);
}

void Explorer::point(Level& here, const Crash& crash) {
  if (crash.depth == 0 && (crash.most < options_.from || crash.most > options_.to)) return;
  if (seen_points_++ % options_.every != options_.seed % options_.every) return;
  ++counts_.points;
  const Limits& limits = crash.depth == 0 ? options_.outer : options_.nested;
  std::vector<std::uint32_t> lines = here.pending.lines();
  std::sort(lines.begin(), lines.end());
  std::vector<std::vector<Variant>> variants;
  std::size_t combinations = 1;
  for (std::size_t i = 0; i < lines.size();) {
    variants.emplace_back();
    here.pending.variants(lines[i], options_.model, limits.of_line, random_, variants.back());
    if (variants.back().empty()) {  // it holds only what is durable already
      variants.pop_back();
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    combinations = std::min<std::size_t>(combinations * (variants.back().size() + 1), 1 << 20);
    ++i;
  }
  const std::size_t n = lines.size();
  std::vector<Word> overlay;
  // choice[i] = 0 means the durable contents, v > 0 means variant v - 1.
  std::vector<std::size_t> choice(n, 0);
  const auto try_choice = [&] {
    if (over()) return;
    overlay.clear();
    for (std::size_t i = 0; i < n; ++i) {
      if (choice[i] == 0) continue;
      const Variant& v = variants[i][choice[i] - 1];
      for (unsigned w = 0; w < 8; ++w)
        if ((v.mask >> w & 1) != 0) overlay.push_back({lines[i] * 8 + w, v.value[w]});
    }
    image(crash, overlay);
  };
  if (combinations <= limits.combinations) {
    for (std::size_t c = 0; c < combinations && !over(); ++c) {
      std::size_t rest = c;
      for (std::size_t i = 0; i < n; ++i) {
        choice[i] = rest % (variants[i].size() + 1);
        rest /= variants[i].size() + 1;
      }
      try_choice();
    }
    return;
  }
  const auto none = [&] { std::fill(choice.begin(), choice.end(), 0); };
  const auto all = [&] {
    for (std::size_t i = 0; i < n; ++i) choice[i] = variants[i].size();
  };
  const auto any = [&](std::size_t i) { return random_() % (variants[i].size() + 1); };
  none();
  try_choice();
  all();
  try_choice();
  for (std::size_t k = 0; k < limits.singles && !over(); ++k) {
    const std::size_t i = n <= limits.singles ? k % n : random_() % n;
    none();
    choice[i] = k % 2 == 0 ? variants[i].size() : 1 + random_() % variants[i].size();
    try_choice();
    all();
    choice[i] = k % 2 == 0 ? 0 : any(i);
    try_choice();
  }
  if (n > 2) {
    // The log alone and the data region alone; one page alone and all others: a file system does
    // this.
    const std::uint64_t page = lines[random_() % n] / 64;
    const std::uint64_t data = arena_.log_bytes() / 64;
    for (unsigned side = 0; side < 4 && !over(); ++side) {
      for (std::size_t i = 0; i < n; ++i) {
        const bool in = side < 2 ? lines[i] >= data : lines[i] / 64 == page;
        choice[i] = in == (side % 2 == 0) ? variants[i].size() : 0;
      }
      try_choice();
    }
  }
  for (std::size_t k = 0; k < limits.randoms && !over(); ++k) {
    const unsigned density = 1 + static_cast<unsigned>(random_() % 7);  // eighths of the lines
    for (std::size_t i = 0; i < n; ++i)
      choice[i] = random_() % 8 < density ? any(i) : k % 2 == 0 ? 0 : variants[i].size();
    try_choice();
  }
}

void Explorer::image(const Crash& crash, const std::vector<Word>& overlay) {
  ++counts_.images;
  std::uint64_t hash = image_.hash();
  for (const Word& w : overlay) hash = image_.hash_with(hash, w);
  // The key contains everything that the verdict depends on.
  std::uint64_t key = base::mix(hash + image_.data_bytes()) ^
                      base::mix(crash.digest + crash.depth * 4 + (crash.created ? 2 : 0) +
                                (crash.has_digest ? 1 : 0));
  for (const std::uint64_t n : crash.min_of) key = base::mix(key + n);
  if (!seen_.judged.insert(key).second) return;
  if (seen_.images.insert(hash).second) ++counts_.distinct;
  ++counts_.recoveries;
  const bool cut_short =
      crash.depth + 1 < levels_.size() &&
      counts_.at_depth[crash.depth] % std::max(1U, options_.nest_every[crash.depth]) == 0;
  ++counts_.at_depth[crash.depth];
  counts_.deepest = std::max(counts_.deepest, crash.depth);
  medium::Trace* const trace = cut_short ? &levels_[crash.depth + 1]->trace : nullptr;
  if (trace != nullptr) trace->clear();
  arena_.load(image_, overlay);
  const Verdict verdict =
      subject_.judge(arena_.open(image_.data_bytes(), trace), arena_.data(), crash);
  std::string problem = verdict.problem;
  if (problem.empty() && crash.has_digest && crash.digest != verdict.digest)
    problem =
        "a recovery that was cut short and run again ends in another state than one that was not "
        "(LAW-5)";
  if (!problem.empty()) {
    failure_ = problem + "\n  a power cut " + levels_[0]->where;
    for (unsigned d = 1; d <= crash.depth; ++d)
      failure_ += "\n  then one in recovery, " + levels_[d]->where;
    failure_ += "\n  acknowledged: " + std::to_string(crash.least) +
                (crash.created ? " steps; begun: " : " steps, and no pool yet; begun: ") +
                std::to_string(crash.most) + "; left " + described(overlay) +
                "\n  recovery number " + std::to_string(counts_.recoveries);
    return;
  }
  if (!cut_short) return;
  const std::size_t mark = image_.mark();
  for (const Word& w : overlay) image_.set(w.index, w.value);
  Crash inner = crash;
  ++inner.depth;
  inner.has_digest = true;
  inner.digest = verdict.digest;
  level(*trace, inner);
  image_.back_to(mark);
}

std::string Explorer::described(const std::vector<Word>& overlay) const {
  std::string text = "what is durable";
  std::size_t shown = 0;
  for (const Word& w : overlay) {
    if (++shown > 24) return text + " ... (" + std::to_string(overlay.size()) + " words in all)";
    const std::uint64_t offset = std::uint64_t{w.index} * 8;
    text += (shown == 1 ? " and the words at " : ", ");
    text += offset < arena_.log_bytes() ? "log " + std::to_string(offset)
                                        : "data " + std::to_string(offset - arena_.log_bytes());
  }
  return text;
}

}  // namespace perdure::crash
