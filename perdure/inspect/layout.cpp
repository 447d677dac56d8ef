// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/inspect/layout.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "perdure/base/checksum.hpp"
#include "perdure/base/status.hpp"
#include "perdure/inspect/layout_reader.hpp"

namespace perdure::inspect {
namespace {

[[noreturn]] void wrong(std::string_view found, std::string_view expected) {
  throw error(failure(Code::corrupt, "", "a layout text with '" + std::string(found) + "'",
                      std::string(expected),
                      "the pool's header is damaged, or a newer build wrote it"));
}

std::uint64_t number(std::string_view text) {
  std::uint64_t n = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (problem != std::errc{} || end != text.data() + text.size() || n >> 48 != 0)
    wrong(text, "a number below 2^48");
  return n;
}

/// One line of a layout text.
struct Line {
  std::uint64_t definition = 0;        ///< 0: of the root
  std::vector<std::string_view> path;  ///< names, or numbers in a text without names
  std::string_view type;
  std::uint64_t at = 0, size = 0;
};

Line read_line(std::string_view text) {
  Line line;
  const auto colon = text.find(": "), at = text.rfind(" @");
  if (colon == std::string_view::npos || at == std::string_view::npos || at < colon + 2)
    wrong(text, "lines of the form 'path: type @offset size'");
  line.type = text.substr(colon + 2, at - colon - 2);
  const std::string_view place = text.substr(at + 2);
  const auto space = place.find(' ');
  if (space == std::string_view::npos) wrong(text, "an offset and a size at the end of each line");
  line.at = number(place.substr(0, space));
  line.size = number(place.substr(space + 1));
  std::string_view path = text.substr(0, colon);
  while (!path.empty()) {
    const auto end = std::min(path.find('.'), path.size());
    std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (line.path.empty() && line.definition == 0 && part.starts_with('#'))
      line.definition = number(part.substr(1));
    else
      line.path.push_back(part);
    if (part.empty()) wrong(text, "a path without empty parts");
  }
  if (line.path.empty() || line.path.size() > 32) wrong(text, "a path of 1 to 32 parts");
  return line;
}

}  // namespace

/// Reads types by descent: one call for each level of the text, which is bounded.
class TreeReader {
 public:
  TreeReader(std::string_view names) : names_(names) {}

  Tree read(std::string_view text) {
    std::vector<Line> lines;
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      if (end != 0) lines.push_back(read_line(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    const auto root_end = std::find_if(lines.begin(), lines.end(),
                                       [](const Line& line) { return line.definition != 0; });
    Layout& root = make(Kind::structure);
    tree_.root_ = &root;
    fill(root, {lines.begin(), root_end}, 0, 0);
    for (auto from = root_end; from != lines.end();) {
      const std::uint64_t which = from->definition;
      const auto to = std::find_if(from, lines.end(),
                                   [&](const Line& line) { return line.definition != which; });
      if (which > lines.size()) wrong("#" + std::to_string(which), "a definition that is used");
      (void)names_.next();
      names_.open();
      Layout& target = definition(which);
      target.parts.clear();
      fill(target, {from, to}, 0, 0);
      names_.close();
      from = to;
    }
    // A text that is cut may lack the lines of a struct: what its pointers lead to is unknown.
    for (Layout* target : tree_.definitions_)
      if (target->parts.empty()) target->kind = Kind::unknown, target->leads = true;
    return std::move(tree_);
  }

 private:
  static constexpr unsigned deepest = 64;

  Layout& make(Kind kind) {
    Layout& made = tree_.nodes_.emplace_back();
    made.kind = kind;
    return made;
  }

  Layout& definition(std::uint64_t which) {
    if (which == 0 || which > 10'000) wrong("#" + std::to_string(which), "a number up to 10000");
    while (tree_.definitions_.size() < which) {
      Layout& made = make(Kind::structure);
      tree_.definitions_.push_back(&made);
      made.text = "#" + std::to_string(tree_.definitions_.size());
      made.leads = true;
    }
    return *tree_.definitions_[which - 1];
  }

  /// Gives a structure the fields of lines whose paths have the same first `depth` numbers. `base`
  /// is where it lies in what the offsets count from.
  void fill(Layout& structure, std::vector<Line> lines, std::size_t depth, std::uint64_t base) {
    std::uint64_t next = 0;
    for (std::size_t i = 0; i < lines.size();) {
      if (lines[i].path.size() <= depth)
        wrong(lines[i].type, "a path that is no other path's beginning");
      const std::string_view name = lines[i].path[depth];
      std::size_t end = i + 1;
      while (end < lines.size() && lines[end].path.size() > depth && lines[end].path[depth] == name)
        ++end;
      Member member;
      if (name.find_first_not_of("0123456789") == std::string_view::npos) {
        const std::uint64_t index = number(name);
        for (; next <= index && next < lines.size() + index; ++next) {
          if (next + 64 < index) next = index;  // a damaged index
          member.name = names_.next();
        }
      } else {
        member.name = name;
      }
      const Line& first = lines[i];
      member.at = first.at - std::min(first.at, base);
      if (first.path.size() == depth + 1) {
        member.type = &field(first);
      } else {
        Layout& inner = make(Kind::structure);
        names_.open();
        fill(inner,
             {lines.begin() + static_cast<std::ptrdiff_t>(i),
              lines.begin() + static_cast<std::ptrdiff_t>(end)},
             depth + 1, first.at);
        names_.close();
        member.type = &inner;
      }
      for (std::size_t k = i; k < end; ++k)
        structure.size = std::max(structure.size, lines[k].at + lines[k].size - base);
      structure.align = std::max(structure.align, member.type->align);
      structure.leads = structure.leads || member.type->leads;
      structure.parts.push_back(std::move(member));
      i = end;
    }
  }

  /// The type of a line, which says its size.
  Layout& field(const Line& line) {
    Layout& type = whole(line.type);
    if (type.size == line.size) return type;
    if (type.size != 0) {  // another version of what this build knows
      Layout& other = unknown(line.type);
      other.size = line.size;
      return other;
    }
    type.size = line.size;
    return type;
  }

  Layout& whole(std::string_view text) {
    const std::string_view rest = std::exchange(left_, text);
    outer_.clear();
    Layout& type = this->type(0);
    const bool all = left_.empty();
    left_ = rest;
    return all ? type : unknown(text);
  }

  Layout& unknown(std::string_view text) {
    Layout& type = make(Kind::unknown);
    type.text = text;
    type.exact = false;
    type.leads = true;
    return type;
  }

  bool take(char c) {
    if (left_.empty() || left_.front() != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  std::optional<std::uint64_t> take_number() {
    const auto n = std::min(left_.find_first_not_of("0123456789"), left_.size());
    if (n == 0 || n > 14) return std::nullopt;
    const std::uint64_t value = number(left_.substr(0, n));
    left_.remove_prefix(n);
    return value;
  }
  /// Skips to the end of a type that is not known.
  void skip() {
    int depth = 0;
    std::size_t n = 0;
    for (; n < left_.size(); ++n) {
      const char c = left_[n];
      if (depth == 0 && (c == ',' || c == '>' || c == '@' || c == '}' || c == '!')) break;
      if (c == '<' || c == '{') ++depth;
      if (c == '>' || c == '}') --depth;
    }
    left_.remove_prefix(n);
  }

  Layout& type(unsigned depth) {
    if (depth > deepest) wrong("types nested deeper than " + std::to_string(deepest), "fewer");
    const std::string_view begin = left_;
    Layout* found = known(depth);
    if (found == nullptr) {
      left_ = begin;
      skip();
      found = &unknown(begin.substr(0, begin.size() - left_.size()));
      if (take('!')) {  // a class of its bytes alone
        const auto bytes = take_number();
        found->size = bytes.value_or(0);
        found->align = bytes ? std::min<std::uint64_t>(*bytes & (~*bytes + 1), 8) : 1;
        if (found->align == 0) found->align = 1;
        found->leads = false;
      }
    }
    while (take('[')) {
      const auto n = take_number();
      if (!n || !take(']')) return *found;  // whole() sees that something is left
      found = &array(*found, *n);
    }
    if (found->text.empty()) found->text = begin.substr(0, begin.size() - left_.size());
    return *found;
  }

  Layout& array(const Layout& element, std::uint64_t n) {
    Layout& type = make(Kind::array);
    type.count = n;
    type.parts.push_back({{}, &element, 0});
    if (element.size == 0) {  // where its elements lie can't be told
      type.kind = Kind::unknown;
      type.exact = false;
      type.leads = element.leads;
      type.parts.clear();
      return type;
    }
    if (n > (std::uint64_t{1} << 47) / element.size)
      wrong("an array of " + std::to_string(n) + " elements", "one that fits into a pool");
    type.size = element.size * n;
    type.align = element.align;
    type.exact = element.exact;
    type.leads = element.leads;
    return type;
  }

  /// The type at the beginning of the text; null where it is none that this build knows.
  Layout* known(unsigned depth) {
    if (left_.empty()) return nullptr;
    if (left_.front() == '{') return structure(depth);
    if (take('^')) {
      const auto n = take_number();
      if (!n || *n == 0 || *n > outer_.size()) return nullptr;
      return outer_[outer_.size() - *n];
    }
    const auto end = std::min(left_.find_first_of("<>,@}[]{! "), left_.size());
    const std::string_view word = left_.substr(0, end);
    left_.remove_prefix(end);
    if (left_.empty() || left_.front() != '<') return plain(word);
    left_.remove_prefix(1);
    Layout* made = generic(word, depth);
    return made;
  }

  Layout* plain(std::string_view word) {
    if (word == "string") return &address(Kind::text);
    if (word == "string/1") return &address(Kind::string);
    if (word == "list_hook/1") {
      Layout& hook = address(Kind::hook);
      hook.size = 24;
      return &hook;
    }
    Layout& type = make(Kind::scalar);
    std::string_view base = word;
    if (base.starts_with("enum:")) base.remove_prefix(5), type.meaning = Meaning::enumerator;
    if (base == "bool" || base == "char" || base == "byte") {
      type.size = type.align = 1;
      if (base == "bool") type.meaning = Meaning::boolean;
      if (base == "char") type.meaning = Meaning::character, type.number = signed_;
      return &type;
    }
    if (base.size() < 2 || base.size() > 4) return nullptr;
    std::uint64_t bits = 0;
    for (const char c : base.substr(1)) {
      if (c < '0' || c > '9') return nullptr;
      bits = bits * 10 + static_cast<std::uint64_t>(c - '0');
    }
    const bool floating = base.front() == 'f';
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64 && bits != 128) return nullptr;
    if (floating && bits < 32) return nullptr;
    if (floating)
      type.number = value::Number::floating;
    else if (base.front() == 'i')
      type.number = signed_;
    else if (base.front() != 'u')
      return nullptr;
    type.size = type.align = bits / 8;
    return &type;
  }

  Layout& address(Kind kind) {
    Layout& type = make(kind);
    type.size = type.align = 8;
    type.leads = true;
    return type;
  }

  /// A structure; null where it is not one of the forms {name:type@n,...}size, {type@n,...}size.
  Layout* structure(unsigned depth) {
    take('{');
    Layout& type = make(Kind::structure);
    outer_.push_back(&type);
    bool opened = false, fits = true;
    while (fits && !left_.empty() && left_.front() != '}') {
      if (!type.parts.empty() && !take(',')) break;
      Member member;
      const auto end = std::min(left_.find_first_of(":<>,@}[]{! "), left_.size());
      if (end < left_.size() && left_[end] == ':' && left_.substr(0, end) != "enum") {
        member.name = left_.substr(0, end);
        left_.remove_prefix(end + 1);
        type.named = true;
      } else {
        if (!opened) names_.open();
        opened = true;
        member.name = names_.next();
      }
      member.type = &this->type(depth + 1);
      const auto at = take('@') ? take_number() : std::nullopt;
      fits = at.has_value();
      if (!fits) break;
      member.at = *at;
      type.align = std::max(type.align, member.type->align);
      type.exact = type.exact && member.type->exact;
      type.leads = type.leads || member.type->leads;
      type.parts.push_back(std::move(member));
    }
    outer_.pop_back();
    if (opened) names_.close();
    if (!fits || !take('}')) return nullptr;
    const auto size = take_number();
    if (!size) return nullptr;
    type.size = *size;
    for (std::size_t i = 0; i < type.parts.size(); ++i) {
      const std::uint64_t next = i + 1 < type.parts.size() ? type.parts[i + 1].at : type.size;
      const Member& part = type.parts[i];
      if (part.at > type.size || part.type->size > type.size - part.at) return nullptr;
      if (part.type->size == 0 && part.type->kind == Kind::unknown && next > part.at) {
        // Its size is not said: it is at most what there is up to the next field.
        auto& unsized = const_cast<Layout&>(*part.type);
        unsized.size = next - part.at;
      }
    }
    return &type;
  }

  Layout* generic(std::string_view word, unsigned depth) {
    if (word == "time" || word == "span" || word == "local") return time(word);
    if (word == "ptr") return pointer(depth);
    if (word == "table") return table(depth);
    const auto one = [&](Kind kind) -> Layout* {
      Layout& made = make(kind);
      made.parts.push_back({{}, &type(depth + 1), 0});
      made.size = made.align = 8;
      made.leads = true;
      return take('>') ? &made : nullptr;
    };
    if (word == "vec") return one(Kind::sequence);
    if (word == "own") return one(Kind::owned);
    if (word == "rec") {
      const std::string_view text = left_;
      Layout* made = one(Kind::record);
      if (made != nullptr) {
        const auto n = text.size() - left_.size() - 1;
        made->shape = base::hash_bytes(text.data(), n, 0);
        tree_.records_.emplace(made->shape, &made->element());
      }
      return made;
    }
    if (word == "opt") {
      Layout* made = one(Kind::optional);
      return made == nullptr ? nullptr : tagged(*made);
    }
    if (word == "desc") {
      Layout* made = one(Kind::unknown);
      if (made == nullptr) return nullptr;
      Layout inner = made->element();
      inner.reversed = !inner.reversed;
      inner.text.clear();
      return &tree_.nodes_.emplace_back(std::move(inner));
    }
    if (word == "less" || word == "hash") {  // a key's class has an order or a hash of its own
      Layout* made = one(Kind::unknown);
      if (made == nullptr) return nullptr;
      Layout inner = made->element();
      inner.own_order = inner.own_order || word == "less";
      inner.text.clear();
      return &tree_.nodes_.emplace_back(std::move(inner));
    }
    if (word == "retired") {  // retired.hpp: the container alone
      Layout& inner = type(depth + 1);
      return take('>') ? &inner : nullptr;
    }
    if (word == "arr") {
      const Layout& element = type(depth + 1);
      const auto n = take(',') ? take_number() : std::nullopt;
      return n && take('>') ? &array(element, *n) : nullptr;
    }
    if (word == "var") {
      Layout& made = make(Kind::variant);
      do made.parts.push_back({{}, &type(depth + 1), 0});
      while (take(','));
      return take('>') ? tagged(made) : nullptr;
    }
    return container(word, depth);
  }

  /// Places what lies behind an optional's or variant's byte.
  Layout* tagged(Layout& type) {
    type.size = 0, type.align = 1, type.leads = false;
    for (const Member& part : type.parts) {
      if (!part.type->exact) return nullptr;  // its place can't be told
      type.align = std::max(type.align, part.type->align);
      type.size = std::max(type.size, part.type->size);
      type.leads = type.leads || part.type->leads;
    }
    for (Member& part : type.parts) part.at = type.align;
    type.size = type.align + (type.size + type.align - 1) / type.align * type.align;
    return &type;
  }

  Layout* time(std::string_view word) {
    const auto n = take_number();
    const auto d = n && take('/') ? take_number() : std::nullopt;
    if (!d || *n == 0 || *d == 0 || !take(',')) return nullptr;
    const auto end = left_.find('>');
    if (end == std::string_view::npos) return nullptr;
    Layout* made = plain(left_.substr(0, end));
    left_.remove_prefix(end + 1);
    if (made == nullptr || made->kind != Kind::scalar) return nullptr;
    made->meaning = word == "time"    ? Meaning::time
                    : word == "local" ? Meaning::local
                                      : Meaning::span;
    made->numerator = *n, made->denominator = *d;
    return made;
  }

  Layout* pointer(unsigned depth) {
    Layout& made = address(Kind::pointer);
    if (take('#')) {
      const auto n = take_number();
      if (!n) return nullptr;
      made.parts.push_back({{}, &definition(*n), 0});
    } else if (left_.starts_with("void>")) {
      left_.remove_prefix(4);
    } else {
      made.parts.push_back({{}, &type(depth + 1), 0});
    }
    return take('>') ? &made : nullptr;
  }

  Layout* container(std::string_view word, unsigned depth) {
    static constexpr std::pair<std::string_view, Kind> kinds[] = {
        {"vector", Kind::vector},     {"list", Kind::list},
        {"queue", Kind::queue},       {"map", Kind::map},
        {"box", Kind::box},           {"rb_tree", Kind::rb_tree},
        {"hash_map", Kind::hash_map}, {"set", Kind::set},
        {"hash_set", Kind::hash_set}, {"multimap", Kind::multimap},
        {"deque", Kind::deque},       {"priority_queue", Kind::priority_queue}};
    if (word == "hooked_list") return hooked_list();
    const auto* const found = std::find_if(std::begin(kinds), std::end(kinds),
                                           [&](const auto& kind) { return kind.first == word; });
    if (found == std::end(kinds)) return nullptr;
    Layout& made = make(found->second);
    made.leads = true;
    made.parts.push_back({{}, &type(depth + 1), 0});
    if (made.is_set()) {
      made.parts.push_back({{}, &number_type(1), 0});
    } else if (made.is_map()) {
      if (!take(',')) return nullptr;
      made.parts.push_back({{}, &type(depth + 1), 0});
    }
    if (made.kind == Kind::priority_queue) {
      if (!take(',')) return nullptr;
      const auto end = std::min(left_.find('>'), left_.size());
      priority(made, left_.substr(0, end));
      left_.remove_prefix(end);
    }
    if (made.is_btree() || made.is_hashed() || made.kind == Kind::multimap) {
      const auto n = take(',') ? take_number() : std::nullopt;
      if (!n || *n == 0 || *n > 4096) return nullptr;
      made.count = *n;
    }
    if (!take('>') || !left_.starts_with("/1")) return nullptr;
    left_.remove_prefix(2);
    if (made.kind == Kind::multimap) return multimap(made);
    if (made.kind == Kind::deque) return deque(made);
    return settle(made);
  }

  /// A number as the containers' own parts have it.
  Layout& number_type(std::uint64_t bytes, value::Number number = value::Number::unsigned_integer) {
    Layout& made = make(Kind::scalar);
    made.size = made.align = bytes;
    made.number = number;
    made.text = (number == signed_ ? "i" : "u") + std::to_string(8 * bytes);
    return made;
  }

  /// The order of a priority_queue; that of other classes, of structs and of floating point, where
  /// std::less does not order NaN, is not known.
  static void priority(Layout& queue, std::string_view order) {
    const Layout& element = queue.element();
    const bool number = element.kind == Kind::scalar && element.number != value::Number::floating;
    queue.ordered =
        (order == "less" || order == "greater") && (number || element.kind == Kind::text);
    queue.reversed = order == "greater";
  }

  /// multimap.hpp: the next number, and a map of (key, number).
  Layout* multimap(Layout& made) {
    Layout* const inner = map_of(tuple({&made.element()}), made.mapped(), made.count);
    if (inner == nullptr) return nullptr;
    made.parts.push_back({"map", inner, inner_map_at});
    made.size = 2 * inner_map_at, made.align = 64;
    return &made;
  }

  /// deque.hpp: begin, end, and a map from blocks' numbers to their addresses.
  Layout* deque(Layout& made) {
    Layout* const inner = map_of(&number_type(8, signed_), address(Kind::pointer), 15);
    if (inner == nullptr || !place_nodes(made)) return nullptr;
    made.parts.push_back({"map", inner, inner_map_at});
    made.size = 2 * inner_map_at, made.align = 64;
    return &made;
  }

  /// hooked_list<hook's offset/element's size>/2: its text does not say what its elements are.
  Layout* hooked_list() {
    Layout& made = make(Kind::hooked_list);
    const auto at = take_number();
    const auto bytes = at && take('/') ? take_number() : std::nullopt;
    if (!bytes || *at + 24 > *bytes || !take('>') || !left_.starts_with("/2")) return nullptr;
    left_.remove_prefix(2);
    Layout& element = make(Kind::elsewhere);
    element.size = *bytes, element.align = 8;
    element.text = "an object of " + std::to_string(*bytes) + " bytes";
    made.parts.push_back({{}, &element, 0});
    made.hook_at = *at;
    made.size = 8, made.align = 8;
    made.leads = true;
    return &made;
  }

  /// A map whose key may be null: one whose place is not certain.
  Layout* map_of(const Layout* key, const Layout& value, std::uint64_t entries,
                 Kind kind = Kind::map) {
    if (key == nullptr) return nullptr;
    Layout& made = make(kind);
    made.leads = true;
    made.count = entries;
    made.parts.push_back({"key", key, 0});
    made.parts.push_back({"value", &value, 0});
    return settle(made);
  }

  /// The image of a tuple of these, `numbered`: and of a number. Null where its places are not
  /// certain: a struct that lies as its bytes may lie in another way in an image.
  Layout* tuple(const std::vector<const Layout*>& types, bool numbered = true) {
    Layout& made = make(Kind::structure);
    made.named = true;
    Geometry place;
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (!types[i]->exact || !same_in_image(*types[i])) return nullptr;
      made.leads = made.leads || types[i]->leads;
      made.parts.push_back({std::to_string(i), types[i], place.add(*types[i])});
    }
    if (numbered) {
      const Layout& number = number_type(8);
      made.parts.push_back({std::to_string(types.size()), &number, place.add(number)});
    }
    made.size = place.bytes(), made.align = place.align();
    return place.certain() ? &made : nullptr;
  }
  /// Whether a type lies in an image as it does as a key of its own: a struct's numbers lie at
  /// their alignment in both.
  static bool same_in_image(const Layout& type) {
    if (type.kind != Kind::structure || type.named) return true;
    Geometry place;
    for (const Member& part : type.parts) {
      if (part.type->kind != Kind::scalar || place.add(*part.type) != part.at) return false;
    }
    return place.bytes() == type.size;
  }

  /// Gives a container its size and the places in its nodes.
  Layout* settle(Layout& made) {
    made.size = made.is_map() ? 64 : 8;
    made.align = made.is_map() ? 64 : 8;
    if (made.kind == Kind::vector || made.kind == Kind::priority_queue) made.size = 32;
    if (made.kind == Kind::list) made.size = 24;
    if (made.kind == Kind::queue) made.size = 128, made.align = 64;
    if (made.is_btree() && made.count < 4) return nullptr;
    if (made.is_hashed() && (made.count & (made.count - 1)) != 0) return nullptr;
    if (made.kind == Kind::box && made.element().kind == Kind::pointer) {
      // A box owns what its text names by a pointer.
      Layout& owned = tree_.nodes_.emplace_back(made.element());
      if (owned.parts.empty()) return nullptr;
      owned.kind = Kind::owned;
      made.parts.front().type = &owned;
    }
    return place_nodes(made) ? &made : nullptr;
  }

  /// table<{...}n,key name,index name,...>/1: table_parts.hpp.
  Layout* table(unsigned depth) {
    Layout& made = make(Kind::table);
    made.leads = true;
    const std::string_view text = left_;
    const Layout& row = type(depth + 1);
    if (row.kind != Kind::structure) return nullptr;
    made.shape = base::hash_bytes(text.data(), text.size() - left_.size(), 0);
    tree_.records_.emplace(made.shape, &row);
    made.parts.push_back({"row", &row, 16});  // behind the row's number and shape
    Layout& address = this->address(Kind::pointer);
    address.text = "row";
    while (take(',')) {
      const auto end = std::min(left_.find_first_of(":,>"), left_.size());
      const std::string_view part = left_.substr(0, end);
      left_.remove_prefix(end);
      // The members' types follow where one has an order of its own: first_part() looks itself.
      if (take(':'))
        for (skip(); take('!'); skip()) (void)take_number();
      constexpr std::string_view dropped = "dropped ";
      const std::string_view was =
          part.starts_with(dropped) ? part.substr(dropped.size()) : part;  // its map stays
      const auto space = was.find(' ');
      if (space == std::string_view::npos) return nullptr;
      const std::string_view word = was.substr(0, space), name = was.substr(space + 1);
      std::vector<const Layout*> found_by;
      if (!members_of(row, name, found_by)) return nullptr;
      Layout* const by = part_map(word, found_by, address);
      if (by == nullptr) return nullptr;
      made.parts.push_back({std::string(part), by, table_part_bytes * made.parts.size()});
    }
    if (made.parts.size() < 2 || !take('>') || !left_.starts_with("/1")) return nullptr;
    left_.remove_prefix(2);
    made.align = 64;
    made.size = table_part_bytes * (made.parts.size() + 1);
    return &made;
  }

  /// The types of "a+b": members of a row.
  static bool members_of(const Layout& row, std::string_view names,
                         std::vector<const Layout*>& types) {
    while (true) {
      const auto end = std::min(names.find('+'), names.size());
      const auto member = std::find_if(row.parts.begin(), row.parts.end(), [&](const Member& m) {
        return m.name == names.substr(0, end);
      });
      if (member == row.parts.end()) return false;
      types.push_back(member->type);
      if (end == names.size()) return true;
      names.remove_prefix(end + 1);
    }
  }

  /// The map of a table's part: of the member, or of a tuple of several; an index's with the row's
  /// number behind them.
  Layout* part_map(std::string_view word, std::vector<const Layout*> members, const Layout& row) {
    const bool one_each = word == "key" || word == "ordered_key" || word == "unique";
    if (!one_each && word != "index" && word != "descending" && word != "expires") return nullptr;
    if (word == "descending") {
      for (const Layout*& member : members) {
        Layout reversed = *member;
        reversed.reversed = true;
        member = &tree_.nodes_.emplace_back(std::move(reversed));
      }
    }
    const Layout* const by =
        one_each && members.size() == 1 ? members.front() : tuple(members, !one_each);
    const bool hashed = word == "key";
    return map_of(by, row, hashed ? 128 : 15, hashed ? Kind::hash_map : Kind::map);
  }

  static constexpr value::Number signed_ = value::Number::signed_integer;
  Tree tree_;
  Names names_;
  std::string_view left_;
  std::vector<Layout*> outer_;
};

Tree read_layout(std::string_view text, std::string_view names) {
  return TreeReader(names).read(text);
}

const Layout* Tree::record(std::uint64_t shape) const {
  const auto found = records_.find(shape);
  return found == records_.end() ? nullptr : found->second;
}

void Tree::add_records(std::string_view text) {
  try {
    Tree other = read_layout(text, "");
    // The nodes of a deque stay where they are when it is moved.
    records_.merge(other.records_);
    others_.push_back(std::move(other.nodes_));
  } catch (const error& e) {
    if (e.code() != Code::corrupt) throw;
  }
}

bool is_bytes_alone(const Layout& value) noexcept {
  if (value.kind == Kind::scalar) return true;
  if (value.kind == Kind::array) return is_bytes_alone(value.element());
  return value.kind == Kind::structure && !value.parts.empty() && value.parts.front().name != "0" &&
         std::all_of(value.parts.begin(), value.parts.end(),
                     [](const Member& part) { return is_bytes_alone(*part.type); });
}

Member Tree::field(std::string_view path) const {
  Member found{"", root_, 0};
  std::string_view left = path;
  while (!left.empty()) {
    const auto end = std::min(left.find('.'), left.size());
    const std::string_view name = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    const auto& parts = found.type->parts;
    const bool inside = found.type->kind == Kind::structure;
    std::string all;
    const Member* next = nullptr;
    for (std::size_t i = 0; inside && i < parts.size(); ++i) {
      const std::string number = std::to_string(i);
      all += (all.empty() ? "" : ", ") + (parts[i].name.empty() ? number : parts[i].name);
      if (parts[i].name == name || (next == nullptr && number == name)) next = &parts[i];
    }
    if (next == nullptr)
      throw error(failure(Code::not_found, "", "no field '" + std::string(path) + "'",
                          inside ? "one of " + all : "a field of the root's structs",
                          "`perdure schema` lists the fields"));
    found = {next->name.empty() ? std::string(name) : next->name, next->type, found.at + next->at};
  }
  return found;
}

bool is_tuple(const Layout& key) noexcept {
  return key.kind == Kind::structure && key.named && !key.parts.empty() &&
         key.parts.front().name == "0";
}

bool has_known_order(const Layout& key) noexcept {
  if (key.own_order) return false;
  switch (key.kind) {
    case Kind::scalar: return key.size <= 8 || key.number != value::Number::floating;
    case Kind::text: return true;
    case Kind::structure:
      // Any other struct may have an operator<.
      return is_tuple(key) &&
             std::all_of(key.parts.begin(), key.parts.end(),
                         [](const Member& part) { return has_known_order(*part.type); });
    case Kind::optional:
    case Kind::variant:
    case Kind::array:
      return std::all_of(key.parts.begin(), key.parts.end(),
                         [](const Member& part) { return has_known_order(*part.type); });
    default: return false;  // a sequence may hold its own struct
  }
}

}  // namespace perdure::inspect
