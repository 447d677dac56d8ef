// SPDX-License-Identifier: BSD-3-Clause
#include "papers/rewind/aavlt.hpp"

#include <bit>
#include <string>

namespace perdure::papers::rewind {

// An AVL tree of n nodes is less than 1.4405 log2(n + 2) high (Knuth, TAOCP 3, 6.2.3). On the way
// back a double rotation changes eight words: three heights, four links, and the link from above.
std::uint64_t AtomicAvlTree::max_writes(std::uint64_t size) noexcept {
  const auto bits = static_cast<std::uint64_t>(std::bit_width(size + 2));
  return (bits * 37 / 25 + 1) * 8 + 4;
}

std::uint64_t AtomicAvlTree::get(std::uint64_t at) const noexcept {
  for (std::size_t i = writes_.size(); i-- > 0;)
    if (writes_[i].at == at) return writes_[i].value;
  return nvm_.value(at);
}

void AtomicAvlTree::set(std::uint64_t at, std::uint64_t value) noexcept {
  for (Write& w : writes_)
    if (w.at == at) {
      w.value = value;
      return;
    }
  if (nvm_.value(at) != value) writes_.push_back({at, value});
}

// --- the tree ------------------------------------------------------------------------------------

void AtomicAvlTree::insert(std::uint64_t key, std::uint64_t record) noexcept {
  writes_.clear();
  const std::uint64_t node = arena_.take_line();
  const auto word = [&](std::uint64_t at, std::uint64_t value) {
    return nvm_.word_of(node + at, value);
  };
  const std::uint64_t words[8] = {word(key_word, key), word(left_word, 0), word(right_word, 0),
                                  word(height_word, 1), word(record_word, record)};
  // The node is durable with the first record of the lower log, before a link to it.
  nvm_.start_line(node, words);
  set(root_, inserted(get(root_), key, node));
  ++size_;
  carry_out();
}

std::uint64_t AtomicAvlTree::inserted(std::uint64_t node, std::uint64_t key,
                                      std::uint64_t added) noexcept {
  if (node == 0) return added;
  const std::uint64_t side = node + (key < get(node + key_word) ? left_word : right_word);
  set(side, inserted(get(side), key, added));
  return balanced(node);
}

void AtomicAvlTree::remove(std::uint64_t key) noexcept {
  writes_.clear();
  set(root_, removed(get(root_), key));
  --size_;
  carry_out();
  // Only now: until END, another use of the line could have been undone.
  arena_.give_line(gone_);
}

std::uint64_t AtomicAvlTree::removed(std::uint64_t node, std::uint64_t key) noexcept {
  const std::uint64_t here = get(node + key_word), left = get(node + left_word),
                      right = get(node + right_word);
  if (key < here) {
    set(node + left_word, removed(left, key));
  } else if (key > here) {
    set(node + right_word, removed(right, key));
  } else {
    gone_ = node;
    if (left == 0 || right == 0) return left != 0 ? left : right;
    std::uint64_t heir = 0;
    const std::uint64_t rest = without_least(right, heir);
    set(heir + right_word, rest);
    set(heir + left_word, left);
    return balanced(heir);
  }
  return balanced(node);
}

std::uint64_t AtomicAvlTree::without_least(std::uint64_t node, std::uint64_t& least) noexcept {
  const std::uint64_t left = get(node + left_word);
  if (left == 0) {
    least = node;
    return get(node + right_word);
  }
  set(node + left_word, without_least(left, least));
  return balanced(node);
}

std::uint64_t AtomicAvlTree::balanced(std::uint64_t node) noexcept {
  const std::uint64_t left = height(get(node + left_word)), right = height(get(node + right_word));
  if (left > right + 1) return turned(node, left_word, right_word);
  if (right > left + 1) return turned(node, right_word, left_word);
  set(node + height_word, (left > right ? left : right) + 1);
  return node;
}

// The child on the `up` side, which is too high, takes the node's place; where its inner side is
// the higher one, that side is rotated first.
std::uint64_t AtomicAvlTree::turned(std::uint64_t node, std::uint64_t up,
                                    std::uint64_t down) noexcept {
  std::uint64_t child = get(node + up);
  const auto settle = [this](std::uint64_t n) {
    const std::uint64_t left = height(get(n + left_word)), right = height(get(n + right_word));
    set(n + height_word, (left > right ? left : right) + 1);
  };
  if (height(get(child + down)) > height(get(child + up))) {
    const std::uint64_t inner = get(child + down);
    set(child + down, get(inner + up));
    set(inner + up, child);
    settle(child);
    child = inner;
  }
  set(node + up, get(child + down));
  set(child + down, node);
  settle(node);
  settle(child);
  return child;
}

std::uint64_t AtomicAvlTree::find(std::uint64_t key) const noexcept {
  std::uint64_t node = nvm_.value(root_);
  while (node != 0 && nvm_.value(node + key_word) != key)
    node = nvm_.value(node + (key < nvm_.value(node + key_word) ? left_word : right_word));
  return node == 0 ? 0 : nvm_.value(node + record_word);
}

std::uint64_t AtomicAvlTree::above(std::uint64_t key) const noexcept {
  std::uint64_t found = 0;
  for (std::uint64_t node = nvm_.value(root_); node != 0;) {
    const bool greater = nvm_.value(node + key_word) > key;
    if (greater) found = nvm_.value(node + record_word);
    node = nvm_.value(node + (greater ? left_word : right_word));
  }
  return found;
}

std::uint64_t AtomicAvlTree::below(std::uint64_t key) const noexcept {
  std::uint64_t found = 0;
  for (std::uint64_t node = nvm_.value(root_); node != 0;) {
    const bool less = nvm_.value(node + key_word) < key;
    if (less) found = nvm_.value(node + record_word);
    node = nvm_.value(node + (less ? right_word : left_word));
  }
  return found;
}

// --- an operation --------------------------------------------------------------------------------

// Starts a record's line, and returns its place.
std::uint64_t AtomicAvlTree::start(const AriesRecord& record) noexcept {
  const std::uint64_t at = arena_.take_line();
  AriesRecord sealed = record;
  sealed.seal(seed_, at);
  nvm_.start_line(at, sealed.words);
  return at;
}

void AtomicAvlTree::carry_out() noexcept {
  records_.clear();
  for (const Write& w : writes_) {
    AriesRecord r = AriesRecord::make(AriesType::update, ++lsn_, 0);
    r.words[3] = w.at;
    r.words[4] = nvm_.word(w.at);
    r.words[5] = nvm_.word_of(w.at, w.value);
    records_.push_back(start(r));
  }
  // mutant: aavlt-records-before-stores
  log_.append_all(records_);  // AAVLT-1: the records before the first store
  // mutant: aavlt-stores-before-end
  for (const Write& w : writes_) nvm_.start(w.at, w.value);
  // mutant: aavlt-stores-before-end-record
  append_end();  // AAVLT-2: the started stores are durable with the record, before a pointer to it
  clear();
}

void AtomicAvlTree::append_end() noexcept {
  const std::uint64_t end = start(AriesRecord::make(AriesType::end, ++lsn_, 0));
  log_.append_all({&end, 1});
}

// AAVLT-3: END, the log's last record, is removed when the removal of the others is durable. The
// lines are given back behind all of it: a gap that is not durable leads to its record.
void AtomicAvlTree::clear() noexcept {
  records_.clear();
  const PointerLog::At last = log_.last();
  // After a failure of the medium nothing is removed.
  for (auto at = log_.first(); at && !(at == last) && !nvm_.failed();) {
    const auto here = at;
    at = log_.next(at);
    records_.push_back(log_.record(here));
    log_.remove_soon(here);
  }
  // mutant: aavlt-end-removed-last
  log_.settle();
  if (!last || nvm_.failed()) return;
  records_.push_back(log_.record(last));
  log_.remove(last);
  if (nvm_.failed()) return;
  for (const std::uint64_t record : records_) arena_.give_line(record);
}

// --- recovery ------------------------------------------------------------------------------------

Status AtomicAvlTree::recover() {
  const auto broken = [&](const std::string& what) {
    return failure(Code::corrupt, nvm_.medium().path(), "a log index " + what,
                   "what its last operation can have left", "restore a copy");
  };
  bool finished = false;
  std::uint64_t before = 0;
  for (auto at = log_.first(); at; at = log_.next(at)) {
    const std::uint64_t place = log_.record(at);
    if (!arena_.mark_line(place))
      return broken("whose log names log offset " + std::to_string(place));
    const auto& r = *reinterpret_cast<const AriesRecord*>(nvm_.medium().at(place));
    if (!r.whole(seed_, place) || r.lsn() <= before || finished ||
        (r.type() == AriesType::update && !has(r.address())))
      return broken("with a damaged record at log offset " + std::to_string(place));
    before = r.lsn();
    finished = r.type() == AriesType::end;
  }
  lsn_ = before;
  // mutant: aavlt-ended-not-undone
  if (!finished)
    for (auto at = log_.last(); at; at = log_.prior(at)) {
      const auto& r = *reinterpret_cast<const AriesRecord*>(nvm_.medium().at(log_.record(at)));
      nvm_.start_word(r.address(), r.old_value());
    }
  // mutant: aavlt-old-values-fence
  nvm_.fence();  // old values, before the records that have them are removed
  clear();
  size_ = 0;
  std::uint64_t height = 0;
  // mutant: aavlt-root-check
  if (!nvm_.whole(root_))
    return broken("with a damaged root at log offset " + std::to_string(root_));
  return learn(nvm_.value(root_), 0, ~std::uint64_t{0}, 0, height);
}

// Returns whether an operation can have changed the word: the root, or a word of a node.
bool AtomicAvlTree::has(std::uint64_t word) const noexcept {
  return word == root_ || (word % 8 == 0 && word >= arena_.begin() && word < arena_.end());
}

// The subtree's keys lie between `from` and `to`, both excluded.
Status AtomicAvlTree::learn(std::uint64_t node, std::uint64_t from, std::uint64_t to,
                            unsigned depth, std::uint64_t& height) {
  height = 0;
  if (node == 0) return {};
  const auto broken = [&] {
    return failure(Code::corrupt, nvm_.medium().path(),
                   "a log index that is no tree at log offset " + std::to_string(node),
                   "nodes in order and in balance", "restore a copy");
  };
  if (depth > 96 || !arena_.mark_line(node)) return broken();
  for (std::uint64_t word = node; word <= node + record_word; word += 8)
    if (!nvm_.whole(word)) return broken();
  const std::uint64_t key = nvm_.value(node + key_word);
  if (key <= from || key >= to) return broken();
  std::uint64_t left = 0, right = 0;
  if (Status s = learn(nvm_.value(node + left_word), from, key, depth + 1, left); !s.ok()) return s;
  if (Status s = learn(nvm_.value(node + right_word), key, to, depth + 1, right); !s.ok()) return s;
  height = (left > right ? left : right) + 1;
  if (left > right + 1 || right > left + 1 || nvm_.value(node + height_word) != height)
    return broken();
  ++size_;
  return {};
}

}  // namespace perdure::papers::rewind
