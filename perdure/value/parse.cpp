// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/parse.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "perdure/value/resolve.hpp"

namespace perdure::value {
namespace {

struct Word {
  std::string_view name;
  Number number;
  std::uint32_t size;
};
constexpr std::array words = {
    Word{"u8", Number::unsigned_integer, 1},   Word{"u16", Number::unsigned_integer, 2},
    Word{"u32", Number::unsigned_integer, 4},  Word{"u64", Number::unsigned_integer, 8},
    Word{"i8", Number::signed_integer, 1},     Word{"i16", Number::signed_integer, 2},
    Word{"i32", Number::signed_integer, 4},    Word{"i64", Number::signed_integer, 8},
    Word{"f32", Number::floating, 4},          Word{"f64", Number::floating, 8},
    Word{"bool", Number::unsigned_integer, 1}, Word{"char", Number::signed_integer, 1},
    Word{"byte", Number::unsigned_integer, 1}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

/// Reads by recursive descent. A type is made before the types within it. After a failure every
/// call returns null.
class Parser {
 public:
  explicit Parser(std::string_view text) : owned_(std::make_unique<ParsedType::Owned>()) {
    owned_->text = text;
    text_ = owned_->text;
  }

  /// Reads one type; at() is behind the type afterwards.
  Result<ParsedType> run() {
    const Type* root = type(false);
    if (root != nullptr) {
      owned_->root = root;
      std::string wrong = resolve(owned_->types);
      if (!wrong.empty()) (void)fail(wrong);
    }
    if (!status_.ok()) return std::move(status_);
    Type& whole = owned_->types.front();
    if (whole.kind == Kind::structure) whole.shape = shape_of(text_of(whole));
    return ParsedType(std::move(owned_));
  }
  [[nodiscard]] std::size_t at() const { return at_; }

 private:
  /// A structure around the place that is read.
  struct Around {
    const Type* type;
    bool turned;  ///< directly in desc<>, so no "^n" may refer to it
  };

  std::nullptr_t fail(const std::string& found, Code code = Code::corrupt) {
    if (status_.ok()) {
      constexpr std::size_t shown = 60;
      const std::size_t from = at_ > shown ? at_ - shown : 0;
      status_ = Status(code, "perdure: found " + found + " at byte " + std::to_string(at_) +
                                 " of the layout text of a value (behind '" +
                                 printable(text_.substr(from, at_ - from)) +
                                 "'): the pool's data is damaged, or a newer version of Perdure "
                                 "wrote it; use that one");
    }
    return nullptr;
  }
  static std::string printable(std::string_view text) {
    std::string out(text);
    std::replace_if(out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return out;
  }

  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool skip(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  bool expect(char c) {
    if (skip(c)) return true;
    (void)fail(at_ == text_.size()
                   ? std::string("the end")
                   : "'" + printable(text_.substr(at_, 1)) + "' instead of '" + c + "'");
    return false;
  }
  /// A number as std::to_string writes it: without a sign and leading zeros.
  std::optional<std::uint64_t> number(std::uint64_t largest) {
    std::uint64_t value = 0;
    const char* const from = text_.data() + at_;
    const auto [end, error] = std::from_chars(from, text_.data() + text_.size(), value);
    if (error != std::errc{} || value > largest || !is_digit(*from) ||
        (*from == '0' && end - from > 1)) {
      (void)fail("no number up to " + std::to_string(largest));
      return std::nullopt;
    }
    at_ += static_cast<std::size_t>(end - from);
    return value;
  }

  Type& make(Kind kind) {
    Type& type = owned_->types.emplace_back();
    type.kind = kind;
    return type;
  }

  const Type* type(bool turned) {
    if (depth_ == deepest_text) return fail("types nested more than 100 deep", Code::too_big);
    ++depth_;
    const Type* const out = one(turned);
    --depth_;
    return out;
  }

  const Type* one(bool turned) {
    if (skip('{')) return structure(turned);
    if (skip('^')) return turned ? fail("desc<> of a struct around it") : around();
    std::size_t end = at_;
    while (end < text_.size() && (is_digit(text_[end]) || (text_[end] >= 'a' && text_[end] <= 'z')))
      ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    const char next = end < text_.size() ? text_[end] : '\0';
    if (next == '<') {
      if (word == "vec") return in_brackets(end, Kind::sequence);
      if (word == "opt") return in_brackets(end, Kind::optional);
      if (word == "var") return in_brackets(end, Kind::variant);
      if (word == "arr") return in_brackets(end, Kind::array);
      if (word == "desc") return descending(end, turned);
      if (word == "less" || word == "hash") return marked(end, word == "less", turned);
      if (word == "span" || word == "time" || word == "local") return time(end);
    }
    const bool ends = next == '\0' || next == ',' || next == '>' || next == '@';
    if (ends && word == "string") {
      at_ = end;
      return &make(Kind::text);
    }
    if (ends || (word == "enum" && next == ':')) {
      const std::size_t from = at_;
      if (const Word* known = scalar_word()) return scalar(from, known->number, known->size);
    }
    return opaque();
  }

  /// Reads "u8" or "enum:u8". If there is none, returns null and reads nothing.
  const Word* scalar_word() {
    const std::size_t skipped = text_.substr(at_).starts_with("enum:") ? 5 : 0;
    std::size_t end = at_ + skipped;
    while (end < text_.size() && (is_digit(text_[end]) || (text_[end] >= 'a' && text_[end] <= 'z')))
      ++end;
    const auto* known = std::find_if(words.begin(), words.end(), [&](const Word& one) {
      return one.name == text_.substr(at_ + skipped, end - at_ - skipped);
    });
    if (known == words.end()) return nullptr;
    at_ = end;
    return known;
  }

  const Type* scalar(std::size_t from, Number number, std::uint32_t size) {
    Type& type = make(Kind::scalar);
    type.number = number;
    type.size = type.align = size;
    type.word = text_.substr(from, at_ - from);
    return &type;
  }

  /// "time<1/1000,i64>".
  const Type* time(std::size_t bracket) {
    const std::size_t from = at_;
    at_ = bracket + 1;
    constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const auto numerator = number(largest);
    if (!numerator || !expect('/')) return nullptr;
    const auto denominator = number(largest);
    if (!denominator || !expect(',')) return nullptr;
    if (*numerator == 0 || *denominator == 0) return fail("a unit of time of 0");
    const Word* const rep = scalar_word();
    if (rep == nullptr) return fail("no number that counts time");
    if (!expect('>')) return nullptr;
    return scalar(from, rep->number, rep->size);
  }

  /// "money/1!8": a class that states its layout. Commas are in its name only in brackets.
  const Type* opaque() {
    const std::size_t from = at_;
    int open = 0;
    for (; at_ < text_.size() && text_[at_] != '!'; ++at_) {
      const char c = text_[at_];
      if (c == '<') ++open;
      if (c == '>') --open;
      if (open < 0 || (c == ',' && open == 0) || c == '{' || c == '}' || c == '@') break;
    }
    const std::string_view name = text_.substr(from, at_ - from);
    if (name.empty() || !skip('!')) {
      at_ = from;
      return fail("an unknown type");
    }
    const auto size = number(largest_image);
    if (!size) return nullptr;
    Type& type = make(Kind::scalar);
    type.number = Number::opaque;
    type.word = name;
    type.size = static_cast<std::uint32_t>(*size);
    type.align = natural_align(type.size);
    if (skip('/')) {
      const auto align = number(8);
      if (!align) return nullptr;
      type.align = static_cast<std::uint32_t>(*align);
      if (type.align == 0 || type.size % type.align != 0 || type.align >= natural_align(type.size))
        return fail("an alignment that a class of that size does not state");
    }
    if ((type.align & (type.align - 1)) != 0) return fail("an alignment that is no power of two");
    return &type;
  }

  const Type* descending(std::size_t bracket, bool turned) {
    if (turned) return fail("desc<> in desc<>");
    at_ = bracket + 1;
    const std::size_t index = owned_->types.size();
    if (type(true) == nullptr || !expect('>')) return nullptr;
    owned_->types[index].reversed = true;
    return &owned_->types[index];
  }

  /// "less<{...}8>", "hash<{...}8>".
  const Type* marked(std::size_t bracket, bool order, bool turned) {
    at_ = bracket + 1;
    const std::size_t index = owned_->types.size();
    if (peek() == '^') return fail("a mark of a struct around it");
    if (type(turned) == nullptr || !expect('>')) return nullptr;
    Type& inner = owned_->types[index];
    bool& mark = order ? inner.own_order : inner.own_hash;
    if (mark || inner.reversed || (!order && inner.own_order) ||
        !(inner.kind == Kind::structure || inner.number == Number::opaque))
      return fail("a mark that has no meaning there");
    mark = true;
    return &inner;
  }

  const Type* in_brackets(std::size_t bracket, Kind kind) {
    Type& out = make(kind);
    at_ = bracket;
    do {
      ++at_;
      const Type* const part = type(false);
      if (part == nullptr) return nullptr;
      out.parts.push_back({{}, part, 0, 0});
    } while (kind == Kind::variant && peek() == ',');
    if (kind == Kind::array) {
      if (!expect(',')) return nullptr;
      const auto count = number(largest_image);
      if (!count) return nullptr;
      out.count = *count;
    }
    if (out.parts.size() > 255) return fail("more than 255 alternatives");
    return expect('>') ? &out : nullptr;
  }

  const Type* structure(bool turned) {
    Type& out = make(Kind::structure);
    around_.push_back({&out, turned});
    while (peek() != '}') {
      if (!out.parts.empty() && !expect(',')) return nullptr;
      const std::size_t from = at_;
      at_ = std::min(text_.find_first_of(":{}<>,@!^", at_), text_.size());
      const std::string_view name = text_.substr(from, at_ - from);
      if (!expect(':')) return nullptr;
      const Type* const part = type(false);
      if (part == nullptr || !expect('@')) return nullptr;
      const auto where = number(largest_image);
      if (!where) return nullptr;
      out.parts.push_back({name, part, static_cast<std::uint32_t>(*where), 0});
    }
    ++at_;
    const auto size = number(largest_image);
    if (!size) return nullptr;
    out.size = static_cast<std::uint32_t>(*size);
    around_.pop_back();
    return &out;
  }

  const Type* around() {
    const auto n = number(around_.size());
    if (!n) return nullptr;
    if (*n == 0) return fail("a struct that is 0 levels up");
    const Around& one = around_[around_.size() - *n];
    if (one.turned) return fail("a struct of desc<> that contains itself");
    return one.type;
  }

  std::unique_ptr<ParsedType::Owned> owned_;
  std::string_view text_;
  std::size_t at_ = 0;
  unsigned depth_ = 0;
  std::vector<Around> around_;
  Status status_;
};

Result<ParsedType> parse_front(std::string_view& text) {
  // Only the type at the beginning of a container's text is limited, not the whole text.
  Parser parser(text.substr(0, longest_text));
  Result<ParsedType> out = parser.run();
  if (out) text.remove_prefix(parser.at());
  return out;
}

Result<ParsedType> parse(std::string_view text) {
  if (text.size() > longest_text) {
    return Status(Code::too_big, "perdure: found a layout text of " + std::to_string(text.size()) +
                                     " bytes, expected at most " + std::to_string(longest_text));
  }
  std::string_view rest = text;
  Result<ParsedType> out = parse_front(rest);
  if (out && !rest.empty()) {
    return Status(Code::corrupt, "perdure: found " + std::to_string(rest.size()) +
                                     " bytes behind the layout text of a value: the pool's data "
                                     "is damaged, or a newer version of Perdure wrote it");
  }
  return out;
}

}  // namespace perdure::value
