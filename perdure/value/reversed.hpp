// SPDX-License-Identifier: BSD-3-Clause
//
// reversed<T>: a part of a key that is ordered the other way round: the largest first. Its image is
// that of T.
//
// Thread safety: compile time only.
#pragma once

namespace perdure::value {

template <class T>
struct reversed {
  T value;
};

}  // namespace perdure::value
