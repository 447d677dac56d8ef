// SPDX-License-Identifier: BSD-3-Clause
//
// Loader: the root object, the objects that pointers lead to, hooks and hooked lists.
//
// A hook's neighbours are known when all hooks have addresses, so hooks are written last.
#include <algorithm>

#include "perdure/base/status.hpp"
#include "perdure/inspect/dump.hpp"
#include "perdure/inspect/load.hpp"
#include "perdure/inspect/load_entries.hpp"

namespace perdure::inspect {

using Token = JsonReader::Token;

Loader::Loader(LoadStore& store, const Tree& tree, JsonReader& in,
               std::function<void(std::uint64_t)> progress)
    : store_(store),
      tree_(tree),
      in_(in),
      progress_(std::move(progress)),
      root_(inspect::root_bytes(tree)) {}
Loader::~Loader() = default;

std::uint64_t root_bytes(const Tree& tree) noexcept {
  const std::uint64_t align = tree.root().align;
  return (tree.root().size + align - 1) / align * align;
}

void Loader::wrong(const std::string& found, std::string_view expected) const {
  std::string path;
  for (const std::string& part : path_) path += (path.empty() ? "field " : ".") + part;
  in_.wrong((path.empty() ? "" : path + ": ") + "found " + found, expected);
}

void Loader::expect(JsonReader::Token token, std::string_view expected) {
  if (in_.next() != token) wrong(in_.shown(), expected);
}

void Loader::count_entry() {
  if (++entries_ % 1024 == 0 && progress_) progress_(entries_);
}

Address Loader::block(const std::byte* image, std::uint64_t n) {
  const Address at = store_.add(image, n);
  placed(image, n, at);
  return at;
}

void Loader::document(Address root) {
  const Layout& type = tree_.root();
  expect(Token::begin_object, "an object of the root's fields, as `perdure dump` writes it");
  std::vector<bool> found(type.parts.size());
  while (!in_.take(Token::end_object)) {
    expect(Token::key, "a field");
    if (in_.text() == "$objects") {
      expect(Token::begin_object, "the objects that pointers lead to");
      while (!in_.take(Token::end_object)) {
        expect(Token::key, "the number of an object");
        std::uint64_t number = 0;
        for (const char c : in_.text()) {
          if (c < '0' || c > '9') wrong(in_.shown(), "the number of an object");
          number = number * 10 + static_cast<std::uint64_t>(c - '0');
        }
        object(number);
      }
      continue;
    }
    std::size_t i = 0;
    while (i < found.size() && name_of(type.parts[i], i) != in_.text()) ++i;
    if (i == found.size() || found[i]) wrong(in_.shown(), "each field of the schema once");
    found[i] = true;
    path_.push_back(in_.text());
    value(*type.parts[i].type, root_.data() + type.parts[i].at);
    path_.pop_back();
  }
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!found[i])
      wrong("no field '" + name_of(type.parts[i], i) + "'", "a dump of all fields of the schema");
  expect(Token::end, "the end of the document");
  write_root(root);
}

void Loader::object(std::uint64_t number) {
  const auto found = targets_.find(number);
  if (found == targets_.end())
    wrong("object " + std::to_string(number) + ", to which no pointer leads",
          "objects behind the pointers that lead to them");
  if (std::exchange(found->second.filled, true))
    wrong("object " + std::to_string(number) + " twice", "once");
  const Layout& type = *found->second.type;
  const Address at = found->second.at;
  std::vector<std::byte> image(stride(type));
  path_.push_back("$objects." + std::to_string(number));
  value(type, image.data());
  path_.pop_back();
  store_.write(at, image.data(), image.size());
  placed(image.data(), image.size(), at);
}

void Loader::write_root(Address root) {
  store_.write(root, root_.data(), root_.size());
  placed(root_.data(), root_.size(), root);
  finish();
}

void Loader::placed(const std::byte* image, std::uint64_t n, Address at) {
  std::erase_if(pending_, [&](Pending& one) {
    const std::less<> less;
    if (less(one.image, image) || !less(one.image, image + n)) return false;
    const Address where = at + static_cast<std::uint64_t>(one.image - image);
    if (one.list)
      hooked_lists_.push_back({where, std::move(one.elements)});
    else if (!hooks_.emplace(one.hook, where).second)
      wrong("list_hook " + std::to_string(one.hook) + " twice", "once");
    return true;
  });
}

void Loader::hook(std::byte* image, bool open) {
  if (!open && in_.take_null()) return;
  if (!open) expect(Token::begin_object, "null or the numbers of a list_hook and its list");
  bool found = false;
  std::uint64_t number = 0;
  while (!in_.take(Token::end_object)) {
    expect(Token::key, "a member");
    found = found || in_.text() == "$hook";
    if (in_.text() == "$hook")
      number = unsigned_number("the number of the hook");
    else
      in_.skip();
  }
  if (!found) wrong("a list_hook in a list without \"$hook\"", "its number");
  pending_.push_back({image, number, {}, false});
}

void Loader::hooked_list(const Layout& type, std::byte* image) {
  expect(Token::begin_array, "an array");
  while (!in_.take(Token::end_array)) {
    expect(Token::begin_object, "{\"$ptr\": number}");
    add_to_hooked_list(type, image, reference());
  }
}

void Loader::add_to_hooked_list(const Layout& type, std::byte* image, std::uint64_t element) {
  if (pending_.empty() || !pending_.back().list || pending_.back().image != image)
    pending_.push_back({image, 0, {}, true});
  pending_.back().elements.push_back(element + type.hook_at);
  count_entry();
}

void Loader::finish() {
  for (const auto& [number, target] : targets_)
    if (!target.filled)
      wrong("no object " + std::to_string(number), "an object for each pointer in \"$objects\"");
  for (const HookedList& list : hooked_lists_) {
    std::vector<Address> places;
    for (const std::uint64_t number : list.hooks) {
      const auto found = hooks_.find(number);
      if (found == hooks_.end())
        wrong("no list_hook " + std::to_string(number),
              "one for each element of a hooked_list, and none in two lists");
      places.push_back(found->second);
      hooks_.erase(found);
    }
    const Address ends[3] = {places.front(), places.back(), places.size()};
    const Address block = store_.alloc(sizeof ends);
    store_.write(block, ends, sizeof ends);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Address hook[3] = {i == 0 ? 0 : places[i - 1],
                               i + 1 == places.size() ? 0 : places[i + 1], block};
      store_.write(places[i], hook, sizeof hook);
    }
    store_.write(list.at, &block, sizeof block);
  }
  if (!hooks_.empty())
    wrong("list_hook " + std::to_string(hooks_.begin()->first) + ", which is in no list",
          "an element of a hooked_list for each");
}

}  // namespace perdure::inspect
