// SPDX-License-Identifier: BSD-3-Clause
//
// Adll: REWIND's Atomic Doubly-Linked List (section 3.2, Algorithm 1): a list in persistent memory
// whose last operation is done again by recovery, whatever a crash left of it.
//
// A node begins with two words, next and prior; its owner uses the rest. The anchor is six words:
// head, tail, and the last operation (lastTail, toAppend, toRemove, and toReplace, which is not in
// the paper and serves compaction, section 3.3). All are file offsets; 0 means none. Each word is a
// value of NvmStore.
// Crash invariants:
// ADLL-1 A node's own words, started by its owner, are durable before toAppend names it: lastTail's
// fence makes them durable, where the paper has a separate fence before.
// ADLL-2 toAppend, toRemove or toReplace is durable before the first link changes, and is cleared
// after the last link is durable: in between, doing all of it again ends in the same list.
// ADLL-3 There is one operation at a time.
// ADLL-4 Recovery checks each word before it follows it: the anchor's words are whole, name at most
// one operation, and lead to nodes of the arena; so do the nodes' own words. A log of the first
// form has no checks in its words: there recovery may do a wrong operation, but never outside the
// arena.
// Thread safety: none of its own; the log that uses it has a lock.
#pragma once

#include <cstdint>

#include "papers/names.hpp"
#include "papers/rewind/nvm.hpp"
#include "perdure/base/status.hpp"

namespace perdure::papers::rewind {

class Adll {
 public:
  static constexpr std::uint64_t anchor_words = 6, node_words = 2;

  Adll(NvmStore& nvm, std::uint64_t anchor) noexcept : nvm_(nvm), anchor_(anchor) {}

  [[nodiscard]] std::uint64_t head() const noexcept { return nvm_.value(anchor_ + head_word); }
  [[nodiscard]] std::uint64_t tail() const noexcept { return nvm_.value(anchor_ + tail_word); }
  [[nodiscard]] std::uint64_t next(std::uint64_t node) const noexcept { return nvm_.value(node); }
  [[nodiscard]] std::uint64_t prior(std::uint64_t node) const noexcept {
    return nvm_.value(node + 8);
  }

  /// The two words with which a node must begin that is about to be appended.
  struct Links {
    std::uint64_t next, prior;
  };
  [[nodiscard]] Links links_of_new() const noexcept { return {0, tail()}; }

  /// Algorithm 1 from line 4 on. All of `node` was started, and so was what it points to.
  void append(std::uint64_t node) noexcept;
  void remove(std::uint64_t node) noexcept;
  /// Makes the list the chain from `head` to `tail`, which was started. The caller gets the nodes
  /// of the old list back.
  void replace(std::uint64_t head, std::uint64_t tail) noexcept;
  /// Where nodes may lie: in [from, to), at multiples of 64, at most `most` of them.
  struct Nodes {
    std::uint64_t from, to, most;
    [[nodiscard]] bool has(std::uint64_t node) const noexcept {
      return node >= from && node < to && node % 64 == 0;
    }
  };
  /// Does the interrupted operation again, if there is one, then walks the list both ways. It may
  /// be interrupted itself. Returns `corrupt` where no crash leaves what it finds (ADLL-4): a word
  /// that is damaged or leads elsewhere, an operation that is impossible, a node that does not lead
  /// back, a list without an end.
  [[nodiscard]] Status recover(const Nodes& nodes);

 private:
  static constexpr std::uint64_t head_word = 0, tail_word = 8, last_tail = 16, to_append = 24,
                                 to_remove = 32, to_replace = 40;
  void link(std::uint64_t node, std::uint64_t after) noexcept;
  void unlink(std::uint64_t node) noexcept;
  void adopt(std::uint64_t head) noexcept;
  [[nodiscard]] Status broken(std::uint64_t place, const char* what) const;
  [[nodiscard]] Status check_anchor(const Nodes& nodes) const;
  [[nodiscard]] Status check_links(std::uint64_t node, const Nodes& nodes) const;
  [[nodiscard]] Status check(const Nodes& nodes) const;

  NvmStore& nvm_;
  const std::uint64_t anchor_;
};

}  // namespace perdure::papers::rewind
