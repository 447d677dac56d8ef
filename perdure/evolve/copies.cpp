// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/api/copies.hpp"

#include <algorithm>
#include <cstring>

#include "perdure/api/switch.hpp"

namespace perdure::detail {
namespace {

constexpr std::uint64_t line = 64;

template <class T>
T at_address(std::uint64_t address) {
  return reinterpret_cast<T>(address);
}

template <class Tx>
std::uint64_t word(Tx& tx, const std::byte* at) {
  std::uint64_t value = 0;
  tx.read_bytes(&value, at, sizeof value);
  return value;
}

template <class Tx>
pool::Catalog read_words(Tx& tx, const std::byte* catalog) {
  pool::Catalog found;
  tx.read_bytes(&found, catalog, sizeof found);
  return found;
}

void write_copies(CopyTx& tx, std::byte* catalog, std::uint64_t list, std::uint64_t made_for) {
  const std::uint64_t words[] = {list, made_for};
  tx.write_bytes(catalog + offsetof(pool::Catalog, copies), words, sizeof words);
}

}  // namespace

bool free_copies(CopyTx& tx, std::byte* catalog, std::uint64_t n) {
  const pool::Catalog was = read_words(tx, catalog);
  std::uint64_t list = was.copies;
  while (n != 0 && list != 0) {
    auto* const block = at_address<std::byte*>(list);
    const std::uint64_t older = word(tx, block + offsetof(pool::CopyList, older));
    std::uint64_t count = word(tx, block + offsetof(pool::CopyList, count));
    for (; n != 0 && count != 0; --n) {
      --count;
      pool::CopyEntry entry;
      tx.read_bytes(&entry, block + offsetof(pool::CopyList, entries) + count * sizeof entry,
                    sizeof entry);
      tx.free(at_address<std::byte*>(was.copies_for != 0 ? entry.made : entry.old));
    }
    // mutant: freed-copies-leave-the-list
    if (count != 0) {
      tx.write_bytes(block + offsetof(pool::CopyList, count), &count, sizeof count);
      break;
    }
    tx.free(block);
    list = older;
  }
  if (list != was.copies) write_copies(tx, catalog, list, list == 0 ? 0 : was.copies_for);
  return list == 0;
}

void Copies::begin() {
  objects_.clear();
  by_address_.clear();
  others_.clear();
  problem_.clear();
  counts_.assign(plan_.copied.size(), 0);
  next_ = written_ = 0;
  go_on_ = true;
}

void Copies::lead_from(const PointerContainer& container, const void* to) {
  if (to != nullptr)
    add(reinterpret_cast<std::uint64_t>(to), container.leads_to, "a container of the root");
}

void Copies::find(rtx& tx, const std::byte* root) {
  root_ = reinterpret_cast<std::uint64_t>(root);
  const auto follow = [&](const std::byte* object, const std::vector<PointerPlace>& pointers,
                          const std::string& from) {
    for (const PointerPlace& one : pointers) {
      const std::uint64_t to = word(tx, object + one.from);
      if (to == 0) continue;
      if (one.leads_to == PointerPlace::other)
        others_.push_back(to);
      else
        add(to, one.leads_to, from);
    }
  };
  follow(root, plan_.root_pointers, "the root object");
  for (std::size_t i = 0; i < objects_.size() && problem_.empty(); ++i) {
    const CopiedStruct& as = plan_.copied[objects_[i].kind];
    // Whether it is an object at all is known later: see block(). Until then its bytes are only
    // read, within the data region.
    tx.expect(at_address<const std::byte*>(objects_[i].at), as.old_bytes);
    follow(at_address<const std::byte*>(objects_[i].at), as.pointers, as.name);
  }
  find_list(tx);
  std::sort(others_.begin(), others_.end());
}

void Copies::add(std::uint64_t at, std::size_t kind, const std::string& from) {
  const auto [found, is_new] = by_address_.try_emplace(at, objects_.size());
  if (is_new)
    objects_.push_back({at, 0, static_cast<std::uint32_t>(kind), false});
  else if (objects_[found->second].kind != kind && problem_.empty())
    problem_ = "an object to which pointers of two types lead, from " + from;
}

// The copies that are there already: those for other versions were dropped before. They are of no
// use if one is of an object that the root object no longer leads to.
void Copies::find_list(rtx& tx) {
  const pool::Catalog catalog = read_words(tx, catalog_);
  go_on_ = true;
  pool::CopyList list;
  for (std::uint64_t at = catalog.copies; at != 0 && go_on_; at = list.older) {
    tx.read_bytes(&list, at_address<const std::byte*>(at), sizeof list);
    for (std::uint64_t i = 0; i < list.count && go_on_; ++i) {
      const auto found = by_address_.find(list.entries[i].old);
      go_on_ = found != by_address_.end();
      if (go_on_) objects_[found->second].copy = list.entries[i].made;
    }
  }
}

void Copies::drop() {
  for (Object& one : objects_) one.copy = 0;
  go_on_ = true;
}

void Copies::owned(const void* block) {
  const auto found = by_address_.find(reinterpret_cast<std::uint64_t>(block));
  // mutant: copied-objects-have-one-owner
  if (found != by_address_.end() && problem_.empty())
    problem_ = "an object of " + plan_.copied[objects_[found->second].kind].name +
               " that a container owns, too: a pointer leads to an object that was freed, or that "
               "is the container's";
}

std::string Copies::room() const {
  constexpr std::uint64_t most = pool::CopyList::most;
  std::uint64_t bytes = (objects_.size() + most - 1) / most * sizeof(pool::CopyList);
  for (const Object& one : objects_) bytes += block_for(plan_.copied[one.kind].now.bytes);
  return "copies of " + std::to_string(objects_.size()) + " objects and their list, at least " +
         std::to_string(bytes) + " bytes";
}

void Copies::block(std::uint64_t address, std::uint64_t bytes) {
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return;
  Object& object = objects_[found->second];
  const CopiedStruct& as = plan_.copied[object.kind];
  object.is_block = bytes >= as.old_bytes && address != root_;
  // The layout text has no size, but an object is not larger than its fields, rounded up to its
  // alignment: 16, which is a step of the blocks' sizes, unless the program's struct has a larger
  // one.
  const std::uint64_t align = std::max<std::uint64_t>(16, as.now.align);
  // mutant: copied-blocks-hold-one-object
  if (bytes > block_for((as.most_bytes + align - 1) / align * align) && problem_.empty())
    problem_ = "a block of " + std::to_string(bytes) + " bytes with an object of " + as.name +
               ", whose fields end at " + std::to_string(as.old_bytes) +
               ": what follows it would be lost";
  const auto inside = std::lower_bound(others_.begin(), others_.end(), address);
  if (inside != others_.end() && *inside - address < bytes && problem_.empty())
    problem_ = "a pointer of another type that leads to an object of " + as.name + ", or into it";
}

std::string Copies::problem() {
  std::uint64_t wrong = 0;
  const Object* first = nullptr;
  for (const Object& one : objects_) {
    // mutant: copied-objects-are-blocks
    if (one.is_block) continue;
    if (wrong++ == 0) first = &one;
  }
  if (wrong != 0 && problem_.empty())
    problem_ = std::to_string(wrong) + " objects of " + plan_.copied[first->kind].name +
               " that are no blocks of their own";
  return problem_;
}

void Copies::reserve(CopyTx& tx, std::uint64_t n) {
  made_.clear();
  const pool::Catalog was = read_words(tx, catalog_);
  std::uint64_t list = was.copies, count = 0;
  if (list != 0)
    count = word(tx, at_address<const std::byte*>(list) + offsetof(pool::CopyList, count));
  std::vector<pool::CopyEntry> entries;
  const auto write = [&] {
    auto* const block = at_address<std::byte*>(list);
    tx.write_bytes(block + offsetof(pool::CopyList, entries) + count * sizeof(pool::CopyEntry),
                   entries.data(), entries.size() * sizeof(pool::CopyEntry));
    count += entries.size();
    tx.write_bytes(block + offsetof(pool::CopyList, count), &count, sizeof count);
    entries.clear();
  };
  for (std::size_t i = next_; i < objects_.size() && made_.size() < n; ++i) {
    if (objects_[i].copy != 0) continue;
    if (list == 0 || count + entries.size() == pool::CopyList::most) {
      if (!entries.empty()) write();
      std::byte* const block = tx.alloc(sizeof(pool::CopyList));
      tx.write_bytes(block + offsetof(pool::CopyList, older), &list, sizeof list);
      list = reinterpret_cast<std::uint64_t>(block);
      count = 0;
    }
    const auto made =
        reinterpret_cast<std::uint64_t>(tx.alloc(plan_.copied[objects_[i].kind].now.bytes));
    entries.push_back({objects_[i].at, made});
    made_.emplace_back(i, made);
  }
  if (!entries.empty()) write();
  if (list != was.copies) write_copies(tx, catalog_, list, plan_.copies_for);
}

void Copies::reserved() {
  for (const auto& [object, made] : made_) objects_[object].copy = made;
  made_.clear();
  while (next_ < objects_.size() && objects_[next_].copy != 0) ++next_;
}

void Copies::copy(CopyTx& tx, std::uint64_t n) {
  tried_ = std::min<std::uint64_t>(n, objects_.size() - written_);
  for (std::size_t i = written_; i < written_ + tried_; ++i) {
    image(tx, objects_[i]);
    auto* const to = at_address<std::byte*>(objects_[i].copy);
    const std::uint64_t bytes = (plan_.copied[objects_[i].kind].now.bytes + 7) / 8 * 8;
    // A copy that an earlier opening wrote is not written again.
    for (std::uint64_t at = 0; at < bytes; at += line) {
      const std::uint64_t part = std::min(line, bytes - at);
      std::byte there[line];
      tx.read_bytes(there, to + at, part);
      if (std::memcmp(there, image_at_ + at, part) != 0)
        tx.write_bytes(to + at, image_at_ + at, part);
    }
  }
}

void Copies::copied(const Migration& migrate) {
  std::vector<bool> some(counts_.size(), false);
  for (std::size_t i = written_; i < written_ + tried_; ++i) {
    ++counts_[objects_[i].kind];
    some[objects_[i].kind] = true;
  }
  written_ += std::exchange(tried_, 0);
  for (std::size_t kind = 0; kind < some.size(); ++kind)
    if (some[kind] && migrate.progress) migrate.progress(plan_.copied[kind].name, counts_[kind]);
}

// Makes the copy's bytes at image_at_.
void Copies::image(CopyTx& tx, const Object& object) {
  const CopiedStruct& as = plan_.copied[object.kind];
  if (image_.size() < as.now.bytes + 2 * line) image_.resize(as.now.bytes + 2 * line);
  const auto begin = reinterpret_cast<std::uintptr_t>(image_.data());
  image_at_ = image_.data() + ((begin + line - 1) / line * line - begin);
  std::memset(image_at_, 0, as.now.bytes + 8);  // the padding, too
  if (as.now.initial != nullptr) as.now.initial(image_at_);
  move_fields(tx, as.moves, at_address<const std::byte*>(object.at), image_at_);
  // mutant: copies-lead-to-copies
  lead_to_copies(image_at_, as.pointers);
}

void Copies::lead_to_copies(std::byte* object, const std::vector<PointerPlace>& pointers) const {
  for (const PointerPlace& one : pointers) {
    if (one.leads_to == PointerPlace::other) continue;
    std::uint64_t to = 0;
    std::memcpy(&to, object + one.to, sizeof to);
    if (to == 0) continue;
    to = objects_[by_address_.at(to)].copy;
    std::memcpy(object + one.to, &to, sizeof to);
  }
}

}  // namespace perdure::detail
