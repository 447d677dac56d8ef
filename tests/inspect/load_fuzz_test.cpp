// SPDX-License-Identifier: BSD-3-Clause
//
// load_pool over random layouts with random data: the pool passes the deep check at the end of
// load_pool, its dump is what was loaded, and loading this dump gives an equal dump, byte for byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/inspect/load_folder.hpp"
#include "tests/inspect/round_trip.hpp"

namespace perdure::test {
namespace {

/// A value as JSON, and bytes that sort as it does.
struct Made {
  std::string json, order;
};
struct Type {
  std::string text;
  std::uint64_t size = 8, align = 8;
  std::function<Made()> make;
};

class Fuzz {
 public:
  explicit Fuzz(unsigned seed) : random_(seed) {}

  /// A layout text, and a dump of a pool with this layout.
  void run(std::string& schema, std::string& dump) {
    std::uint64_t at = 0;
    const std::uint64_t n = 1 + below(6);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::string name = "field" + std::to_string(i);
      const Type type = below(5) == 0 ? scalar() : below(4) == 0 ? table() : container(2);
      at = (at + type.align - 1) / type.align * type.align;
      schema += name + ": " + type.text + " @" + std::to_string(at) + " " +
                std::to_string(type.size) + "\n";
      at += type.size;
      dump += (i == 0 ? "{\"" : ", \"") + name + "\": " + type.make().json;
    }
    dump += "}";
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  static std::string big_endian(std::uint64_t value, std::uint64_t bytes) {
    std::string out;
    while (bytes-- > 0) out += static_cast<char>(value >> 8 * bytes);
    return out;
  }

  Type integer() {
    const std::uint64_t bytes = std::uint64_t{1} << below(4);
    const bool is_signed = below(2) == 0;
    const auto make = [this, bytes, is_signed] {
      const auto unused = static_cast<unsigned>(64 - 8 * bytes);
      const std::uint64_t bits = below(2) == 0 ? below(10) : random_() >> unused;
      if (!is_signed) return Made{std::to_string(bits), big_endian(bits, bytes)};
      const std::int64_t value = static_cast<std::int64_t>(bits << unused) >> unused;
      return Made{
          std::to_string(value),
          big_endian(static_cast<std::uint64_t>(value) ^ std::uint64_t{1} << (63 - unused), bytes)};
    };
    const std::string word = (is_signed ? "i" : "u") + std::to_string(8 * bytes);
    return {(below(5) == 0 ? "enum:" : "") + word, bytes, bytes, make};
  }
  Type scalar() {
    switch (below(4)) {
      case 0: return {"bool", 1, 1, [this] { return Made{below(2) == 0 ? "true" : "false", ""}; }};
      case 1:
        return {"f64", 8, 8, [this] {
                  static const char* const some[] = {
                      "0.1", "-0", "\"NaN\"", "5e-324", "\"NaN:fff0000000000001\"", "\"Infinity\""};
                  return Made{some[below(6)], ""};
                }};
      default: return integer();
    }
  }
  Type text() {
    return {"string", 8, 8, [this] {
              std::string out;
              for (std::uint64_t n = below(below(8) == 0 ? 900 : 12); n > 0; --n)
                out += static_cast<char>('a' + below(26));
              return Made{"\"" + out + "\"", out + '\0'};
            }};
  }
  static void place(std::uint64_t& size, std::uint64_t& align, const Type& part) {
    size = (size + part.align - 1) / part.align * part.align + part.size;
    align = std::max(align, part.align);
  }
  Type structure(std::vector<Type> parts, const std::string& prefix) {
    std::string out = "{";
    std::uint64_t size = 0, align = 1;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      place(size, align, parts[i]);
      out += (i == 0 ? "" : ",") + prefix + std::to_string(i) + ":" + parts[i].text + "@" +
             std::to_string(size - parts[i].size);
    }
    size = (size + align - 1) / align * align;
    return {out + "}" + std::to_string(size), size, align, [parts, prefix] {
              Made made;
              for (std::size_t i = 0; i < parts.size(); ++i) {
                const Made part = parts[i].make();
                made.json +=
                    (i == 0 ? "{\"" : ", \"") + prefix + std::to_string(i) + "\": " + part.json;
                made.order += part.order;
              }
              made.json += "}";
              return made;
            }};
  }
  /// An optional or variant of these: a byte, then the alternative.
  static Type tagged(const std::string& word, const std::vector<Type>& parts,
                     std::function<Made()> make) {
    std::string out;
    std::uint64_t size = 0, align = 1;
    for (const Type& part : parts) {
      out += (out.empty() ? "" : ",") + part.text;
      size = std::max(size, part.size), align = std::max(align, part.align);
    }
    size = align + (size + align - 1) / align * align;
    return {word + "<" + out + ">", size, align, std::move(make)};
  }
  /// A key, or a value without a block of its own.
  Type image(unsigned depth, bool key) {
    switch (depth == 0 ? 5 + below(3) : below(8)) {
      case 0: {
        const Type inside = image(depth - 1, key);
        return tagged("opt", {inside}, [this, inside] {
          if (below(3) == 0) return Made{"null", std::string(1, '\0')};
          const Made made = inside.make();
          const bool nested = inside.text.starts_with("opt<");
          return Made{nested ? "{\"$some\": " + made.json + "}" : made.json, '\1' + made.order};
        });
      }
      case 1: {
        const std::vector<Type> parts{image(depth - 1, key), image(depth - 1, key)};
        return tagged("var", parts, [this, parts] {
          const std::uint64_t index = below(2);
          const Made made = parts[index].make();
          return Made{"{\"$index\": " + std::to_string(index) + ", \"value\": " + made.json + "}",
                      static_cast<char>(index) + made.order};
        });
      }
      case 2: {
        const Type inside = image(depth - 1, key);
        return {"vec<" + inside.text + ">", 8, 8, [this, inside] {
                  Made made{"[", ""};
                  for (std::uint64_t n = below(4), i = 0; i < n; ++i) {
                    const Made one = inside.make();
                    made.json += (i == 0 ? "" : ", ") + one.json;
                    made.order += '\1' + one.order;
                  }
                  return Made{made.json + "]", made.order + '\0'};
                }};
      }
      case 3: return structure({image(depth - 1, key), image(depth - 1, key)}, "");
      case 4: {
        const Type inside = image(depth - 1, key);
        return {"arr<" + inside.text + ",2>", 2 * inside.size, inside.align, [inside] {
                  const Made a = inside.make(), b = inside.make();
                  return Made{"[" + a.json + ", " + b.json + "]", a.order + b.order};
                }};
      }
      case 5: return key ? integer() : scalar();
      case 6: return integer();
      default: return text();
    }
  }
  /// A container's value or element.
  Type element(unsigned depth) {
    if (below(3) == 0) {
      const Type record = structure({image(1, false), text(), image(1, false)}, "f");
      return {"rec<" + record.text + ">", 8, 8, record.make};
    }
    if (depth > 0 && below(4) == 0) {
      const Type inside = container(depth - 1);
      return {"own<" + inside.text + ">", 8, 8, inside.make};
    }
    return image(1, false);
  }
  /// Entries with different keys, in their order.
  std::map<std::string, std::string> entries(const Type& key, std::uint64_t n) {
    std::map<std::string, std::string> all;
    while (n-- > 0) {
      const Made made = key.make();
      all.emplace(made.order, made.json);
    }
    return all;
  }

  Type container(unsigned depth) {
    static const char* const words[] = {"map",     "set",      "hash_map", "hash_set",
                                        "rb_tree", "multimap", "list",     "queue",
                                        "deque",   "vector",   "box"};
    const std::string word = words[below(std::size(words))];
    if (word == "box") {
      const Type record = structure({text(), integer()}, "b");
      return {"box<rec<" + record.text + ">>/1", 8, 8,
              [this, record] { return below(3) == 0 ? Made{"null", ""} : record.make(); }};
    }
    const bool keys = word.ends_with("map") || word.ends_with("set") || word == "rb_tree";
    const bool set = word.ends_with("set");
    const bool hashed = word.starts_with("hash");
    const Type first = keys ? image(2, true) : element(depth), second = element(depth);
    std::string out = word + "<" + first.text;
    if (keys && !set) out += "," + second.text;
    if (keys && word != "rb_tree")
      out += hashed ? "," + std::to_string(1U << below(9)) : "," + std::to_string(4 + below(40));
    Type type{out + ">/1", 64, 64, {}};
    if (word == "list") type.size = 24, type.align = 8;
    if (word == "vector") type.size = 32, type.align = 8;
    if (word == "queue" || word == "deque" || word == "multimap") type.size = 128;
    const bool named = first.text == "string" && !set && keys && word != "multimap";
    type.make = [=, this] {
      static constexpr std::uint64_t sizes[] = {0, 1, 7, 30, 400};
      const std::uint64_t n = sizes[below(depth == 2 ? 5 : 4)];
      std::string json;
      const auto add = [&](const std::string& one) { json += (json.empty() ? "" : ", ") + one; };
      if (!keys)
        for (std::uint64_t i = 0; i < n; ++i) add(first.make().json);
      for (const auto& [order, key] : entries(first, keys ? n : 0)) {
        if (set)
          add(key);
        else if (named)
          add(key + ": " + second.make().json);
        else
          add("[" + key + ", " + second.make().json + "]");
      }
      return Made{named ? "{" + json + "}" : "[" + json + "]", ""};
    };
    return type;
  }

  Type table() {
    const Type id = below(2) == 0 ? text() : integer(), owner = image(1, true),
               rest = image(2, false);
    const Type until{"time<1/1,i64>", 8, 8, [this] {
                       const std::uint64_t day = 1 + below(28);
                       return Made{"\"2026-02-" + std::string(day < 10 ? "0" : "") +
                                       std::to_string(day) + "T01:02:03Z\"",
                                   ""};
                     }};
    const Type row = structure({id, owner, until, rest}, "m");
    const bool ordered = below(2) == 0;
    return {"table<" + row.text + (ordered ? ",ordered_key m0" : ",key m0") +
                ",index m1,descending m1+m0,expires m2>/1",
            64 * 6, 64, [=, this] {
              std::string json;
              for (const auto& [order, key] : entries(id, below(3) == 0 ? 0 : below(200)))
                json += (json.empty() ? "" : ", ") + ("{\"m0\": " + key) +
                        ", \"m1\": " + owner.make().json + ", \"m2\": " + until.make().json +
                        ", \"m3\": " + rest.make().json + "}";
              return Made{"[" + json + "]", ""};
            }};
  }

  std::mt19937_64 random_;
};

/// The texts of a dump between its brackets, sorted, since the order of a hash_map may differ.
std::vector<std::string> tokens(const std::string& dump) {
  std::vector<std::string> all(1);
  for (const char c : dump) {
    if (std::string_view(" \n,:[]{}").find(c) == std::string_view::npos)
      all.back() += c;
    else if (!all.back().empty())
      all.emplace_back();
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(LoadFuzz, RandomLayouts) {
  LoadFolder folder;
  const std::string one = folder.path("one"), two = folder.path("two");
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::string schema, dump;
    Fuzz(seed).run(schema, dump);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + schema);
    std::remove(one.c_str());
    std::remove(two.c_str());
    ASSERT_NO_THROW((void)load(one, schema, dump));
    const std::string loaded = DumpedPool(one).dump(), lines = DumpedPool(one).dump(true);
    ASSERT_EQ(tokens(dump), tokens(loaded));
    ASSERT_NO_THROW((void)load(two, schema, loaded));
    ASSERT_EQ(DumpedPool(two).dump(), loaded);
    std::remove(two.c_str());
    ASSERT_NO_THROW((void)load(two, schema, lines, true));
    ASSERT_EQ(DumpedPool(two).dump(), loaded);
  }
}

}  // namespace
}  // namespace perdure::test
