// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the conformance workloads: a step is one transaction that changes pool and model alike,
// with a checkpoint before it or an exception at its end in some steps; after it the pool is
// compared with the model in full.
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perdure/perdure.hpp"
#include "testing/crashtest.hpp"

namespace perdure::conformance {

using crash::Random;
using crashtest::Step;

/// Combines values into a digest, in order.
class Digest {
 public:
  Digest& add(std::uint64_t v) noexcept {
    h_ = base::mix(h_ ^ base::mix(v + 0x9e3779b97f4a7c15ULL)) + 1;
    return *this;
  }
  Digest& add(std::string_view s) noexcept { return add(base::hash_bytes(s.data(), s.size(), 0)); }
  [[nodiscard]] std::uint64_t value() const noexcept { return h_; }

 private:
  std::uint64_t h_ = 1;
};

struct Oops {};

inline std::string some_text(Random& r) {
  const std::uint64_t n = r() % 20 == 0 ? r() % 900 : r() % 40;
  return std::string(n, static_cast<char>('a' + r() % 26)) + std::to_string(r() % 1000);
}

/// W has Root, Model, change(tx, root, model, random), and digest(tx, root) and
/// model_digest(model), which are equal.
template <class W, class RootType, class ModelType>
struct Workload {
  using Root = RootType;
  using Model = ModelType;
  Model model{};

  template <class Pool>
  void step(Pool& pool, Step& s) {
    if (s.random() % 12 == 0) pool.checkpoint();
    const std::uint64_t seed = s.random(), kind = s.random();
    Model next;
    try {
      const auto receipt = pool.update([&](auto& tx, Root& root) {
        next = model;  // the lambda may run again
        Random random(seed);
        static_cast<W*>(this)->change(tx, root, next, random);
        if (kind % 8 == 0) throw Oops();
      });
      model = next;
      s.acknowledged = s.waits || (kind % 5 == 0 ? (receipt.wait(), true) : receipt.durable());
    } catch (const error& e) {
      // LAW-7: the transaction was rolled back.
      if (e.code() != Code::too_big && e.code() != Code::full) throw;
      s.acknowledged = false;
    } catch (const Oops&) {
      s.acknowledged = false;  // it changed nothing, and does not cover earlier transactions
    }
    const std::uint64_t found = pool.view(
        [&](auto& tx, const Root& root) { return static_cast<W*>(this)->digest(tx, root); });
    if (found != W::model_digest(model))
      throw error(failure(Code::corrupt, "",
                          std::string(W::name) + " has other contents than its model after step " +
                              std::to_string(s.number),
                          "the same contents"));
  }
};

}  // namespace perdure::conformance
