// SPDX-License-Identifier: BSD-3-Clause
//
// The sequences' suite on plain structs and other composed elements.
//
// Thread safety: one thread.
#pragma once

#include "tests/container/values.hpp"

// Its functions are found only if they are declared before the suite.
#include "tests/container/sequence_suite.hpp"

namespace perdure::test {

template <class Policy>
class SequenceValuesSuite : public ::testing::Test {};
TYPED_TEST_SUITE_P(SequenceValuesSuite);

TYPED_TEST_P(SequenceValuesSuite, VectorOfStructs) { vector_model_test<TypeParam, Person>(); }
TYPED_TEST_P(SequenceValuesSuite, VectorOfVariants) { vector_model_test<TypeParam, Either>(); }
TYPED_TEST_P(SequenceValuesSuite, ListOfWords) { list_model_test<TypeParam, Words>(); }
TYPED_TEST_P(SequenceValuesSuite, QueueOfRanked) { queue_model_test<TypeParam, Ranked>(); }

REGISTER_TYPED_TEST_SUITE_P(SequenceValuesSuite, VectorOfStructs, VectorOfVariants, ListOfWords,
                            QueueOfRanked);

// The suite whose helpers this suite uses has a source of its own.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SequenceSuite);

}  // namespace perdure::test
