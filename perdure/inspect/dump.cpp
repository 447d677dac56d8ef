// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/inspect/dump.hpp"

#include <algorithm>
#include <optional>

#include "perdure/base/status.hpp"
#include "perdure/inspect/scalar.hpp"

namespace perdure::inspect {

std::string name_of(const Member& member, std::size_t index) {
  return member.name.empty() ? std::to_string(index) : member.name;
}

/// Writes the elements of a container, for a document or as lines.
class DumpEntries final : public Visitor {
 public:
  DumpEntries(Dump& dump, const Layout& type, unsigned depth, const std::string* field)
      : dump_(dump), type_(type), depth_(depth), field_(field) {}

  bool entry(const Entry& entry) override {
    JsonWriter& out = dump_.out_;
    if (field_ != nullptr) {
      const std::size_t outside = out.depth();
      out.begin_object();
      out.key("field");
      out.text(*field_);
      if (type_.kind == Kind::table) {
        out.key("row");
      } else if (type_.is_map()) {
        out.key("key");
        dump_.value(type_.element(), entry.key, depth_);
        if (!type_.is_set()) out.key("value");
      } else {
        out.key("index");
        out.token(std::to_string(index_++));
        out.key("value");
      }
      element(entry);
      while (out.depth() > outside) out.end();
      out.newline();
      return true;
    }
    if (type_.is_named_map()) {
      dump_.map_key(entry.key);
      element(entry);
    } else if (type_.is_set()) {
      dump_.value(type_.element(), entry.key, depth_);
    } else if (type_.is_map()) {
      out.begin_array();
      dump_.value(type_.element(), entry.key, depth_);
      element(entry);
      out.end();
    } else {
      element(entry);
    }
    return true;
  }
  void problem(const std::string& text) override { Walker::damaged(text, "a sound container"); }

 private:
  void element(const Entry& entry) {
    if (type_.is_set()) return;
    if (type_.kind == Kind::table)
      dump_.row(type_, entry.value, depth_);
    else
      dump_.value(type_.is_map() ? type_.mapped() : type_.element(), entry.value, depth_);
  }

  Dump& dump_;
  const Layout& type_;
  const unsigned depth_;
  const std::string* field_;
  std::uint64_t index_ = 0;
};

namespace {

/// The entries of an index: [key, number of the row].
class IndexEntries final : public Visitor {
 public:
  IndexEntries(Dump& dump, Walker& walker, JsonWriter& out, const Layout& part, unsigned depth)
      : dump_(dump), walker_(walker), out_(out), part_(part), depth_(depth) {}
  bool entry(const Entry& entry) override {
    out_.begin_array();
    dump_.value(part_.element(), entry.key, depth_);
    out_.token(std::to_string(walker_.read<std::uint64_t>(walker_.read<Address>(entry.value))));
    out_.end();
    return true;
  }
  void problem(const std::string& text) override { Walker::damaged(text, "a sound container"); }

 private:
  Dump& dump_;
  Walker& walker_;
  JsonWriter& out_;
  const Layout& part_;
  const unsigned depth_;
};

}  // namespace

bool has_elements(const Layout& type) noexcept {
  return type.is_container() && type.kind != Kind::string && type.kind != Kind::box;
}

template <class F>
void Dump::guarded(const std::string& field, F&& f) {
  const std::size_t depth = out_.depth();
  try {
    f();
  } catch (const error& e) {
    if (e.code() != Code::corrupt) throw;
    damage_.push_back("field " + field + ": " + e.what());
    out_.damaged(depth, e.what());
  }
}

void Dump::document(const std::vector<Member>& fields, Address at) {
  out_.begin_object();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string name = name_of(fields[i], i);
    out_.key(is_utf8(name) ? name : std::to_string(i));
    guarded(name, [&] { value(*fields[i].type, at + fields[i].at); });
  }
  if (!open_.empty()) {
    out_.key("$objects");
    out_.begin_object();
    while (!open_.empty()) {
      const auto [where, type] = open_.back();
      open_.pop_back();
      const std::string name = std::to_string(where - walker_.mapped());
      out_.key(name);
      const Address from = where;
      const Layout* const of = type;
      guarded("$objects." + name, [&] { value(*of, from); });
    }
    out_.end();
  }
  out_.end();
  out_.newline();
}

void Dump::lines(const std::vector<Member>& fields, Address at) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string name = name_of(fields[i], i);
    const Layout& type = *fields[i].type;
    const Address where = at + fields[i].at;
    if (has_elements(type)) {
      try {
        DumpEntries entries(*this, type, 0, &name);
        walker_.each(type, where, entries);
      } catch (const error& e) {
        if (e.code() != Code::corrupt) throw;
        damage_.push_back("field " + name + ": " + e.what());
        out_.damaged(0, e.what());
        out_.newline();
      }
      continue;
    }
    out_.begin_object();
    out_.key("field");
    out_.text(name);
    out_.key("value");
    guarded(name, [&] { value(type, where); });
    out_.end();
    out_.newline();
  }
  objects_as_lines();
}

void Dump::objects_as_lines() {
  while (!open_.empty()) {
    const auto [where, type] = open_.back();
    open_.pop_back();
    const std::string name = std::to_string(where - walker_.mapped());
    out_.begin_object();
    out_.key("object");
    out_.token(name);
    out_.key("value");
    const Address from = where;
    const Layout* const of = type;
    guarded("$objects." + name, [&] { value(*of, from); });
    out_.end();
    out_.newline();
  }
}

void Dump::pointer(const Layout* target, Address to) {
  if (to == 0) return out_.token("null");
  out_.begin_object();
  out_.key("$ptr");
  const std::uint64_t offset = to - walker_.mapped();
  out_.token(std::to_string(offset));
  out_.end();
  if (target != nullptr && offset < walker_.data_bytes() && reached_.insert(to).second)
    open_.emplace_back(to, target);
}

void Dump::hook(Address at) {
  const auto list = walker_.read<Address>(at + 16);
  if (list == 0) return out_.token("null");
  out_.begin_object();
  out_.key("$ptr");
  out_.token(std::to_string(list - walker_.mapped()));
  out_.key("$hook");
  out_.token(std::to_string(at - walker_.mapped()));
  out_.end();
}

void Dump::unknown(const Layout& type, Address at) {
  out_.begin_object();
  out_.key("?");
  out_.text(type.text.empty() ? "unknown" : type.text);
  out_.key("bytes");
  out_.token(std::to_string(type.size));
  if (type.size != 0 && (type.size <= 64 || !type.leads)) {
    if (type.size > walker_.data_bytes()) Walker::damaged("an object", "one in the pool");
    std::string bytes(type.size, '\0');
    walker_.read_bytes(bytes.data(), at, type.size);
    out_.key("$hex");
    out_.text(hex_of(bytes));
  }
  out_.end();
}

void Dump::map_key(Address at) {
  // "$" begins what is no text: a text that begins with it has one more.
  const std::string key = walker_.text(walker_.read<Address>(at));
  if (is_utf8(key)) return out_.key(key.starts_with('$') ? "$" + key : key);
  out_.key("$hex:" + hex_of(key));
}

void Dump::scalar(const Layout& type, Address at) {
  unsigned char bytes[16] = {};
  walker_.read_bytes(bytes, at, std::min<std::uint64_t>(type.size, 16));
  const ScalarText text = scalar_text(type, bytes);
  if (text.quoted)
    out_.text(text.text);
  else
    out_.token(text.text);
}

void Dump::members(const Layout& structure, Address at, unsigned depth) {
  for (std::size_t i = 0; i < structure.parts.size(); ++i) {
    const Member& part = structure.parts[i];
    const std::string name = name_of(part, i);
    out_.key(is_utf8(name) ? name : std::to_string(i));
    value(*part.type, at + part.at, depth + 1);
  }
}

void Dump::value(const Layout& type, Address at, unsigned depth) {
  Walker::check_depth(depth);
  switch (type.kind) {
    case Kind::unknown: return unknown(type, at);
    case Kind::scalar: return scalar(type, at);
    case Kind::text:
    case Kind::string: return out_.text(walker_.text(walker_.read<Address>(at)));
    case Kind::sequence: {
      if (type.element().size == 0) return unknown(type, at);
      const auto block = walker_.read<Address>(at);
      const std::uint64_t n = walker_.sequence_count(type, block);
      out_.begin_array();
      for (std::uint64_t i = 0; i < n; ++i)
        value(type.element(), block + 8 + i * type.element().size, depth + 1);
      return out_.end();
    }
    case Kind::optional: {
      if (walker_.read<std::uint8_t>(at) == 0) return out_.token("null");
      const bool nested = type.element().kind == Kind::optional;
      if (nested) out_.begin_object(), out_.key("$some");
      value(type.element(), at + type.parts.front().at, depth + 1);
      if (nested) out_.end();
      return;
    }
    case Kind::variant: {
      const auto index = walker_.read<std::uint8_t>(at);
      if (index >= type.parts.size())
        Walker::damaged("alternative " + std::to_string(index) + " of a variant",
                        "one of " + std::to_string(type.parts.size()));
      out_.begin_object();
      out_.key("$index");
      out_.token(std::to_string(index));
      out_.key("value");
      value(*type.parts[index].type, at + type.parts[index].at, depth + 1);
      return out_.end();
    }
    case Kind::array:
      if (type.size > walker_.data_bytes()) Walker::damaged("an array", "one in the pool");
      if (type.element().kind == Kind::scalar && type.element().meaning == Meaning::character) {
        // An array of char is text up to its zeros.
        std::string bytes(type.count, '\0');
        walker_.read_bytes(bytes.data(), at, type.count);
        bytes.resize(bytes.find_last_not_of('\0') + 1);
        return out_.text(bytes);
      }
      out_.begin_array();
      for (std::uint64_t i = 0; i < type.count; ++i)
        value(type.element(), at + i * type.element().size, depth + 1);
      return out_.end();
    case Kind::structure:
      out_.begin_object();
      members(type, at, depth);
      return out_.end();
    case Kind::record: {
      const auto block = walker_.read<Address>(at);
      if (block == 0) return out_.token("null");
      const Layout* const as =
          walker_.structure(walker_.read<std::uint64_t>(block), type.shape, type.element());
      if (as == nullptr)
        Walker::damaged("a record of another shape than " + type.text, "one of its shape");
      return value(*as, block + 8, depth + 1);
    }
    case Kind::owned: {
      const auto block = walker_.read<Address>(at);
      if (block == 0) return out_.token("null");
      // A chain of boxes may be long: what is deep in it is an object of its own.
      if (depth > 60) return pointer(&type.element(), block);
      return value(type.element(), block, depth + 1);
    }
    case Kind::hook: return hook(at);
    case Kind::elsewhere: return pointer(nullptr, at);
    case Kind::pointer:
      return pointer(type.parts.empty() ? nullptr : &type.element(), walker_.pointer(at));
    default: return container(type, at, depth);
  }
}

void Dump::container(const Layout& type, Address at, unsigned depth) {
  if (type.kind == Kind::box) return value(type.element(), at, depth + 1);
  if (type.kind == Kind::table && indexes_) return table(type, at, depth);
  const bool object = type.is_named_map();
  if (object)
    out_.begin_object();
  else
    out_.begin_array();
  DumpEntries entries(*this, type, depth + 1, nullptr);
  walker_.each(type, at, entries);
  out_.end();
}

void Dump::row(const Layout& table, Address block, unsigned depth) {
  const Layout* const as = walker_.structure(walker_.read<std::uint64_t>(block + 8), table.shape,
                                             *table.parts.front().type);
  if (as == nullptr) Walker::damaged("a row of another shape than the table's", "one of its shape");
  out_.begin_object();
  if (indexes_) {
    out_.key("$row");
    out_.token(std::to_string(walker_.read<std::uint64_t>(block)));
  }
  members(*as, block + table.parts.front().at, depth);
  out_.end();
}

void Dump::table(const Layout& type, Address at, unsigned depth) {
  out_.begin_object();
  out_.key("next");
  out_.token(std::to_string(walker_.read<std::uint64_t>(at)));
  out_.key("rows");
  out_.begin_array();
  DumpEntries entries(*this, type, depth + 1, nullptr);
  walker_.each(type, at, entries);
  out_.end();
  out_.key("indexes");
  out_.begin_object();
  for (std::size_t i = 2; i < type.parts.size(); ++i) {
    out_.key(type.parts[i].name);
    out_.begin_array();
    IndexEntries index(*this, walker_, out_, *type.parts[i].type, depth + 1);
    walker_.each(*type.parts[i].type, at + type.parts[i].at, index);
    out_.end();
  }
  out_.end();
  out_.end();
}

}  // namespace perdure::inspect
