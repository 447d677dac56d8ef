// SPDX-License-Identifier: BSD-3-Clause
//
// The audit of the hash table of Tokyo Cabinet's design (bench/workloads/tc_table.hpp) finds each
// broken link, order and count, and ends where links lead in a circle.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/bench/tc_hash_hosts.hpp"

namespace {

using namespace tc_hash_test;

class TcHashBroken : public TcHash<InMemory> {
 protected:
  using Root = bench::TcRoot<Model>;
  using Ref = Hash::Ref;
  void SetUp() override {
    TcHash::SetUp();
    for (int n = 0; n < 1000; ++n) put("key " + std::to_string(n), "value");
    ASSERT_EQ(std::vector<std::string>{}, problems());
  }
  // Breaks something, and returns what the audit says.
  template <class Break>
  std::string broken(Break break_it) {
    host_.update([&](auto& tx, auto& root) {
      break_it(tx, root);
      return true;
    });
    const auto found = problems();
    return found.size() == 1 ? found[0] : std::to_string(found.size()) + " problems";
  }
  static std::string wrong(int links, int places, int counts) {
    return "tchash: " + std::to_string(links) + " links of lists, " + std::to_string(places) +
           " places in trees and " + std::to_string(counts) + " counts are wrong";
  }
  // A record of the first map that has both children.
  static Ref inner(const bench::PlainTx& tx, const Root& root) {
    Ref record = tx.get(root.maps[0].first);
    while (!tx.get(record->left) || !tx.get(record->right)) record = tx.get(record->next);
    return record;
  }
};

TEST_F(TcHashBroken, ALinkThatLeadsBackIsChecked) {
  EXPECT_EQ(wrong(1, 0, 0), broken([](auto& tx, auto& root) {
              const Ref second = tx.get(tx.get(root.maps[3].first)->next);
              tx.set(second->previous, second);
            }));
}
TEST_F(TcHashBroken, TheListsEndIsChecked) {
  EXPECT_EQ(wrong(1, 0, 0), broken([](auto& tx, auto& root) {
              tx.set(root.maps[7].last, tx.get(root.maps[7].first));
            }));
}
TEST_F(TcHashBroken, ARecordThatTheListLacksIsMissed) {
  EXPECT_EQ(wrong(1, 0, 1), broken([](auto& tx, auto& root) {
              tx.set(root.maps[2].first, tx.get(tx.get(root.maps[2].first)->next));
            }));
}
TEST_F(TcHashBroken, AListThatIsACycleEnds) {
  EXPECT_EQ(wrong(2, 0, 1), broken([](auto& tx, auto& root) {
              tx.set(tx.get(root.maps[2].last)->next, tx.get(root.maps[2].first));
            }));
}
TEST_F(TcHashBroken, TheOrderOfATreeIsChecked) {
  const std::string found = broken([](auto& tx, auto& root) {
    const Ref record = inner(tx, root), left = tx.get(record->left);
    tx.set(record->left, tx.get(record->right));
    tx.set(record->right, left);
  });
  EXPECT_EQ(std::string::npos, found.find(" 0 places")) << found;
}
TEST_F(TcHashBroken, ARecordInAWrongBucketIsFound) {
  const std::string found = broken([](auto& tx, auto& root) {
    const auto table = tx.get(root.maps[1].buckets);
    const Ref first = tx.get(table[0]);
    tx.set(table[0], tx.get(table[1]));
    tx.set(table[1], first);
  });
  EXPECT_NE(std::string::npos, found.find("and 0 counts")) << found;
  EXPECT_EQ(std::string::npos, found.find(" 0 places")) << found;
}
TEST_F(TcHashBroken, ARecordThatATreeLacksIsMissed) {
  const std::string found =
      broken([](auto& tx, auto& root) { tx.set(inner(tx, root)->left, Ref{}); });
  EXPECT_NE(std::string::npos, found.find("0 links of lists, 0 places in trees and 1 counts"))
      << found;
}
TEST_F(TcHashBroken, ATreeThatIsACycleEnds) {
  const std::string found = broken([](auto& tx, auto& root) {
    const Ref record = inner(tx, root);
    tx.set(tx.get(record->left)->left, record);
  });
  EXPECT_NE(std::string::npos, found.find("and 1 counts")) << found;
}
TEST_F(TcHashBroken, BytesAreCounted) {
  EXPECT_EQ(wrong(0, 0, 1), broken([](auto& tx, auto& root) {
              tx.set(root.maps[5].bytes, tx.get(root.maps[5].bytes) + 1);
            }));
}
TEST_F(TcHashBroken, AKeyThatIsNotItsHashsIsFound) {
  // One of the walk's records is out of place, and the search for its key finds none.
  EXPECT_EQ(wrong(0, 2, 0), broken([](auto& tx, auto& root) {
              const Ref first = tx.get(root.maps[4].first);
              tx.set(first->sizes, tx.get(first->sizes) ^ (bench::TcKey::size_mask + 1ULL));
            }));
}

}  // namespace
