// SPDX-License-Identifier: BSD-3-Clause
//
// A pool's dump and layout text, a load of them, and the comparison of two dumps.
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <string_view>

#include "perdure/api/erased.hpp"
#include "perdure/inspect/dump.hpp"
#include "perdure/inspect/load_pool.hpp"
#include "perdure/inspect/source.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::test {

/// A pool of any program, opened for reading.
class DumpedPool {
 public:
  explicit DumpedPool(const std::string& path) {
    Options options;
    options.create = false;
    options.read_only = true;
    pool_ = ErasedPool::open(path, options, {.layout = {}, .bytes = 0, .any_layout = true}).value();
  }
  std::string schema() {
    pool::OpenPool& file = pool_->file();
    return pool::read_catalog(file.path(), file.header(), file.view()).value().layouts.front();
  }
  /// Whether a change to another version of its program is not finished.
  bool unfinished() {
    bool found = false;
    walk([&](inspect::Walker&, const inspect::Source& source) { found = source.unfinished; });
    return found;
  }
  std::string dump(bool lines = false, bool indexes = false) {
    std::string text;
    walk([&](inspect::Walker& walker, const inspect::Source& source) {
      inspect::JsonWriter out([&](std::string_view piece) { text += piece; }, lines ? 0 : 2);
      inspect::Dump dump(walker, out, indexes);
      const auto& fields = source.tree.root().parts;
      lines ? dump.lines(fields, source.root) : dump.document(fields, source.root);
      out.flush();
      EXPECT_TRUE(dump.damage().empty());
    });
    return text;
  }

 private:
  using Walk = std::function<void(inspect::Walker&, const inspect::Source&)>;
  void walk(const Walk& f) {
    struct Call {
      ErasedPool& pool;
      const Walk& f;
    } call{*pool_, f};
    pool_->view(
        Durability::async,
        [](ErasedTx& tx, void* arg) {
          auto& of = *static_cast<Call*>(arg);
          pool::OpenPool& file = of.pool.file();
          value::ReaderOver<ErasedTx> reader(tx);
          inspect::Walker walker(reader, reinterpret_cast<inspect::Address>(file.view()),
                                 file.data_bytes());
          const auto catalog = pool::read_catalog(file.path(), file.header(), file.view()).value();
          const inspect::Source source = inspect::read_source(walker, file.header(), catalog);
          walker.use_records_of(source.tree);
          of.f(walker, source);
        },
        &call);
  }
  std::unique_ptr<ErasedPool> pool_;
};

/// Loads a dump. Throws what load_pool throws.
inline inspect::LoadedPool load(const std::string& path, const std::string& schema,
                                std::string_view dump, bool lines = false) {
  inspect::JsonReader in(
      [&](char* to, std::size_t n) {
        n = std::min<std::size_t>(n, std::min<std::size_t>(dump.size(), 1000));
        std::memcpy(to, dump.data(), n);
        dump.remove_prefix(n);
        return n;
      },
      "dump");
  inspect::LoadOptions options;
  options.schema = schema;
  options.schema_name = "schema";
  options.lines = lines;
  options.pool.creation.log_size = 4 << 20;
  return inspect::load_pool(path, options, in);
}

/// A dump in which objects have numbers in the order of their first mention, instead of offsets.
inline std::string renumbered(const std::string& dump) {
  static const std::regex number(R"(("\$ptr": |"\$hook": |"object": |")(\d{4,})((?:": )?))");
  std::map<std::string, std::size_t> numbers;
  std::string out;
  auto from = dump.cbegin();
  for (std::sregex_iterator i(dump.begin(), dump.end(), number), end; i != end; ++i) {
    const std::smatch& found = *i;
    if (found[1] == "\"" && found[3].length() == 0) continue;  // a text of digits
    out.append(from, found[0].first);
    const auto at = numbers.emplace(found[2].str(), numbers.size()).first->second;
    out += found[1].str() + "n" + std::to_string(at) + found[3].str();
    from = found[0].second;
  }
  return out.append(from, dump.cend());
}

/// Loads the dumps of a pool, all three kinds, and compares them with dumps of the new pools. The
/// last new pool is at `to`.
inline void expect_round_trip(const std::string& from, const std::string& to) {
  std::string schema, plain, lines, indexes;
  {
    DumpedPool pool(from);
    schema = pool.schema();
    plain = pool.dump();
    lines = pool.dump(true);
    indexes = pool.dump(false, true);
  }
  const auto compare = [&](const std::string& text, bool in_lines, bool with_indexes) {
    std::remove(to.c_str());
    ASSERT_NO_THROW((void)load(to, schema, text, in_lines));
    DumpedPool pool(to);
    EXPECT_EQ(pool.schema(), schema);
    EXPECT_EQ(renumbered(pool.dump(in_lines, with_indexes)), renumbered(text));
  };
  compare(plain, false, false);
  compare(lines, true, false);
  compare(indexes, false, true);
}

}  // namespace perdure::test
