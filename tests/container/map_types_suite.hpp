// SPDX-License-Identifier: BSD-3-Clause
//
// The maps' suite on many more types and node sizes: the part that need not run on every engine.
//
// Thread safety: one thread.
#pragma once

#include "tests/container/map_suite.hpp"

namespace perdure::test {

template <class Policy>
class MapTypesSuite : public ::testing::Test {};
TYPED_TEST_SUITE_P(MapTypesSuite);

TYPED_TEST_P(MapTypesSuite, HashMapOfSmallSegments) {
  map_model_test<TypeParam, hash_map<std::uint32_t, Record, 4>>();
}
TYPED_TEST_P(MapTypesSuite, HashMapOfSingleBuckets) {
  map_model_test<TypeParam, hash_map<std::uint64_t, std::uint8_t, 1>>();
}
TYPED_TEST_P(MapTypesSuite, HashMapOfClashes) {
  map_model_test<TypeParam, hash_map<Clash, std::int64_t, 16>>();
}
TYPED_TEST_P(MapTypesSuite, HashMapOfTextToWords) {
  map_model_test<TypeParam, hash_map<std::string, std::int64_t>>();
}
TYPED_TEST_P(MapTypesSuite, MapOfSmallNodes) {
  map_model_test<TypeParam, map<std::int64_t, std::uint16_t, 4>>();
}
TYPED_TEST_P(MapTypesSuite, MapOfFives) {
  map_model_test<TypeParam, map<std::uint16_t, Record, 5>>();
}
TYPED_TEST_P(MapTypesSuite, MapOfSixteens) { map_model_test<TypeParam, map<double, float, 16>>(); }
TYPED_TEST_P(MapTypesSuite, MapOfTextInSmallNodes) {
  map_model_test<TypeParam, map<std::string, std::uint32_t, 4>>();
}
TYPED_TEST_P(MapTypesSuite, MapOfStructs) {
  map_model_test<TypeParam, map<Clash, std::string, 7>>();
}
TYPED_TEST_P(MapTypesSuite, RbTreeOfText) {
  map_model_test<TypeParam, rb_tree<std::string, std::string>>();
}
TYPED_TEST_P(MapTypesSuite, RbTreeOfBytes) {
  map_model_test<TypeParam, rb_tree<std::int16_t, std::uint8_t>>();
}

REGISTER_TYPED_TEST_SUITE_P(MapTypesSuite, HashMapOfSmallSegments, HashMapOfSingleBuckets,
                            HashMapOfClashes, HashMapOfTextToWords, MapOfSmallNodes, MapOfFives,
                            MapOfSixteens, MapOfTextInSmallNodes, MapOfStructs, RbTreeOfText,
                            RbTreeOfBytes);

// The suite whose helpers this suite uses has a source of its own.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MapSuite);

}  // namespace perdure::test
