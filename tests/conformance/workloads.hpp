// SPDX-License-Identifier: BSD-3-Clause
//
// The workloads with which every engine is explored: small, and made so that logs wrap, checkpoints
// run in between, chunks change their owner, and the data region grows. Each is defined once;
// explore_*.cpp instantiate it for every engine of the registry.
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/conformance/workload.hpp"

namespace perdure::conformance {

/// Swaps of words: their sum does not change. In some steps a run of words is rotated, by one bulk
/// store, and bytes are written at any address.
struct SwapsRoot {
  std::array<p<std::uint64_t>, 64> word;
  std::array<p<std::uint8_t>, 40> byte;
};
struct SwapsModel {
  std::array<std::uint64_t, 64> word{};
  std::array<std::uint8_t, 40> byte{};
};
struct Swaps : Workload<Swaps, SwapsRoot, SwapsModel> {
  static constexpr const char* name = "swaps";
  static constexpr std::size_t count = 64;

  template <class Pool>
  void setup(Pool& pool) {
    for (std::size_t i = 0; i < count; ++i) model.word[i] = i + 1;
    pool.update(
        [&](auto& tx, Root& r) { tx.write_bytes(&r.word, model.word.data(), sizeof model.word); });
  }
  template <class Tx>
  void change(Tx& tx, Root& root, Model& m, Random& r) {
    if (r() % 6 == 0) {
      const std::size_t at = r() % count, n = std::min<std::size_t>(1 + r() % 16, count - at);
      std::rotate(&m.word[at], &m.word[at] + 1, &m.word[at] + n);
      tx.write_bytes(&root.word[at], &m.word[at], n * 8);
    }
    if (r() % 4 == 0) {
      const std::size_t at = r() % m.byte.size(),
                        n = std::min<std::size_t>(1 + r() % 20, m.byte.size() - at);
      for (std::size_t i = 0; i < n; ++i) m.byte[at + i] = static_cast<std::uint8_t>(r());
      tx.write_bytes(&root.byte[at], &m.byte[at], n);
    }
    for (std::uint64_t n = 1 + r() % 5; n > 0; --n) {
      const std::size_t a = r() % count, b = r() % count;
      const std::uint64_t x = tx(root.word[a]), y = tx(root.word[b]);
      tx(root.word[a]) = y;
      tx(root.word[b]) = x;
      std::swap(m.word[a], m.word[b]);
    }
  }
  template <class Tx>
  std::uint64_t digest(Tx& tx, const Root& r) const {
    Digest d;
    for (const auto& w : r.word) d.add(tx(w));
    for (const auto& b : r.byte) d.add(tx(b));
    return d.value();
  }
  static std::uint64_t model_digest(const Model& m) {
    Digest d;
    for (const std::uint64_t w : m.word) d.add(w);
    for (const std::uint8_t b : m.byte) d.add(b);
    return d.value();
  }
  template <class Tx>
  std::string check(Tx& tx, const Root& r, const crash::Crash&) const {
    std::uint64_t sum = 0;
    for (const auto& w : r.word) sum += tx(w);
    return sum == count * (count + 1) / 2
               ? std::string()
               : "half a swap: the sum of the words is " + std::to_string(sum);
  }
};

/// A map of any kind from numbers to texts.
template <class Container>
struct MapRoot {
  Container data;
};
template <class W, class Container>
struct Maps : Workload<W, MapRoot<Container>, std::map<std::uint64_t, std::string>> {
  using typename Workload<W, MapRoot<Container>, std::map<std::uint64_t, std::string>>::Root;
  using typename Workload<W, MapRoot<Container>, std::map<std::uint64_t, std::string>>::Model;
  static constexpr std::uint64_t keys = 40;

  template <class Tx>
  void change(Tx& tx, Root& root, Model& m, Random& r) {
    if (r() % 60 == 0) root.data.clear(tx), m.clear();
    for (std::uint64_t n = 1 + r() % 4; n > 0; --n) {
      const std::uint64_t k = r() % keys;
      const std::string text = some_text(r);
      switch (r() % 5) {
        case 0:
        case 1: root.data.put(tx, k, text), m[k] = text; break;
        case 2: root.data.insert(tx, k, text), m.emplace(k, text); break;
        default: root.data.erase(tx, k), m.erase(k); break;
      }
    }
  }
  template <class Tx>
  std::uint64_t digest(Tx& tx, const Root& root) const {
    std::uint64_t sum = 0, n = 0;  // the order does not matter
    root.data.for_each(tx, [&](std::uint64_t k, const auto& v) {
      ++n;
      sum += Digest().add(k).add(std::string_view(v)).value();
    });
    return Digest().add(n).add(sum).value();
  }
  static std::uint64_t model_digest(const Model& m) {
    std::uint64_t sum = 0;
    for (const auto& [k, v] : m) sum += Digest().add(k).add(std::string_view(v)).value();
    return Digest().add(m.size()).add(sum).value();
  }
};
struct HashMaps : Maps<HashMaps, hash_map<std::uint64_t, std::string>> {
  static constexpr const char* name = "hash_map";
};
struct TreeMaps : Maps<TreeMaps, map<std::uint64_t, std::string>> {
  static constexpr const char* name = "map";
};
struct RbTrees : Maps<RbTrees, rb_tree<std::uint64_t, std::string>> {
  static constexpr const char* name = "rb_tree";
};

/// A list, a queue and a vector of texts: an element enters at one end and leaves at another.
struct SequencesRoot {
  list<std::string> chain;
  queue<std::string> line;
  vector<std::string> row;
};
struct SequencesModel {
  std::deque<std::string> chain, line;
  std::vector<std::string> row;
};
struct Sequences : Workload<Sequences, SequencesRoot, SequencesModel> {
  static constexpr const char* name = "sequences";

  template <class Tx>
  void change(Tx& tx, Root& root, Model& m, Random& r) {
    for (std::uint64_t n = 1 + r() % 4; n > 0; --n) {
      const std::string text = some_text(r);
      switch (r() % 10) {
        case 0: root.chain.push_back(tx, text), m.chain.push_back(text); break;
        case 1: root.chain.push_front(tx, text), m.chain.push_front(text); break;
        case 2:
          if (root.chain.pop_back(tx)) m.chain.pop_back();
          break;
        case 3:
        case 4: root.line.push(tx, text), m.line.push_back(text); break;
        case 5:
          if (root.line.pop(tx)) m.line.pop_front();
          break;
        case 6:
        case 7: root.row.push_back(tx, text), m.row.push_back(text); break;
        case 8:
          if (!m.row.empty()) {
            const std::size_t at = r() % m.row.size();
            root.row.set(tx, at, text), m.row[at] = text;
          }
          break;
        default: {
          const std::size_t to = r() % 12;
          root.row.resize(tx, to, "new"), m.row.resize(to, "new");
        }
      }
    }
  }
  template <class Tx>
  std::uint64_t digest(Tx& tx, const Root& root) const {
    Digest d;
    const auto all = [&](const auto& c) {
      c.for_each(tx, [&](const auto& v) { d.add(std::string_view(v)); });
      d.add(0);
    };
    all(root.chain), all(root.line), all(root.row);
    return d.value();
  }
  static std::uint64_t model_digest(const Model& m) {
    Digest d;
    const auto all = [&](const auto& c) {
      for (const auto& v : c) d.add(std::string_view(v));
      d.add(0);
    };
    all(m.chain), all(m.line), all(m.row);
    return d.value();
  }
};

/// Rows of a table with a part of each kind, and vectors that a map owns.
struct TablesRow {
  std::uint64_t number = 0;
  std::string name;
  std::optional<std::string> mail;
  std::vector<std::string> words;
  std::chrono::sys_seconds until{};
  friend bool operator==(const TablesRow&, const TablesRow&) = default;
};
struct TablesRoot {
  table<TablesRow, key<&TablesRow::number>, indexed<&TablesRow::name>, unique<&TablesRow::mail>,
        expires<&TablesRow::until>>
      rows;
  map<std::uint64_t, vector<std::string>> lists;
};
struct TablesModel {
  std::vector<TablesRow> rows;  ///< oldest first
  std::map<std::uint64_t, std::vector<std::string>> lists;
};
struct Tables : Workload<Tables, TablesRoot, TablesModel> {
  static constexpr const char* name = "tables";

  static TablesRow some_row(Random& r) {
    TablesRow row{.number = r() % 12,
                  .name = std::string(1 + r() % 2, 'n'),
                  .mail = std::nullopt,
                  .words = std::vector<std::string>(r() % 3, some_text(r)),
                  .until = std::chrono::sys_seconds(std::chrono::seconds(r() % 9))};
    if (r() % 2 == 0) row.mail = "mail " + std::to_string(row.number);
    return row;
  }
  template <class Tx>
  void change(Tx& tx, Root& root, Model& m, Random& r) {
    for (std::uint64_t n = 1 + r() % 2; n > 0; --n) {
      const TablesRow row = some_row(r);
      const auto there = std::ranges::find(m.rows, row.number, &TablesRow::number);
      const std::uint64_t list = r() % 4;
      switch (r() % 8) {
        case 0:
        case 1:
        case 2:
          root.rows.put(tx, row);
          if (there == m.rows.end())
            m.rows.push_back(row);
          else
            *there = row;
          break;
        case 3: {
          const auto rename = [&](TablesRow& old) { old.name += '+', old.words.push_back("word"); };
          if (root.rows.update(tx, row.number, rename)) rename(*there);
          break;
        }
        case 4:
          if (root.rows.erase(tx, row.number)) m.rows.erase(there);
          break;
        case 5: {
          const std::chrono::sys_seconds now(std::chrono::seconds(r() % 3));
          root.rows.expire(tx, now);
          std::erase_if(m.rows, [&](const TablesRow& old) { return old.until <= now; });
          break;
        }
        case 6:
          root.lists.upsert(tx, list, [&](auto& texts) { texts.push_back(tx, row.name); });
          m.lists[list].push_back(row.name);
          break;
        default:
          if (root.lists.erase(tx, list)) m.lists.erase(list);
      }
    }
  }
  static void add(Digest& d, const TablesRow& row) {
    d.add(row.number).add(std::string_view(row.name)).add(row.mail ? 1 : 0);
    if (row.mail) d.add(std::string_view(*row.mail));
    for (const std::string& word : row.words) d.add(std::string_view(word));
    d.add(static_cast<std::uint64_t>(row.until.time_since_epoch().count()));
  }
  template <class Tx>
  std::uint64_t digest(Tx& tx, const Root& root) const {
    Digest d;
    for (const TablesRow row : root.rows.template ordered<&TablesRow::name>(tx)) add(d, row);
    d.add(root.rows.size(tx));
    root.lists.for_each(tx, [&](std::uint64_t number, const auto* texts) {
      d.add(number);
      texts->for_each(tx, [&](const std::string& text) { d.add(std::string_view(text)); });
    });
    return d.value();
  }
  static std::uint64_t model_digest(const Model& m) {
    Digest d;
    auto rows = m.rows;
    std::ranges::stable_sort(rows, {}, &TablesRow::name);
    for (const TablesRow& row : rows) add(d, row);
    d.add(rows.size());
    for (const auto& [number, texts] : m.lists) {
      d.add(number);
      for (const std::string& text : texts) d.add(std::string_view(text));
    }
    return d.value();
  }
};

/// Blocks of all sizes in ten slots, allocated and freed, so that the chunks of a heap that is too
/// small for all of them change their use: spans of one class, then another's, then part of a large
/// block. A block contains its number of written words, then those words. In every other round half
/// of the steps end a session: chunks that one session has emptied serve the next one.
struct ChurnRoot {
  std::array<ptr<std::uint64_t>, 10> slot;
};
struct Churn : Workload<Churn, ChurnRoot, std::array<std::vector<std::uint64_t>, 10>> {
  static constexpr const char* name = "churn";
  static void shape(crashtest::Plan& plan) {
    plan.data_bytes = plan.max_data_bytes = 6 * pool::chunk_bytes;
    if (plan.seed % 2 == 0) plan.reopen = 2;
  }

  template <class Tx>
  void change(Tx& tx, Root& root, Model& m, Random& r) {
    for (std::uint64_t n = 1 + r() % 3; n > 0; --n) {
      const std::size_t at = r() % m.size();
      if (std::uint64_t* const block = tx(root.slot[at]); block != nullptr) {
        tx.free(block);
        tx(root.slot[at]) = nullptr;
        m[at].clear();
        continue;
      }
      static constexpr std::uint64_t sizes[] = {2, 3, 6, 12, 30, 100, 500, 2000, 9000};
      const std::uint64_t words = sizes[r() % std::size(sizes)];
      std::vector<std::uint64_t> values(std::min<std::uint64_t>(words, 2 + r() % 20));
      for (auto& v : values) v = r();
      values[0] = values.size();
      auto* const fresh = reinterpret_cast<std::uint64_t*>(tx.alloc(words * 8));
      tx.write_bytes(fresh, values.data(), values.size() * 8);
      tx(root.slot[at]) = fresh;
      m[at] = values;
    }
  }
  template <class Tx>
  std::uint64_t digest(Tx& tx, const Root& root) const {
    Digest d;
    for (const auto& slot : root.slot) {
      const std::uint64_t* const block = tx(slot);
      std::uint64_t n = 0;
      if (block != nullptr) tx.read_bytes(&n, block, 8);
      d.add(n);
      for (std::uint64_t i = 1; i < std::min<std::uint64_t>(n, 64); ++i) {
        std::uint64_t v = 0;
        tx.read_bytes(&v, block + i, 8);
        d.add(v);
      }
    }
    return d.value();
  }
  static std::uint64_t model_digest(const Model& m) {
    Digest d;
    for (const auto& values : m) {
      d.add(values.size());
      for (std::size_t i = 1; i < values.size(); ++i) d.add(values[i]);
    }
    return d.value();
  }
};

/// Churn in a pool whose limit is raised at each opening, from 3 chunks to 30: its directory gets
/// sections at chunks 3, 6, 12 and 24, and processes are killed and the power is cut within these
/// openings as well.
struct Raised : Churn {
  static constexpr const char* name = "raised";
  static void shape(crashtest::Plan& plan) {
    plan.data_bytes = plan.first_limit = 3 * pool::chunk_bytes;
    plan.max_data_bytes = 30 * pool::chunk_bytes;
    plan.reopen = 4;
  }
};

/// A vector that only grows, and large blocks: the data region grows several times, by 4 MiB, and
/// does not reach its maximum.
struct GrowthRoot {
  vector<std::uint64_t> row;
  std::array<ptr<std::uint64_t>, 8> large;  ///< each begins with a number
};
struct GrowthModel {
  std::vector<std::uint64_t> row;
  std::array<std::uint64_t, 8> large{};  ///< 0: none
};
struct Growth : Workload<Growth, GrowthRoot, GrowthModel> {
  static constexpr const char* name = "growth";
  static void shape(crashtest::Plan& plan) {
    plan.data_bytes = 3 * pool::chunk_bytes;
    plan.max_data_bytes = 300 * pool::chunk_bytes;
    plan.ring_bytes = std::max<std::uint64_t>(plan.ring_bytes, 32768);
  }
  template <class Tx>
  void change(Tx& tx, Root& root, Model& m, Random& r) {
    for (std::uint64_t n = 10 + r() % 60; n > 0; --n) m.row.push_back(r());
    const std::uint64_t have = root.row.size(tx);
    root.row.append(tx, std::span<const std::uint64_t>(m.row).subspan(have));
    if (r() % 2 != 0) return;
    const std::size_t at = r() % m.large.size();
    if (m.large[at] != 0) {
      tx.free(tx.read(root.large[at]));
      tx(root.large[at]) = nullptr;
      m.large[at] = 0;
    } else {
      m.large[at] = r() | 1;
      auto* const block =
          reinterpret_cast<std::uint64_t*>(tx.alloc((8 + r() % 16) * pool::chunk_bytes));
      tx.write_bytes(block, &m.large[at], 8);
      tx(root.large[at]) = block;
    }
  }
  template <class Tx>
  std::uint64_t digest(Tx& tx, const Root& root) const {
    Digest d;
    root.row.for_each(tx, [&](std::uint64_t v) { d.add(v); });
    for (const auto& slot : root.large) {
      std::uint64_t n = 0;
      if (const std::uint64_t* const block = tx(slot); block != nullptr)
        tx.read_bytes(&n, block, 8);
      d.add(n);
    }
    return d.value();
  }
  static std::uint64_t model_digest(const Model& m) {
    Digest d;
    for (const std::uint64_t v : m.row) d.add(v);
    for (const std::uint64_t n : m.large) d.add(n);
    return d.value();
  }
};

}  // namespace perdure::conformance
