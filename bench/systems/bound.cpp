// SPDX-License-Identifier: BSD-3-Clause
//
// bound: the least that a durable transaction on a copy in DRAM can cost. Each thread has a
// structure of its own, and pays for
//   - the plain loads and stores of the workload, in memory and with blocks of Perdure's heap;
//   - gathering what it stored into a record of as many lines as Perdure's, and its checksum;
//   - streaming the record into a ring on tmpfs by non-temporal stores, and one sfence;
//   - for each 3/4 of a ring, streaming every line that changed meanwhile to a data region on
//     tmpfs.
// Nothing is isolated, rolled back, numbered, reserved or marked. Which lines a checkpoint writes
// is learned in the first 3/4 ring of each cell: the later ones write the same.
// A cell without updates is the bound of look-ups: raw loads in the same memory.
// Thread safety: a thread works on its own structure; the heap is shared.
#include <atomic>
#include <bit>
#include <memory>
#include <optional>
#include <vector>

#include "bench/systems/bound_lane.hpp"
#include "bench/systems/host.hpp"
#include "bench/systems/plain_model.hpp"
#include "bench/systems/systems.hpp"

namespace bench {
namespace {

/// As PlainTx, with the lane.
struct BoundTx : PlainLoads {
  Lane& lane;
  explicit BoundTx(Lane& l) : lane(l) {}

  template <class T>
  void set(PlainModel::Field<T>& field, std::type_identity_t<T> value) const {
    static_assert(sizeof(T) == 8);
    field.value = value;
    lane.stored(&field, std::bit_cast<std::uint64_t>(value));
  }
  template <class T>
  void set(PlainModel::Link<T>& link, std::type_identity_t<T>* target) const {
    link.target = target;
    lane.stored(&link, std::bit_cast<std::uint64_t>(target));
  }
  template <class T, class... Args>
  T* make(Args... args) const {
    T* const made = new (lane.allocate(sizeof(T))) T(args...);
    lane.stored_words(reinterpret_cast<const std::byte*>(made), sizeof(T) / 8);
    return made;
  }
  template <class T>
  void destroy(T* t) const {
    lane.free(t);
  }
  template <class T>
  T* allocate(std::size_t n) const {
    return reinterpret_cast<T*>(lane.allocate(n * sizeof(T)));
  }
};

template <class Root>
class BoundHost : public HostDefaults {
 public:
  explicit BoundHost(const Setting& setting)
      : memory_(setting),
        ring_bytes_(setting.log_size != 0 ? setting.log_size & ~std::uint64_t{63}
                                          : std::uint64_t{16} << 20),
        rings_(setting.directory + "/rings", ring_bytes_ * setting.max_threads),
        data_path_(setting.directory + "/data") {
    for (unsigned t = 0; t < setting.max_threads; ++t) {
      lanes_.push_back(std::make_unique<Lane>(memory_, rings_.at(t * ring_bytes_), ring_bytes_));
      lanes_.back()->begin_cell(true, nullptr, 0);
      roots_.push_back(new (lanes_.back()->allocate(sizeof(Root))) Root{});
    }
  }
  /// Calls f() for each structure: a call works on it.
  template <class F>
  void each_structure(F&& f) {
    for (own_ = 0; static_cast<std::size_t>(own_) < lanes_.size(); ++own_) f();
    own_ = none;
  }
  /// The elements that the structure has gained since it was filled.
  [[nodiscard]] std::int64_t grown() { return lanes_[static_cast<std::size_t>(lane())]->grown(); }
  void filled() {
    // The structures grow by a few blocks at most: half are inserts, half removes.
    data_.emplace(data_path_, memory_.data_bytes() + (std::uint64_t{64} << 20));
  }
  void prepare(unsigned threads) {
    next_ = 0;
    for (unsigned t = 0; t < threads; ++t)
      lanes_[t]->begin_cell(threads == 1, data_->at(0), data_->bytes());
  }
  template <class F>
  auto update(F&& f) {
    const auto own = static_cast<std::size_t>(lane());
    Lane& lane = *lanes_[own];
    BoundTx tx(lane);
    auto result = f(tx, *roots_[own]);
    if constexpr (std::is_same_v<decltype(result), int>) lane.grew(result);
    lane.commit();
    return result;
  }
  template <class F>
  auto view(F&& f) {
    const auto own = static_cast<std::size_t>(lane());
    BoundTx tx(*lanes_[own]);
    return f(tx, static_cast<const Root&>(*roots_[own]));
  }
  [[nodiscard]] std::map<std::string, double> counters() const {
    double transactions = 0, bytes = 0, lines = 0;
    for (const auto& lane : lanes_) {
      transactions += static_cast<double>(lane->transactions());
      bytes += static_cast<double>(lane->log_bytes());
      lines += static_cast<double>(lane->checkpoint_lines());
    }
    return {{"commits", transactions},
            {"fences", transactions},
            {"log_bytes", bytes},
            {"checkpoint_lines", lines}};
  }
  [[nodiscard]] std::string describe() const {
    return std::string(
               "a structure of its own for each thread; records and checkpoints streamed (") +
           (streams_lines() ? "avx512f" : "sse2") + "); rings of " +
           std::to_string(ring_bytes_ >> 20) + " MiB";
  }

 private:
  static constexpr int none = -1;
  // The threads of a cell are new: each takes a structure at its first call.
  int lane() {
    if (__builtin_expect(own_ == none, 0)) own_ = next_.fetch_add(1);
    return own_;
  }
  static inline thread_local constinit int own_ = none;

  BoundMemory memory_;
  std::uint64_t ring_bytes_;
  Mapped rings_;
  std::string data_path_;
  std::optional<Mapped> data_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Root*> roots_;
  std::atomic<int> next_{0};
};

using BoundWorkloads = JoinedLists<SwapList<PlainModel>, HashList<PlainModel>, RbList<PlainModel>>;

}  // namespace

void add_bound(Systems& systems) {
  systems.push_back({"bound",
                     "the least that a durable transaction costs: loads and stores, one record, "
                     "one fence, checkpoints; each thread on a structure of its own",
                     BoundWorkloads::names(), 64,
                     [](const Setting& s) { return open_listed<BoundHost>(BoundWorkloads{}, s); }});
}

}  // namespace bench
