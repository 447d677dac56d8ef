// SPDX-License-Identifier: BSD-3-Clause
//
// The walks over multimap, deque, priority_queue and hooked_list.
#include <algorithm>

#include "perdure/inspect/walk.hpp"

namespace perdure::inspect {
namespace {

/// Passes on what a walk over the inner map meets, but for its entries.
class Inner : public Visitor {
 public:
  explicit Inner(Visitor& outer) : outer_(outer) {}
  void block(Address at, std::uint64_t bytes) override { outer_.block(at, bytes); }
  void problem(const std::string& text) override { outer_.problem(text); }

 protected:
  Visitor& outer_;
};

}  // namespace

/// multimap.hpp: the next number, and a map of (key, number).
void Walker::multimap(const Layout& map, Address at, Visitor& visitor) {
  class Entries final : public Inner {
   public:
    Entries(Walker& walker, Visitor& outer, std::uint64_t next, std::uint64_t number_at)
        : Inner(outer), walker_(walker), next_(next), number_at_(number_at) {}
    void separator(Address key) override { outer_.separator(key); }
    bool entry(const Entry& entry) override {
      const auto number = walker_.read<std::uint64_t>(entry.key + number_at_);
      if (number >= next_)
        outer_.problem("multimap: an element has number " + std::to_string(number) +
                       ", expected less than the next one, " + std::to_string(next_));
      return outer_.entry(entry);  // the key is the first part of (key, number)
    }

   private:
    Walker& walker_;
    const std::uint64_t next_, number_at_;
  };
  const Layout& inner = *map.parts[2].type;
  Entries entries(*this, visitor, read<std::uint64_t>(at), inner.element().parts[1].at);
  each(inner, at + inner_map_at, entries);
}

/// deque.hpp: begin, end, and a map from blocks' numbers to their addresses.
void Walker::deque(const Layout& deque, Address at, Visitor& visitor) {
  const auto from = read<std::int64_t>(at), to = read<std::int64_t>(at + 8);
  const auto slots = static_cast<std::int64_t>(deque.slots);
  if (from > to) {
    visitor.problem("deque: it begins at " + std::to_string(from) + ", behind its end, " +
                    std::to_string(to));
    return;
  }
  class Blocks final : public Inner {
   public:
    Blocks(Walker& walker, const Layout& deque, Visitor& outer, std::int64_t from, std::int64_t to)
        : Inner(outer), walker_(walker), deque_(deque), at_(from), to_(to) {}
    bool entry(const Entry& entry) override {
      const auto number = walker_.read<std::int64_t>(entry.key);
      const auto block = walker_.read<Address>(entry.value);
      const auto slots = static_cast<std::int64_t>(deque_.slots);
      if (block != 0) walker_.block(outer_, block, deque_.node_bytes);
      if (block == 0 || at_ >= to_ || number != floor(at_, slots)) {
        outer_.problem("deque: found block " + std::to_string(number) + ", expected " +
                       (at_ >= to_ ? "none" : "block " + std::to_string(floor(at_, slots))));
        return !(stopped = true);
      }
      do {
        const auto slot = static_cast<std::uint64_t>(at_ & (slots - 1));
        const std::uint64_t bytes = std::max<std::uint64_t>(deque_.element().size, 1);
        if (!outer_.entry({0, block + slot * bytes})) return !(stopped = true);
      } while (++at_ < to_ && (at_ & (slots - 1)) != 0);
      return true;
    }
    /// Whether elements are missing.
    [[nodiscard]] bool missing() const { return !stopped && at_ < to_; }
    /// at / slots, rounded down.
    static std::int64_t floor(std::int64_t at, std::int64_t slots) {
      return at / slots - (at % slots < 0 ? 1 : 0);
    }
    bool stopped = false;

   private:
    Walker& walker_;
    const Layout& deque_;
    std::int64_t at_;
    const std::int64_t to_;
  };
  Blocks blocks(*this, deque, visitor, from, to);
  each(*deque.parts[1].type, at + inner_map_at, blocks);
  if (blocks.missing())
    visitor.problem("deque: blocks are missing of the positions from " +
                    std::to_string(Blocks::floor(from, slots) * slots) + " to " +
                    std::to_string(to));
}

/// priority_queue.hpp: size, segments. HEAPQ-1: no element is above its parent.
void Walker::priority_queue(const Layout& queue, Address at, Visitor& visitor) {
  class Elements final : public Inner {
   public:
    Elements(Walker& walker, const Layout& queue, Visitor& outer, Address segments)
        : Inner(outer), walker_(walker), queue_(queue), segments_(segments) {}
    bool entry(const Entry& entry) override {
      if (queue_.ordered && index_ != 0 && !reported_) {
        const std::uint64_t bytes = std::max<std::uint64_t>(queue_.element().size, 1);
        const Address parent = walker_.segment_at(segments_, (index_ - 1) / 2, bytes);
        const int order = walker_.compare(queue_.element(), parent, entry.value);
        reported_ = queue_.reversed ? order > 0 : order < 0;
        if (reported_)
          outer_.problem("priority_queue: element " + std::to_string(index_) +
                         " is above its parent");
      }
      ++index_;
      return outer_.entry(entry);
    }

   private:
    Walker& walker_;
    const Layout& queue_;
    const Address segments_;
    std::uint64_t index_ = 0;
    bool reported_ = false;
  };
  Elements elements(*this, queue, visitor, at + 8);
  vector(queue, at, elements);
}

/// hooked_list.hpp: a block of its own: first, last, size. A hook: previous, next, its list's
/// block.
void Walker::hooked_list(const Layout& list, Address field, Visitor& visitor) {
  const auto at = read<Address>(field);
  if (at == 0) return;
  block(visitor, at, 24);
  const auto last = read<Address>(at + 8);
  const auto n = read<std::uint64_t>(at + 16);
  std::uint64_t found = 0;
  Address before = 0;
  for (auto hook = read<Address>(at); hook != 0;) {
    step();
    const std::string element = "hooked_list: element " + std::to_string(found);
    if (read<Address>(hook) != before)
      return visitor.problem(element + " does not point back at the one before it");
    if (read<Address>(hook + 16) != at) return visitor.problem(element + " is of another list");
    if (++found > n)
      return visitor.problem("hooked_list: more elements than its size, " + std::to_string(n));
    before = hook;
    if (!visitor.entry({0, hook - list.hook_at})) return;
    hook = read<Address>(hook + 8);
  }
  if (last != before) visitor.problem("hooked_list: its last element is not where the chain ends");
  if (found != n)
    visitor.problem("hooked_list: found " + std::to_string(found) + " elements, its size is " +
                    std::to_string(n));
}

std::string Walker::hook_problem(Address hook) {
  const auto before = read<Address>(hook), after = read<Address>(hook + 8);
  const auto list = read<Address>(hook + 16);
  if (list == 0)
    return before == 0 && after == 0 ? "" : "list_hook: it has neighbours, and is in no list";
  if (read<Address>(before == 0 ? list : before + 8) != hook ||
      read<Address>(after == 0 ? list + 8 : after) != hook)
    return "list_hook: a neighbour does not lead to it";
  return {};
}

}  // namespace perdure::inspect
