// SPDX-License-Identifier: BSD-3-Clause
//
// layout_of<T>(): a text that describes how T lies in a pool. Its fingerprint guards opening; the
// text itself lets tools read the pool.
//
// One line per field, "index path: type @offset size", nested structs by path; then, for each
// struct reached through a ptr, its fields, with "#number" as the path's first part:
//     0: hash_map<u64,i64,128>/1 @0 64
//     1.0: u64 @64 8
//     1.1: ptr<#1> @72 8
//     #1.0: u32[4] @0 16
// Types: u8 ... u128, i8 ... i128, f32, f64, bool, char, byte; "enum:u32"; T[n];
// {type@offset,...}size for a struct held whole; ptr<T>; a container by its layout_text(); any
// other type by the `layout_id` that it, or a specialisation of layout_name<T>, states.
//
// field_names_of<T>(): the names of the fields that this text numbers, in its order, nested structs
// in braces:
//     accounts,meta{next,link},#1{key,value}
// The fingerprint leaves them out: a pool without names keeps its fingerprint.
// Thread safety: pure functions; the text is made on every call, the fingerprint from it.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/api/field_name.hpp"
#include "perdure/api/fields.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/api/plan.hpp"
#include "perdure/base/checksum.hpp"

namespace perdure {

namespace value {
struct Type;
}

/// Names a type that you can't change:
///     template <> struct perdure::layout_name<Their> {
///       static constexpr std::string_view value = "their/1";
///     };
template <class T>
struct layout_name {};

/// The names of types in one layout text (below).
class LayoutNames;

/// How a layout text describes structs of numbers, and keys.
enum class LayoutVersion : std::uint8_t {
  /// Structs of numbers without the names of their fields: {i32@0,i32@4}8. Pools without a catalog
  /// have such a text, so it must not change.
  plain,
  /// Structs of numbers with the names of their fields: {x:i32@0,y:i32@4}8. Classes in keys are
  /// marked if they have an order or a hash of their own: less<{x:i32@0}4>.
  named,
};

namespace detail {

template <class T>
inline constexpr bool is_field = false;  ///< p or ptr
/// A field: see above.
template <class T>
inline constexpr bool is_field<p<T>> = true;
/// A field: see above.
template <class T>
inline constexpr bool is_field<ptr<T>> = true;
/// Whether T is a std::array.
template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;

template <class T>
concept names_itself = requires {
  { T::layout_id } -> std::convertible_to<std::string_view>;
};
template <class T>
concept named_outside = requires {
  { layout_name<T>::value } -> std::convertible_to<std::string_view>;
};
template <class T>
concept container_text = requires(LayoutNames& names) {
  { T::layout_text(names) } -> std::convertible_to<std::string>;
};
template <class T>
concept own_text = requires {
  { T::layout_text() } -> std::convertible_to<std::string>;
};
template <class T>
concept says_its_layout = names_itself<T> || named_outside<T> || container_text<T> || own_text<T>;
template <class T>
concept opened_by_fields = aggregate_struct<T> && !is_std_array<T> && !says_its_layout<T>;

}  // namespace detail

/// The names of types in one layout text, with the structs that its pointers lead to, numbered in
/// the order in which they are first seen.
class LayoutNames {
 public:
  /// Makes the names for a text of this version.
  explicit LayoutNames(LayoutVersion version = LayoutVersion::plain) noexcept : version_(version) {}
  /// The version of the text.
  [[nodiscard]] LayoutVersion version() const noexcept { return version_; }

  /// Returns the name of a type. `Held`: its bytes are read as a whole (it is inside a p<>), so its
  /// fields are plain.
  template <class T, bool Held = false>
  [[nodiscard]] std::string name() {
    if constexpr (std::is_array_v<T>) {
      return name<std::remove_extent_t<T>, Held>() + "[" + std::to_string(std::extent_v<T>) + "]";
    } else if constexpr (detail::names_itself<T>) {
      return std::string(T::layout_id);
    } else if constexpr (detail::named_outside<T>) {
      return std::string(layout_name<T>::value);
    } else if constexpr (detail::container_text<T>) {
      return T::layout_text(*this);
    } else if constexpr (detail::own_text<T>) {
      return T::layout_text();
    } else if constexpr (detail::is_std_array<T>) {
      return name<typename T::value_type, Held>() + "[" + std::to_string(std::tuple_size_v<T>) +
             "]";
    } else if constexpr (detail::is_field<T>) {
      return name<typename T::value_type, true>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      static_assert(Held,
                    "perdure: a std::string keeps its text in DRAM: a pool's field is "
                    "perdure::string (a container's key or value may be "
                    "std::string)");
      return "string";
    } else if constexpr (std::is_same_v<T, std::byte>) {
      return "byte";
    } else if constexpr (std::is_pointer_v<T>) {
      return "ptr<" + pointee<std::remove_cv_t<std::remove_pointer_t<T>>>() + ">";
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || is_int128<T>) {
      static_assert(Held,
                    "perdure: a plain number or enum in a struct that lies in a pool could be read "
                    "and written past the transaction: "
                    "make the field p<T> (std::byte alone is allowed, as padding)");
      return scalar<T>();
    } else if constexpr (aggregate_struct<T>) {
      return structure<T, Held>();
    } else {
      static_assert(says_nothing<T>,
                    "perdure: the layout of this type can't be seen (it has constructors, a base "
                    "class or private fields): make it an "
                    "aggregate, or state `static constexpr std::string_view layout_id = "
                    "\"name/version\";` in it, or "
                    "specialise perdure::layout_name<T>");
      return {};
    }
  }

  /// Appends lines for the fields of `T`, each path starting with `prefix`.
  template <class T>
  void lines(std::string& out, const std::string& prefix, std::size_t base = 0) {
    if constexpr (detail::opened_by_fields<T>) {
      if constexpr (requires { T::perdure_renamed; })
        for (const renamed& r : T::perdure_renamed)
          said_.renamed.emplace_back(prefix + std::string(r.before), prefix + std::string(r.now));
      if constexpr (requires { T::perdure_removed; })
        for (const std::string_view name : T::perdure_removed)
          said_.removed.push_back(prefix + std::string(name));
      std::size_t index = 0;
      each_offset<T>(
          [&]<class Field>(std::type_identity<Field>, std::size_t offset, std::string_view field) {
            const std::string number = std::to_string(index++);
            const std::string path =
                prefix +
                (version_ == LayoutVersion::named && !field.empty() ? std::string(field) : number);
            add_name(field);
            if constexpr (detail::opened_by_fields<Field>)
              in_braces([&] { lines<Field>(out, path + ".", base + offset); });
            else
              out += path + ": " + name<Field>() + " @" + std::to_string(base + offset) + " " +
                     std::to_string(sizeof(Field)) + "\n";
          });
    } else {
      out += prefix + "0: " + name<T>() + " @" + std::to_string(base) + " " +
             std::to_string(sizeof(T)) + "\n";
    }
  }

  /// Appends lines for every struct seen through a pointer so far, and through those structs.
  void definitions(std::string& out) {
    for (std::size_t i = 0; i < met_.size(); ++i) {
      const std::string number = "#" + std::to_string(i + 1);
      add_name(number);
      in_braces([&] { met_[i].define(*this, out, number + "."); });
    }
  }

  /// Returns the names of all fields seen so far; empty where the compiler gives none.
  [[nodiscard]] std::string field_names() const { return any_name_ ? names_ : std::string(); }

  /// Adds the type of a struct that is a record or a row in this text to records().
  void note_record(const value::Type& type) { records_.push_back(&type); }
  /// The types of all records and rows in the text.
  [[nodiscard]] const std::vector<const value::Type*>& records() const noexcept { return records_; }

  /// Adds a container that is rebuilt from another one to rebuilds().
  void note_rebuild(detail::Rebuild one) { rebuilds_.push_back(std::move(one)); }
  /// All containers in the text that are rebuilt.
  [[nodiscard]] const std::vector<detail::Rebuild>& rebuilds() const noexcept { return rebuilds_; }

  /// The structs that pointers lead to, in the order of their numbers. REQUIRES: definitions().
  [[nodiscard]] std::vector<detail::PointedType> pointed() const {
    std::vector<detail::PointedType> all;
    for (const Met& one : met_) all.push_back(one.as);
    return all;
  }

  /// What the structs in the text declare about the version of the program before: perdure_renamed
  /// and perdure_removed. The paths of a struct that pointers lead to begin with its number.
  [[nodiscard]] const detail::SaidOfBefore& said_of_before() const noexcept { return said_; }

 private:
  template <class T>
  static constexpr bool says_nothing = detail::says_its_layout<T>;
  template <class T>
  static constexpr bool is_int128 =
      std::is_same_v<T, __int128> || std::is_same_v<T, unsigned __int128>;
  struct Met {
    /// The address of a variable, not of the function: linkers may merge equal functions.
    const void* type;
    void (*define)(LayoutNames&, std::string&, const std::string&);
    detail::PointedType as;
  };
  template <class T>
  static inline char tag = 0;
  template <class T>
  static void define(LayoutNames& names, std::string& out, const std::string& prefix) {
    names.lines<T>(out, prefix);
    for (Met& one : names.met_)
      if (one.type == &tag<T>) one.as = as_pointed<T>();
  }
  template <class T>
  static detail::PointedType as_pointed() {
    detail::PointedType as{sizeof(T), alignof(T), nullptr};
    if constexpr (requires { T{}; })
      as.initial = [](std::byte* at) { ::new (static_cast<void*>(at)) T{}; };
    return as;
  }

  template <class T>
  static std::string scalar() {
    if constexpr (std::is_enum_v<T>)
      return "enum:" + scalar<std::underlying_type_t<T>>();
    else if constexpr (std::is_same_v<T, bool>)
      return "bool";
    else if constexpr (std::is_same_v<T, char>)
      return "char";
    else if constexpr (std::is_floating_point_v<T>)
      return "f" + std::to_string(sizeof(T) * 8);
    else
      return (static_cast<T>(-1) < static_cast<T>(0) ? "i" : "u") + std::to_string(sizeof(T) * 8);
  }

  template <class T>
  std::string pointee() {
    if constexpr (std::is_void_v<T>) {
      return "void";
    } else if constexpr (detail::opened_by_fields<T>) {
      std::size_t i = 0;
      while (i < met_.size() && met_[i].type != &tag<T>) ++i;
      if (i == met_.size()) met_.push_back({&tag<T>, &define<T>, {}});
      return "#" + std::to_string(i + 1);
    } else {
      return name<T, true>();
    }
  }

  template <class T, bool Held>
  std::string structure() {
    std::string out = "{";
    in_braces([&] {
      each_offset<T>(
          [&]<class Field>(std::type_identity<Field>, std::size_t offset, std::string_view field) {
            add_name(field);
            if (out.size() > 1) out += ',';
            if (version_ == LayoutVersion::named) out.append(field) += ':';
            out += name<Field, Held>() + "@" + std::to_string(offset);
          });
    });
    return out + "}" + std::to_string(sizeof(T));
  }

  void add_name(std::string_view field) {
    if (!names_.empty() && names_.back() != '{') names_ += ',';
    names_ += field;
    any_name_ = any_name_ || (!field.empty() && field.front() != '#');
  }
  template <class F>
  void in_braces(F&& f) {
    names_ += '{';
    f();
    names_ += '}';
  }

  /// Calls f(std::type_identity<Field>, offset, name) for each field of T. Only addresses in
  /// storage that is never read are formed.
  template <class T, class F>
  static void each_offset(F&& f) {
    union Storage {
      Storage() {}
      ~Storage() {}
      std::byte bytes;
      T object;
    };
    const auto storage = std::make_unique<Storage>();  // a root may be too big for a stack
    constexpr auto names = detail::field_names<T>();
    std::size_t index = 0;
    for_each_field(storage->object, [&]<class Field>(Field& field) {
      f(std::type_identity<std::remove_const_t<Field>>{},
        static_cast<std::size_t>(reinterpret_cast<const std::byte*>(std::addressof(field)) -
                                 &storage->bytes),
        names[index++]);
    });
  }

  LayoutVersion version_;
  std::vector<Met> met_;
  std::string names_;
  bool any_name_ = false;
  detail::SaidOfBefore said_;
  std::vector<const value::Type*> records_;
  std::vector<detail::Rebuild> rebuilds_;
};

namespace detail {

/// What opening is given about a pool's root object.
struct RootType {
  std::string layout;  ///< layout_of<Root>()
  std::uint64_t bytes = 0;
  bool any_layout = false;       ///< an existing pool is opened whatever its root type is
  std::string field_names = {};  ///< field_names_of<Root>(); empty: none are known
  /// The layout text with names (named_layout_of<Root>()); empty: `layout` is used instead.
  std::string named_layout = {};
  std::vector<const value::Type*> records = {};  ///< the types of all records and rows in it
  std::vector<Rebuild> rebuilds = {};            ///< all containers in it that are rebuilt
  std::vector<PointedType> pointed = {};         ///< the structs that pointers lead to, by number
  SaidOfBefore said = {};  ///< what the root type declares about the version before
  /// The text for a catalog.
  [[nodiscard]] const std::string& text() const noexcept {
    return named_layout.empty() ? layout : named_layout;
  }
};

/// Describes the root type T for opening.
template <class T>
[[nodiscard]] RootType root_type(LayoutVersion version = LayoutVersion::plain) {
  LayoutNames names(version);
  RootType root{.layout = {}, .bytes = sizeof(T)};
  names.lines<T>(root.layout, "");
  names.definitions(root.layout);
  root.field_names = names.field_names();
  LayoutNames named(LayoutVersion::named);
  named.lines<T>(root.named_layout, "");
  named.definitions(root.named_layout);
  root.said = named.said_of_before();
  root.pointed = named.pointed();
  root.records = named.records();
  root.rebuilds = named.rebuilds();
  return root;
}

}  // namespace detail

/// The layout text of T.
template <class T>
[[nodiscard]] std::string layout_of(LayoutVersion version = LayoutVersion::plain) {
  return detail::root_type<T>(version).layout;
}

/// The names of T's fields, in the order of its layout text; empty where the compiler gives none,
/// or T has no fields of its own.
template <class T>
[[nodiscard]] std::string field_names_of() {
  return detail::root_type<T>().field_names;
}

/// The layout text of T with the names of its fields, as a pool's catalog holds it.
template <class T>
[[nodiscard]] std::string named_layout_of() {
  return detail::root_type<T>().named_layout;
}

/// The hash of a layout text that a pool's header holds, to be compared first.
[[nodiscard]] inline std::uint64_t layout_fingerprint(std::string_view text) noexcept {
  return base::hash_bytes(text.data(), text.size(), 0);
}

/// The fingerprint of T's layout text.
template <class T>
[[nodiscard]] std::uint64_t layout_fingerprint() {
  return layout_fingerprint(layout_of<T>());
}

/// How two layout texts differ, for a message: "field 1.0: the pool has 'u64 @64 8', the program
/// 'i64 @64 8'". Empty when they are equal.
[[nodiscard]] inline std::string layout_difference(std::string_view pool,
                                                   std::string_view program) {
  const auto next = [](std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() < text.size() ? line.size() + 1 : text.size());
    return line;
  };
  const auto part = [](std::string_view line, bool path) {
    const auto colon = line.find(": ");
    if (colon == std::string_view::npos) return path ? std::string_view("?") : line;
    return path ? line.substr(0, colon) : line.substr(colon + 2);
  };
  while (!pool.empty() || !program.empty()) {
    const std::string_view a = next(pool), b = next(program);
    if (a == b) continue;
    const auto quoted = [&](std::string_view line) {
      return line.empty() ? std::string("nothing") : "'" + std::string(part(line, false)) + "'";
    };
    return "field " + std::string(part(a.empty() ? b : a, true)) + ": the pool has " + quoted(a) +
           ", the program " + quoted(b);
  }
  return {};
}

}  // namespace perdure
