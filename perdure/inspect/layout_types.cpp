// SPDX-License-Identifier: BSD-3-Clause
//
// TreeReader: the types of values, by recursive descent. The number of levels in a text is bounded.
#include <algorithm>
#include <utility>

#include "perdure/base/checksum.hpp"
#include "perdure/inspect/layout_reader.hpp"

namespace perdure::inspect {

Layout& TreeReader::whole(std::string_view text) {
  const std::string_view rest = std::exchange(left_, text);
  outer_.clear();
  Layout& type = this->type(0);
  const bool all = left_.empty();
  left_ = rest;
  return all ? type : unknown(text);
}

Layout& TreeReader::unknown(std::string_view text) {
  Layout& type = make(Kind::unknown);
  type.text = text;
  type.exact = false;
  type.leads = true;
  return type;
}

void TreeReader::skip() {
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

Layout& TreeReader::type(unsigned depth) {
  if (depth > deepest) wrong_layout("types nested deeper than " + std::to_string(deepest), "fewer");
  const std::string_view begin = left_;
  Layout* found = known(depth);
  if (found == nullptr) {
    left_ = begin;
    skip();
    found = &unknown(begin.substr(0, begin.size() - left_.size()));
    if (take('!')) {  // a class that states its layout: only its bytes are known
      const auto bytes = take_number();
      found->size = bytes.value_or(0);
      found->align = bytes ? std::min<std::uint64_t>(*bytes & (~*bytes + 1), 8) : 1;
      if (found->align == 0) found->align = 1;
      found->leads = false;
    }
  }
  while (take('[')) {
    const auto n = take_number();
    if (!n || !take(']')) return *found;  // whole() notices the rest of the text
    found = &array(*found, *n);
  }
  if (found->text.empty()) found->text = begin.substr(0, begin.size() - left_.size());
  return *found;
}

Layout& TreeReader::array(const Layout& element, std::uint64_t n) {
  Layout& type = make(Kind::array);
  type.count = n;
  type.parts.push_back({{}, &element, 0});
  if (element.size == 0) {  // the offsets of its elements are unknown
    type.kind = Kind::unknown;
    type.exact = false;
    type.leads = element.leads;
    type.parts.clear();
    return type;
  }
  if (n > (std::uint64_t{1} << 47) / element.size)
    wrong_layout("an array of " + std::to_string(n) + " elements", "one that fits into a pool");
  type.size = element.size * n;
  type.align = element.align;
  type.exact = element.exact;
  type.leads = element.leads;
  return type;
}

Layout* TreeReader::known(unsigned depth) {
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

Layout* TreeReader::structure(unsigned depth) {
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
      // The text does not say its size, which is at most the bytes up to the next field.
      auto& unsized = const_cast<Layout&>(*part.type);
      unsized.size = next - part.at;
    }
  }
  return &type;
}

Layout* TreeReader::generic(std::string_view word, unsigned depth) {
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
    inner.own_hash = inner.own_hash || word == "hash";
    inner.text.clear();
    return &tree_.nodes_.emplace_back(std::move(inner));
  }
  if (word == "retired") {  // retired.hpp: the container alone
    Layout& inner = type(depth + 1);
    return take('>') ? &inner : nullptr;
  }
  if (word == "rebuilt") {  // rebuilt.hpp: the new container and the old one
    const Layout& now = type(depth + 1);
    if (!take(',')) return nullptr;
    const Layout& before = type(depth + 1);
    if (!take('>') || !now.exact || !before.exact) return nullptr;
    constexpr std::uint64_t line = 64;
    const auto lines = [](std::uint64_t n) { return (n + line - 1) / line * line; };
    Layout& made = make(Kind::structure);
    made.parts = {{"now", &now, 0}, {"before", &before, lines(now.size)}};
    made.align = line;
    made.size = lines(now.size) + lines(before.size);
    made.leads = true;
    made.named = true;
    return &made;
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

Layout* TreeReader::tagged(Layout& type) {
  type.size = 0, type.align = 1, type.leads = false;
  for (const Member& part : type.parts) {
    if (!part.type->exact) return nullptr;  // its offset is unknown
    type.align = std::max(type.align, part.type->align);
    type.size = std::max(type.size, part.type->size);
    type.leads = type.leads || part.type->leads;
  }
  for (Member& part : type.parts) part.at = type.align;
  type.size = type.align + (type.size + type.align - 1) / type.align * type.align;
  return &type;
}

}  // namespace perdure::inspect
