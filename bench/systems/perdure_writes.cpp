// SPDX-License-Identifier: BSD-3-Clause
//
// DudeTM's workloads with their writes counted (DudeTM, ASPLOS '17, table 1): the 8-byte words that
// a committed transaction stores through the TM, those of the rows that it makes included. What the
// allocator stores is not counted: the paper logs it apart (3.5). An executable's --count-writes
// opens these sessions; the count is the counter "writes".
// Thread safety: as PerdureHost. Each thread counts alone; settle() adds its count to the sum.
#include <atomic>
#include <map>
#include <utility>

#include "bench/systems/perdure.hpp"

namespace bench {
namespace {

template <class T>
constexpr std::uint64_t words_of = (sizeof(T) + 7) / 8;

/// A workload's transaction handle over another one: it adds the words that are stored to `words`.
template <class Inner>
struct CountingTx {
  Inner& inner;
  std::uint64_t& words;

  template <class Stored>
  auto get(const Stored& stored) const {
    return inner.get(stored);
  }
  template <class T>
  void set(perdure::p<T>& field, std::type_identity_t<T> value) const {
    words += words_of<T>;
    inner.set(field, value);
  }
  template <class T>
  void set(perdure::ptr<T>& link, std::type_identity_t<T>* target) const {
    ++words;
    inner.set(link, target);
  }
  template <class T, class... Args>
  T* make(Args... args) const {
    words += words_of<T>;
    return inner.template make<T>(args...);
  }
  template <class T>
  void destroy(T* t) const {
    inner.destroy(t);
  }
  template <class T>
  T* allocate(std::size_t n) const {
    return inner.template allocate<T>(n);
  }
};

template <class Root>
class CountingHost : public PerdureHost<Root, perdure::dudetm_stm> {
  using Base = PerdureHost<Root, perdure::dudetm_stm>;

 public:
  using Base::Base;

  template <class F>
  auto update(F&& f) {
    std::uint64_t words = 0;
    const auto result = Base::update([&f, &words](auto& tx, Root& root) {
      words = 0;  // an update may run again
      CountingTx<std::remove_reference_t<decltype(tx)>> handle{tx, words};
      return f(handle, root);
    });
    words_ += words;
    return result;
  }
  void settle() {
    Base::settle();
    sum_.fetch_add(std::exchange(words_, 0), std::memory_order_relaxed);  // a counter
  }
  [[nodiscard]] std::map<std::string, double> counters() {
    auto counters = Base::counters();
    counters["writes"] = static_cast<double>(sum_.load(std::memory_order_relaxed));
    return counters;
  }

 private:
  // What filled the structure stays in its own thread's count, because that does not settle.
  static inline thread_local constinit std::uint64_t words_ = 0;
  std::atomic<std::uint64_t> sum_{0};
};

using CountedWorkloads = JoinedLists<HashInsertList<PerdureModel>, TreeInsertList<PerdureModel>,
                                     NewOrderList<PerdureModel>, LocationList<PerdureModel>>;
using CountedEngines = perdure::engines<perdure::dudetm_stm>;

}  // namespace

PerdureStructures perdure_writes() {
  return {CountedWorkloads::names(),
          [](std::string_view engine) { return has_engine(CountedEngines{}, engine); },
          [](const Setting& setting, const PerdureChoice& choice) {
            return open_listed<CountingHost>(CountedWorkloads{}, setting, choice);
          },
          true};
}

}  // namespace bench
