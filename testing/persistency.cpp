// SPDX-License-Identifier: BSD-3-Clause
#include "testing/persistency.hpp"

#include <algorithm>
#include <cstring>

namespace perdure::medium {

using Kind = TraceEvent::Kind;

void Persistency::apply(const Trace& trace, const TraceEvent& event) {
  switch (event.kind) {
    case Kind::store:
    case Kind::stream: return wrote(trace, event);
    case Kind::flush: return flushed(event);
    case Kind::fence: return fenced(event.thread);
    case Kind::killed: return killed();
    case Kind::lost: return lost(trace, event);
    case Kind::grow: return image_.data_bytes(event.offset);
    case Kind::begin:
    case Kind::done: return;
  }
}

bool Persistency::pending(std::uint64_t word) const noexcept {
  const std::uint32_t slot = word / 8 < slot_.size() ? slot_[word / 8] : 0;
  if (slot == 0) return false;
  const auto& stores = lines_[slot - 1].stores;
  return std::any_of(stores.begin(), stores.end(),
                     [&](const Store& s) { return s.word == word % 8; });
}

void Persistency::reset() {
  while (!open_.empty()) {
    const std::uint32_t line = open_.back();
    lines_[slot_[line] - 1].stores.clear();
    close(line);
  }
  threads_.clear();
}

void Persistency::wrote(const Trace& trace, const TraceEvent& event) {
  const bool streamed = event.kind == Kind::stream;
  for (std::uint32_t i = 0; i < event.count; ++i) {
    const std::uint64_t word = event.offset / 8 + i;
    const auto line = static_cast<std::uint32_t>(word / 8);
    if (slot_[line] == 0) {
      if (free_.empty()) {
        lines_.emplace_back();
        free_.push_back(static_cast<std::uint32_t>(lines_.size()));
      }
      slot_[line] = free_.back();
      free_.pop_back();
      lines_[slot_[line] - 1].at = static_cast<std::uint32_t>(open_.size());
      open_.push_back(line);
    }
    Line& l = lines_[slot_[line] - 1];
    if (streamed && (i == 0 || word % 8 == 0)) threads_[event.thread].streamed.push_back(line);
    l.stores.push_back({trace.words[event.data + i], ++time_, event.thread,
                        static_cast<std::uint8_t>(word % 8), streamed});
  }
}

void Persistency::flushed(const TraceEvent& event) {
  auto& captures = threads_[event.thread].captures;
  for (std::uint32_t i = 0; i < event.count; ++i) {
    const auto line = static_cast<std::uint32_t>(event.offset / 64 + i);
    if (slot_[line] != 0) captures.push_back({line, time_});
  }
}

void Persistency::fenced(std::uint16_t thread) {
  Thread& t = threads_[thread];
  for (const Capture& c : t.captures)
    settle(c.line, [&](const Store& s) { return (!s.streamed || s.orphan) && s.time <= c.time; });
  for (const std::uint32_t line : t.streamed)
    settle(line, [&](const Store& s) { return s.streamed && !s.orphan && s.thread == thread; });
  t.captures.clear();
  t.streamed.clear();
}

void Persistency::killed() {
  threads_.clear();
  for (const std::uint32_t line : open_)
    for (Store& s : lines_[slot_[line] - 1].stores) s.orphan = true;
}

void Persistency::lost(const Trace& trace, const TraceEvent& event) {
  for (std::uint32_t i = 0; i < event.count; ++i) {
    const std::uint64_t word = event.offset / 8 + i;
    const auto line = static_cast<std::uint32_t>(word / 8);
    if (slot_[line] == 0) continue;
    auto& stores = lines_[slot_[line] - 1].stores;
    const auto seen = std::find_if(stores.rbegin(), stores.rend(), [&](const Store& s) {
      return s.word == word % 8 && s.value == trace.words[event.data + i];
    });
    const std::uint64_t last = seen == stores.rend() ? 0 : seen->time;
    std::erase_if(stores, [&](const Store& s) { return s.word == word % 8 && s.time > last; });
    if (stores.empty()) close(line);
  }
}

// Moves the stores of the line that are sure into the image, and removes those that they overwrote.
template <class Sure>
void Persistency::settle(std::uint32_t line, Sure&& sure) {
  if (slot_[line] == 0) return;
  Line& l = lines_[slot_[line] - 1];
  std::array<std::uint64_t, 8> last{};  // per word: the time of its last sure store
  for (const Store& s : l.stores)
    if (sure(s)) {
      last[s.word] = s.time;
      image_.set(std::uint64_t{line} * 8 + s.word, s.value);
    }
  std::erase_if(l.stores, [&](const Store& s) { return s.time <= last[s.word]; });
  if (l.stores.empty()) close(line);
}

void Persistency::close(std::uint32_t line) {
  const std::uint32_t slot = slot_[line];
  const std::uint32_t at = lines_[slot - 1].at;
  open_[at] = open_.back();
  lines_[slot_[open_[at]] - 1].at = at;
  open_.pop_back();
  slot_[line] = 0;
  free_.push_back(slot);
}

// Builds the line with the stores that `include` selects. Returns false if that equals the durable
// contents.
template <class Include>
bool Persistency::compose(const Line& line, std::uint32_t index, Include&& include,
                          Variant& v) const {
  v.mask = 0;
  for (std::size_t i = 0; i < line.stores.size(); ++i) {
    if (!include(i)) continue;
    const Store& s = line.stores[i];
    v.mask = static_cast<std::uint8_t>(v.mask | 1U << s.word);
    v.value[s.word] = s.value;
  }
  for (unsigned w = 0; w < 8; ++w)
    if ((v.mask >> w & 1) != 0 && image_.word(std::uint64_t{index} * 8 + w) == v.value[w])
      v.mask = static_cast<std::uint8_t>(v.mask & ~(1U << w));
  for (unsigned w = 0; w < 8; ++w)
    if ((v.mask >> w & 1) == 0) v.value[w] = 0;
  return v.mask != 0;
}

void Persistency::variants(std::uint32_t index, Model model, std::size_t most, Random& random,
                           std::vector<Variant>& out) const {
  out.clear();
  if (slot_[index] == 0) return;
  const Line& line = lines_[slot_[index] - 1];
  const std::size_t n = line.stores.size();
  // px86: a choice is the number of ordinary stores, and the set of streamed ones. adversarial: one
  // store of each word, or none.
  std::vector<std::size_t> ordinary, streamed;
  std::array<std::vector<std::size_t>, 8> of_word;
  for (std::size_t i = 0; i < n; ++i) {
    (line.stores[i].streamed ? streamed : ordinary).push_back(i);
    of_word[line.stores[i].word].push_back(i);
  }
  Variant v;
  const auto add = [&](auto&& include) {
    if (!compose(line, index, include, v)) return;
    const auto same = [&](const Variant& o) { return o.mask == v.mask && o.value == v.value; };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back(v);
  };
  std::vector<bool> in(n);
  const auto add_in = [&] { add([&](std::size_t i) { return in[i]; }); };
  const auto prefix = [&](std::size_t k) {
    for (std::size_t i = 0; i < ordinary.size(); ++i) in[ordinary[i]] = i < k;
  };
  if (model == Model::px86) {
    const bool few = streamed.size() < 16 && (ordinary.size() + 1) << streamed.size() <= most + 1;
    if (few) {
      for (std::size_t k = 0; k <= ordinary.size(); ++k)
        for (std::size_t set = 0; set < std::size_t{1} << streamed.size(); ++set) {
          prefix(k);
          for (std::size_t i = 0; i < streamed.size(); ++i) in[streamed[i]] = (set >> i & 1) != 0;
          add_in();
        }
    } else {
      for (std::size_t tries = 0; tries < 4 * most && out.size() + 1 < most; ++tries) {
        prefix(random() % (ordinary.size() + 1));
        const unsigned how = static_cast<unsigned>(random() % 4);
        const std::size_t one = streamed.empty() ? 0 : random() % streamed.size();
        for (std::size_t i = 0; i < streamed.size(); ++i)
          in[streamed[i]] = how == 0   ? i == one
                            : how == 1 ? i != one
                            : how == 2 ? i <= one
                                       : random() % 2 == 0;
        add_in();
      }
    }
  } else {
    std::size_t count = 1;
    for (const auto& stores : of_word)
      count = std::min<std::size_t>(count * (stores.size() + 1), 1 << 20);
    std::array<std::size_t, 8> pick{};
    const auto add_pick = [&] {
      std::fill(in.begin(), in.end(), false);
      for (unsigned w = 0; w < 8; ++w)
        if (pick[w] != 0) in[of_word[w][pick[w] - 1]] = true;
      add_in();
    };
    if (count <= most + 1) {
      for (std::size_t c = 0; c < count; ++c) {
        std::size_t rest = c;
        for (unsigned w = 0; w < 8; ++w) {
          pick[w] = rest % (of_word[w].size() + 1);
          rest /= of_word[w].size() + 1;
        }
        add_pick();
      }
    } else {
      for (std::size_t tries = 0; tries < 4 * most && out.size() + 1 < most; ++tries) {
        const unsigned how = static_cast<unsigned>(random() % 3),
                       one = static_cast<unsigned>(random() % 8);
        for (unsigned w = 0; w < 8; ++w) {
          const std::size_t any = random() % (of_word[w].size() + 1);
          pick[w] = how == 0   ? (w == one ? of_word[w].size() : 0)
                    : how == 1 ? (w == one ? any : of_word[w].size())
                               : any;
        }
        add_pick();
      }
    }
  }
  // The line with all its stores comes last, once.
  if (!compose(line, index, [](std::size_t) { return true; }, v)) return;
  std::erase_if(out, [&](const Variant& o) { return o.mask == v.mask && o.value == v.value; });
  out.push_back(v);
}

}  // namespace perdure::medium
