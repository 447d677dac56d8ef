// SPDX-License-Identifier: BSD-3-Clause
#include "papers/rewind/adll.hpp"

#include <string>

namespace perdure::papers::rewind {

void Adll::append(std::uint64_t node) noexcept {
  const std::uint64_t after = tail();
  // mutant: adll-last-tail-first
  // It, and the node (ADLL-1), are durable before toAppend (line 5): recovery links the one to the
  // other.
  nvm_.synchronous(anchor_ + last_tail, after);
  // mutant: adll-to-append-first
  nvm_.synchronous(anchor_ + to_append, node);  // from here on the node is in the list (ADLL-2)
  link(node, after);
  nvm_.synchronous(anchor_ + to_append, 0);
}

// Lines 6-8. `after` is the previous tail: the tail itself may have moved already.
void Adll::link(std::uint64_t node, std::uint64_t after) noexcept {
  if (after == 0)
    nvm_.synchronous(anchor_ + head_word, node);
  else
    nvm_.synchronous(after, node);
  nvm_.synchronous(anchor_ + tail_word, node);
}

void Adll::remove(std::uint64_t node) noexcept {
  // mutant: adll-to-remove-first
  nvm_.synchronous(anchor_ + to_remove, node);  // from here on the node is out of the list (ADLL-2)
  unlink(node);
  nvm_.synchronous(anchor_ + to_remove, 0);
}

// The node's own links stay, so that this can be done again.
void Adll::unlink(std::uint64_t node) noexcept {
  const std::uint64_t after = next(node), before = prior(node);
  nvm_.synchronous(before != 0 ? before : anchor_ + head_word, after);
  nvm_.synchronous(after != 0 ? after + 8 : anchor_ + tail_word, before);
}

void Adll::replace(std::uint64_t head, std::uint64_t tail) noexcept {
  nvm_.synchronous(anchor_ + last_tail, tail);  // ADLL-1 holds with it too
  // mutant: adll-to-replace-first
  nvm_.synchronous(anchor_ + to_replace, head);  // from here on the chain is the list (ADLL-2)
  adopt(head);
  nvm_.synchronous(anchor_ + to_replace, 0);
}

void Adll::adopt(std::uint64_t head) noexcept {
  nvm_.synchronous(anchor_ + head_word, head);
  nvm_.synchronous(anchor_ + tail_word, nvm_.value(anchor_ + last_tail));
}

// --- recovery ------------------------------------------------------------------------------------

Status Adll::broken(std::uint64_t place, const char* what) const {
  return failure(
      Code::corrupt, nvm_.medium().path(),
      "a log whose list " + std::string(what) + " at log offset " + std::to_string(place),
      "nodes that lead to each other", "restore a copy");
}

Status Adll::check_anchor(const Nodes& nodes) const {
  unsigned operations = 0;
  for (std::uint64_t word = anchor_; word < anchor_ + anchor_words * 8; word += 8) {
    // mutant: adll-anchor-check
    if (!nvm_.whole(word)) return broken(word, "has a damaged anchor");
    const std::uint64_t node = nvm_.value(word);
    if (node != 0 && !nodes.has(node))
      return broken(word, "has an anchor that leads out of the log");
    if (word >= anchor_ + to_append && node != 0) ++operations;
  }
  // ADLL-3.
  return operations > 1 ? broken(anchor_, "has an anchor of several operations") : Status();
}

Status Adll::check_links(std::uint64_t node, const Nodes& nodes) const {
  for (const std::uint64_t word : {node, node + 8}) {
    // mutant: adll-links-check
    if (!nvm_.whole(word)) return broken(word, "has a damaged link");
    if (const std::uint64_t to = nvm_.value(word); to != 0 && !nodes.has(to))
      return broken(word, "has a link that leads out of the log");
  }
  return {};
}

Status Adll::recover(const Nodes& nodes) {
  if (Status s = check_anchor(nodes); !s.ok()) return s;  // ADLL-4
  if (const std::uint64_t node = nvm_.value(anchor_ + to_append); node != 0) {
    // mutant: adll-append-last-tail
    link(node, nvm_.value(anchor_ + last_tail));
    nvm_.synchronous(anchor_ + to_append, 0);
  }
  if (const std::uint64_t node = nvm_.value(anchor_ + to_remove); node != 0) {
    if (Status s = check_links(node, nodes); !s.ok()) return s;
    unlink(node);
    nvm_.synchronous(anchor_ + to_remove, 0);
  }
  if (const std::uint64_t head = nvm_.value(anchor_ + to_replace); head != 0) {
    adopt(head);
    nvm_.synchronous(anchor_ + to_replace, 0);
  }
  return check(nodes);
}

Status Adll::check(const Nodes& nodes) const {
  std::uint64_t before = 0, count = 0;
  for (std::uint64_t node = head(); node != 0; before = node, node = next(node)) {
    if (Status s = check_links(node, nodes); !s.ok()) return s;
    if (prior(node) != before) return broken(node, "does not lead back");
    if (++count > nodes.most) return broken(node, "has no end");
  }
  return tail() == before ? Status() : broken(tail(), "ends elsewhere than its tail");
}

}  // namespace perdure::papers::rewind
