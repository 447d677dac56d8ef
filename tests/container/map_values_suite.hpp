// SPDX-License-Identifier: BSD-3-Clause
//
// The maps' suite on plain structs, sequences and other composed values and keys.
//
// Thread safety: one thread.
#pragma once

#include "tests/container/values.hpp"

// Its functions are found only if they are declared before the suite.
#include "tests/container/map_suite.hpp"

namespace perdure::test {

template <class Policy>
class MapValuesSuite : public ::testing::Test {};
TYPED_TEST_SUITE_P(MapValuesSuite);

TYPED_TEST_P(MapValuesSuite, HashMapOfStructs) {
  map_model_test<TypeParam, hash_map<std::uint64_t, Person>>();
}
TYPED_TEST_P(MapValuesSuite, HashMapOfPairsToWords) {
  map_model_test<TypeParam, hash_map<NameAndNumber, Words, 8>>();
}
TYPED_TEST_P(MapValuesSuite, MapOfPairsToStructs) {
  map_model_test<TypeParam, map<NameAndNumber, Person, 4>>();
}
TYPED_TEST_P(MapValuesSuite, MapOfPathsToFixedStructs) {
  map_model_test<TypeParam, map<Path, Fixed, 5>>();
}
TYPED_TEST_P(MapValuesSuite, RbTreeOfRankedToVariants) {
  map_model_test<TypeParam, rb_tree<Ranked, Either>>();
}

REGISTER_TYPED_TEST_SUITE_P(MapValuesSuite, HashMapOfStructs, HashMapOfPairsToWords,
                            MapOfPairsToStructs, MapOfPathsToFixedStructs,
                            RbTreeOfRankedToVariants);

// The suite whose helpers this suite uses has a source of its own.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MapSuite);

}  // namespace perdure::test
