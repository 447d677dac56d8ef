// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/inspect/blocks.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "perdure/base/status.hpp"

namespace perdure::inspect {
namespace {

class Elements;

/// Walks with a list of what remains to be entered, not by recursion: a list of objects that point
/// to each other may be a million long.
class BlockWalk {
 public:
  BlockWalk(Walker& walker, Blocks& found, const OnPart& on_part)
      : walker_(walker), found_(found), on_part_(on_part) {}

  void run(const Layout& object, Address at) {
    later(object, at, "");
    while (!open_.empty()) {
      const Open next = std::move(open_.back());
      open_.pop_back();
      guarded(next.path, [&] { fields(*next.type, next.at, next.path); });
    }
  }

 private:
  struct Open {
    const Layout* type;
    Address at;
    std::string path;
  };

  void later(const Layout& type, Address at, const std::string& path) {
    if (type.leads) open_.push_back({&type, at, path});
  }
  void problem(const std::string& path, const std::string& text) {
    if (found_.problems.size() < 100)
      found_.problems.push_back("field " + (path.empty() ? "root" : path) + ": " + text);
  }
  /// Damage ends what f() walks over, and no more.
  template <class F>
  void guarded(const std::string& path, F&& f) {
    try {
      f();
    } catch (const error& e) {
      if (e.code() != Code::corrupt) throw;
      problem(path, e.what());
    }
  }
  void own(Address block, const std::string& path) {
    const std::uint64_t offset = block - walker_.mapped();
    if (on_part_) on_part_({offset, 0, path, key_, key_at_});
    if (found_.offsets.size() > walker_.data_bytes() / 16)
      Walker::damaged("more blocks than the pool can hold",
                      "pointers that do not lead in a circle");
    found_.offsets.push_back(offset);
  }

  /// The fields of an object, each guarded.
  void fields(const Layout& type, Address at, const std::string& path) {
    if (type.kind != Kind::structure) return value(type, at, path, 0);
    for (std::size_t i = 0; i < type.parts.size(); ++i) {
      const Member& part = type.parts[i];
      if (!part.type->leads) continue;
      const std::string name =
          (path.empty() ? "" : path + ".") + (part.name.empty() ? std::to_string(i) : part.name);
      guarded(name, [&] { fields(*part.type, at + part.at, name); });
    }
  }

  /// Counts a record of layout `as`; the program's is `now`.
  void count(const std::string& path, const Layout* as, const Layout* now) {
    // Within objects that are owned or pointed to, the path grows with each.
    Versions& found = found_.versions[path.substr(0, path.find_first_of("[*"))];
    if (as == now)
      ++found.now;
    else
      ++found.earlier[as];
  }

  void container(const Layout& type, Address at, const std::string& path, unsigned depth);
  void table(const Layout& type, Address at, const std::string& path);

  /// Anything that lies at an address.
  void value(const Layout& type, Address at, const std::string& path, unsigned depth) {
    if (!type.leads) return;
    Walker::check_depth(depth);
    switch (type.kind) {
      case Kind::unknown:
        if (std::find(found_.unknown.begin(), found_.unknown.end(), path + ": " + type.text) ==
                found_.unknown.end() &&
            found_.unknown.size() < 100)
          found_.unknown.push_back(path + ": " + type.text);
        return;
      case Kind::scalar:
      case Kind::elsewhere: return;
      case Kind::hook:
        if (const std::string text = walker_.hook_problem(at); !text.empty()) problem(path, text);
        return;
      case Kind::text:
        if (const auto block = walker_.read<Address>(at); block != 0) {
          own(block, path);
          const auto n = walker_.read<std::uint32_t>(block),
                     room = walker_.read<std::uint32_t>(block + 4);
          if (n > room || (room + 8) % 16 != 0)
            problem(path, "text of " + std::to_string(n) + " bytes in a block that holds " +
                              std::to_string(room));
        }
        return;
      case Kind::sequence: {
        const auto block = walker_.read<Address>(at);
        if (block == 0) return;
        own(block, path);
        std::uint64_t n = walker_.sequence_count(type, block);
        if (type.element().size == 0) n = std::min<std::uint64_t>(n, 1);  // an unknown type
        for (std::uint64_t i = 0; type.element().leads && i < n; ++i)
          value(type.element(), block + 8 + i * type.element().size, path, depth + 1);
        return;
      }
      case Kind::optional:
        if (walker_.read<std::uint8_t>(at) != 0)
          value(type.element(), at + type.parts.front().at, path, depth + 1);
        return;
      case Kind::variant: {
        const auto index = walker_.read<std::uint8_t>(at);
        if (index >= type.parts.size())
          Walker::damaged("alternative " + std::to_string(index) + " of a variant",
                          "one of " + std::to_string(type.parts.size()));
        return value(*type.parts[index].type, at + type.parts[index].at, path, depth + 1);
      }
      case Kind::array:
        if (type.size > walker_.data_bytes()) Walker::damaged("an array", "one in the pool");
        for (std::uint64_t i = 0; i < type.count; ++i)
          value(type.element(), at + i * type.element().size, path, depth + 1);
        return;
      case Kind::structure:
        for (const Member& part : type.parts) value(*part.type, at + part.at, path, depth + 1);
        return;
      case Kind::record: {
        const auto block = walker_.read<Address>(at);
        if (block == 0) return;
        own(block, path);
        const Layout* const as =
            walker_.structure(walker_.read<std::uint64_t>(block), type.shape, type.element());
        if (as == nullptr) return problem(path, "a record of another shape than " + type.text);
        count(path, as, &type.element());
        return value(*as, block + 8, path, depth + 1);
      }
      case Kind::owned:
        if (const auto block = walker_.read<Address>(at); block != 0) {
          own(block, path);
          later(type.element(), block, path + "[]");
        }
        return;
      case Kind::pointer:
        if (const auto block = walker_.pointer(at); block != 0 && entered_.insert(block).second) {
          own(block, path);
          if (!type.parts.empty()) later(type.element(), block, path + "*");
        }
        return;
      case Kind::table: return table(type, at, path);
      default: return container(type, at, path, depth);
    }
  }

  /// Calls f() for what belongs to the entry with this key, unless it is within another entry.
  template <class F>
  void of_entry(const Layout& key, Address at, F&& f) {
    const bool outermost = key_ == nullptr;
    if (outermost) key_ = &key, key_at_ = at;
    const struct Leave {
      BlockWalk& walk;
      bool outermost;
      ~Leave() {
        if (outermost) walk.key_ = nullptr;
      }
    } leave{*this, outermost};
    f();
  }
  /// A key or a value that lies at an address, within a block.
  void part(const Layout& type, Address at, const std::string& path) {
    if (on_part_) on_part_({at - walker_.mapped(), type.size, path, key_, key_at_});
  }

  Walker& walker_;
  Blocks& found_;
  const OnPart& on_part_;
  const Layout* key_ = nullptr;  // of the outermost entry that is walked; null: none
  Address key_at_ = 0;
  std::vector<Open> open_;
  std::unordered_set<Address> entered_;

  friend class Elements;
};

/// What a container other than a table leads to. With `rows`, the values are addresses of rows,
/// which are collected.
class Elements final : public Visitor {
 public:
  Elements(BlockWalk& walk, const Layout& type, const std::string& path, unsigned depth,
           std::vector<Address>* rows = nullptr,
           std::unordered_map<Address, Address>* keys = nullptr)
      : walk_(walk), type_(type), path_(path), depth_(depth), rows_(rows), keys_(keys) {}

  void block(Address block, std::uint64_t) override { walk_.own(block, path_); }
  void problem(const std::string& text) override { walk_.problem(path_, text); }
  void separator(Address key) override { walk_.value(type_.element(), key, path_, depth_); }
  bool entry(const Entry& entry) override {
    if (type_.is_map())
      walk_.of_entry(type_.element(), entry.key, [&] { parts(entry); });
    else
      parts(entry);
    return true;
  }

 private:
  void parts(const Entry& entry) {
    const Layout& held = type_.is_map() ? type_.mapped() : type_.element();
    if (type_.is_map()) {
      walk_.part(type_.element(), entry.key, path_);
      walk_.value(type_.element(), entry.key, path_, depth_);
    }
    walk_.part(held, entry.value, path_);
    if (rows_ == nullptr) return walk_.value(held, entry.value, path_, depth_);
    rows_->push_back(walk_.walker_.read<Address>(entry.value));
    if (keys_ != nullptr) keys_->emplace(rows_->back(), entry.key);
  }

  BlockWalk& walk_;
  const Layout& type_;
  const std::string& path_;
  const unsigned depth_;
  std::vector<Address>* rows_;
  std::unordered_map<Address, Address>* keys_;  // of each row, where the walk tells of parts
};

void BlockWalk::container(const Layout& type, Address at, const std::string& path, unsigned depth) {
  Elements elements(*this, type, path, depth + 1);
  walker_.each(type, at, elements);
}

void BlockWalk::table(const Layout& type, Address at, const std::string& path) {
  const auto next = walker_.read<std::uint64_t>(at);
  std::vector<Address> rows;
  std::unordered_map<Address, Address> keys;
  std::optional<Layout> first;
  for (std::size_t i = 1; i < type.parts.size(); ++i) {
    const std::string name = path + ", by " + type.parts[i].name;
    const Layout part = i == 1 ? walker_.first_part(type, at) : *type.parts[i].type;
    std::vector<Address> led_to;
    Elements elements(*this, part, name, 0, &led_to, i == 1 && on_part_ ? &keys : nullptr);
    if (i == 1) first = part;
    walker_.each(part, at + type.parts[i].at, elements);
    std::sort(led_to.begin(), led_to.end());
    if (std::adjacent_find(led_to.begin(), led_to.end()) != led_to.end())
      problem(name, "two entries lead to one row");
    if (i == 1) {
      rows = std::move(led_to);
    } else {
      if (!std::includes(rows.begin(), rows.end(), led_to.begin(), led_to.end()))
        problem(name, "an entry leads to no row");
      // A unique member or a time without a value has no entry.
      const std::string& part_name = type.parts[i].name;
      const bool may_skip = part_name.starts_with("unique ") || part_name.starts_with("expires ") ||
                            part_name.starts_with("dropped ");
      if (!may_skip && led_to.size() != rows.size())
        problem(name, "found " + std::to_string(led_to.size()) +
                          " entries, expected one for each of " + std::to_string(rows.size()) +
                          " rows");
    }
  }
  const Member& row = type.parts.front();
  const auto walk_row = [&](Address block) {
    own(block, path);
    const Layout* const as =
        walker_.structure(walker_.read<std::uint64_t>(block + 8), type.shape, *row.type);
    if (as == nullptr) return problem(path, "a row of another shape than " + row.type->text);
    count(path, as, row.type);
    if (const auto number = walker_.read<std::uint64_t>(block); number >= next)
      problem(path, "a row has number " + std::to_string(number) + ", which was never given");
    value(*as, block + row.at, path, 0);
  };
  for (const Address block : rows) {
    if (const auto key = keys.find(block); key != keys.end())
      of_entry(first->element(), key->second, [&] { walk_row(block); });
    else
      walk_row(block);
  }
}

}  // namespace

Blocks find_blocks(Walker& walker, const Layout& object, Address at, const OnPart& on_part) {
  Blocks found;
  BlockWalk(walker, found, on_part).run(object, at);
  return found;
}

}  // namespace perdure::inspect
