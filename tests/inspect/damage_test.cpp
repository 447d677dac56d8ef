// SPDX-License-Identifier: BSD-3-Clause
//
// Damaged memory: whatever the bytes of a root and its blocks are, find_blocks ends with a list, a
// dump is a JSON document, with "$damaged" where it could not go on, and find() throws
// error(corrupt) at most. PERDURE_INSPECT_ROUNDS sets the number of rounds, PERDURE_TEST_SEED their
// seed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "perdure/api/layout.hpp"
#include "perdure/container/box.hpp"
#include "perdure/container/deque.hpp"
#include "perdure/container/hash_map.hpp"
#include "perdure/container/hash_set.hpp"
#include "perdure/container/hooked_list.hpp"
#include "perdure/container/list.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/multimap.hpp"
#include "perdure/container/priority_queue.hpp"
#include "perdure/container/queue.hpp"
#include "perdure/container/rb_tree.hpp"
#include "perdure/container/set.hpp"
#include "perdure/container/string.hpp"
#include "perdure/container/table.hpp"
#include "perdure/container/vector.hpp"
#include "perdure/inspect/blocks.hpp"
#include "perdure/inspect/dump.hpp"
#include "perdure/inspect/find.hpp"
#include "tests/inspect/arena.hpp"

namespace perdure::test {
namespace {

using inspect::Address;

struct Place {
  std::string town;
  std::vector<std::string> names{};
  std::optional<std::string> note{};
};
struct Node {
  p<std::uint64_t> value;
  ptr<Node> next;
  string name;
  list_hook hook;
};
struct Inner {
  p<std::uint32_t> n;
  vector<std::string> words;
  map<std::uint32_t, std::string> more;
};
struct Session {
  std::string token;
  std::uint64_t user = 0;
  std::int32_t price = 0;
  std::optional<std::string> mail{};
  std::chrono::sys_seconds until{};
};
using Either = std::variant<std::uint8_t, std::string, Place>;

struct Root {
  p<std::uint64_t> number;
  p<std::array<char, 12>> letters;
  string title;
  box<Place> place;
  box<Inner> inner;
  map<std::string, Place> places;
  map<std::int16_t, std::uint64_t, 40> wide;
  map<std::string, vector<std::string>> nested;
  rb_tree<std::int32_t, std::optional<std::string>> tree;
  hash_map<std::string, std::string> words;
  hash_map<std::uint32_t, Inner, 4> inners;
  list<Either> either;
  vector<double> marks;
  vector<std::vector<std::string>> lists;
  queue<std::string> jobs;
  table<Session, key<&Session::token>, indexed<&Session::user>, indexed_descending<&Session::price>,
        unique<&Session::mail>, expires<&Session::until>, indexed<&Session::user, &Session::token>>
      sessions;
  set<std::string> names;
  hash_set<std::uint64_t> numbers;
  multimap<std::string, std::string> several;
  deque<std::string> both;
  priority_queue<std::string> next;
  hooked_list<Node, &Node::hook> hooked;
  ptr<Node> head;
  vector<Node*> nodes;
};

std::string word(unsigned i) { return std::string(i * 7 % 23, 'x') + std::to_string(i); }

void fill(Arena& arena) {
  auto& root = *reinterpret_cast<Root*>(arena.add(sizeof(Root)));
  ArenaTx tx(arena);
  root.title.assign(tx, "a title");
  root.place.put(tx, Place{"here", {"a", "b"}, "c"});
  root.inner.make(tx);
  Node* last = nullptr;
  for (unsigned i = 0; i < 40; ++i) {
    const Place place{word(i), {word(i + 1), word(i + 2)}, word(i + 3)};
    root.inner.update(tx, [&](Inner& inner) { inner.words.push_back(tx, word(i)); });
    root.places.put(tx, word(i), place);
    root.wide.put(tx, static_cast<std::int16_t>(i * 31), i);
    root.nested.upsert(tx, word(i % 5),
                       [&](vector<std::string>& inner) { inner.push_back(tx, word(i)); });
    root.tree.put(tx, static_cast<std::int32_t>(i * 37 % 41), word(i));
    root.words.put(tx, word(i), word(i + 1));
    root.inners.upsert(tx, i % 7, [&](Inner& inner) { inner.more.put(tx, i, word(i)); });
    root.either.push_back(tx, i % 3 == 0   ? Either(std::uint8_t{7})
                              : i % 3 == 1 ? Either(word(i))
                                           : Either(place));
    root.marks.push_back(tx, i / 4.0);
    root.lists.push_back(tx, {word(i), word(i + 1)});
    root.jobs.push(tx, word(i));
    root.sessions.put(tx, Session{word(i), i % 5, static_cast<std::int32_t>(i), word(i),
                                  std::chrono::sys_seconds(std::chrono::seconds(i))});
    Node* const node = tx.make<Node>();
    node->name.assign(tx, word(i));
    tx.write(node->next, last);
    root.nodes.push_back(tx, node);
    root.hooked.push_back(tx, *node);
    root.names.insert(tx, word(i));
    root.numbers.insert(tx, i);
    root.several.insert(tx, word(i % 3), word(i));
    if (i % 2 == 0)
      root.both.push_front(tx, word(i));
    else
      root.both.push_back(tx, word(i));
    root.next.push(tx, word(i));
    last = node;
  }
  tx.write(root.head, last);
}

/// Changes up to four places: bits, bytes, words, words that point somewhere.
void damage(Arena& arena, std::mt19937_64& random) {
  for (std::uint64_t n = random() % 4 + 1; n > 0; --n) {
    const std::size_t at = random() % 3 == 0 ? random() % sizeof(Root) : random() % arena.used();
    const std::size_t at_word = at / 8 * 8;
    auto& byte = reinterpret_cast<unsigned char&>(arena.data()[at]);
    std::uint64_t word = 0;
    std::memcpy(&word, arena.data() + at_word, 8);
    switch (random() % 7) {
      case 0: byte = static_cast<unsigned char>(byte ^ 1U << random() % 8); continue;
      case 1: byte = static_cast<unsigned char>(random()); continue;
      case 2: word = random() >> random() % 64; break;
      case 3: word = random() % 2 == 0 ? 0 : ~std::uint64_t{0}; break;
      case 4: word += random() % 2 == 0 ? 8 : ~std::uint64_t{0}; break;
      case 5:
        word = reinterpret_cast<Address>(arena.data()) + random() % arena.used() / 8 * 8;
        break;
      default: std::memcpy(&word, arena.data() + random() % arena.used() / 8 * 8, 8); break;
    }
    std::memcpy(arena.data() + at_word, &word, 8);
  }
}

/// What one look at all of it found.
struct Looked {
  inspect::Blocks blocks;
  std::size_t damaged = 0;  ///< places in a dump
};

/// Looks elements up in each container. Returns how many look-ups ended with error(corrupt).
std::size_t find_all(inspect::Walker& walker, const inspect::Tree& tree, Address root) {
  std::size_t corrupt = 0;
  for (const inspect::Member& member : tree.root().parts) {
    if (!member.type->is_container()) continue;
    for (const char* key : {"3", "40", "xxxxx9"}) {
      try {
        inspect::Layout container = *member.type;
        Address at = root + member.at;
        (void)walker.count(container, at);
        if (container.kind == inspect::Kind::table) {
          container = walker.first_part(container, at);
          at += inspect::table_part_bytes;
        }
        (void)inspect::find(walker, container, at, key);
      } catch (const error& e) {
        if (e.code() == Code::corrupt)
          ++corrupt;
        else
          EXPECT_EQ(e.code(), Code::invalid) << member.name << ": " << e.what();
      }
    }
  }
  return corrupt;
}

Looked look(const Arena& arena, const inspect::Tree& tree, bool as_lines, bool indexes) {
  const auto root = reinterpret_cast<Address>(arena.data());
  ArenaReader reader(arena);
  Looked looked;
  {
    inspect::Walker walker(reader, root, Arena::bytes);
    looked.blocks = inspect::find_blocks(walker, tree.root(), root);
  }
  {
    inspect::Walker walker(reader, root, Arena::bytes);
    looked.damaged += find_all(walker, tree, root);
  }
  inspect::Walker walker(reader, root, Arena::bytes);
  constexpr std::size_t most = 8 << 20;
  std::string text;
  inspect::JsonWriter out(
      [&](std::string_view piece) {
        if (text.size() < most) text += piece;
      },
      2);
  inspect::Dump dump(walker, out, indexes);
  if (as_lines)
    dump.lines(tree.root().parts, root);
  else
    dump.document(tree.root().parts, root);
  out.flush();
  EXPECT_EQ(out.depth(), 0U);
  if (text.size() < most) {
    EXPECT_EQ(!dump.damage().empty(), text.find("\"$damaged\"") != std::string::npos);
  }
  looked.damaged += dump.damage().size();
  if (text.size() < most && !as_lines) {
    EXPECT_TRUE(nlohmann::json::accept(text)) << text;
  }
  return looked;
}

TEST(InspectDamage, EveryWalkEndsAndSaysSo) {
  Arena arena;
  fill(arena);
  const inspect::Tree tree = inspect::read_layout(layout_of<Root>(), field_names_of<Root>());
  const Looked sound = look(arena, tree, false, true);
  EXPECT_TRUE(sound.blocks.whole())
      << (sound.blocks.problems.empty() ? "" : sound.blocks.problems.front());
  EXPECT_EQ(sound.damaged, 0U);
  EXPECT_EQ(sound.blocks.offsets.size() + 1, arena.blocks);

  const char* const seed = std::getenv("PERDURE_TEST_SEED");
  const char* const rounds = std::getenv("PERDURE_INSPECT_ROUNDS");
  std::mt19937_64 random(seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1);
  const unsigned long n = rounds != nullptr ? std::strtoul(rounds, nullptr, 10) : 300;
  const std::vector<std::byte> whole(arena.data(), arena.data() + arena.used());
  std::size_t problems = 0, damaged = 0;
  for (unsigned long round = 0; round < n && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    damage(arena, random);
    const Looked looked = look(arena, tree, random() % 2 == 0, random() % 2 == 0);
    problems += looked.blocks.problems.empty() ? 0 : 1;
    damaged += looked.damaged == 0 ? 0 : 1;
    std::memcpy(arena.data(), whole.data(), whole.size());
  }
  EXPECT_GT(problems, n / 10);
  EXPECT_GT(damaged, n / 10);
}

}  // namespace
}  // namespace perdure::test
