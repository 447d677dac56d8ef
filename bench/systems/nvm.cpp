// SPDX-License-Identifier: BSD-3-Clause
//
// nvm: the workloads over persistent memory without recovery, REWIND's baseline (papers: REWIND,
// VLDB '15, section 5.2): every store is the paper's synchronous non-temporal store, as in its log
// (papers/rewind/nvm.hpp): a store, the line's write-back, a fence. It runs on the emulated medium,
// whose delays charge each line; no log, no atomicity, no isolation. One thread.
//
// The root lies at the beginning of the data region, nodes after it. The places of free blocks are
// kept in DRAM alone, which costs this system less than a heap in persistent memory would. A new
// object is stored as a whole, with one fence. Thread safety: none.
#include <map>
#include <new>
#include <type_traits>
#include <vector>

#include "bench/systems/host.hpp"
#include "bench/systems/plain_model.hpp"
#include "bench/systems/systems.hpp"
#include "perdure/medium/medium.hpp"

namespace bench {
namespace {

/// The bytes of the data region: stores, and blocks.
class NvmMemory {
 public:
  NvmMemory(const Setting& setting, std::uint64_t root_bytes) : end_(lines(root_bytes)) {
    perdure::medium::OpenMedium how;
    how.path = setting.directory + "/nvm";
    how.kind = "emulated";
    how.create = true;
    how.log_bytes = perdure::medium::region_align;
    how.data_bytes = std::uint64_t{256} << 20;
    how.delays = perdure::medium::Delays::named(setting.delays).value();
    medium_ = perdure::medium::open_medium(how).value();
  }

  void store(const void* to, const void* from, std::size_t n) {
    const std::uint64_t at =
        medium_->log_bytes() +
        static_cast<std::uint64_t>(static_cast<const std::byte*>(to) - medium_->data());
    medium_->store(at, from, n);
    medium_->flush(at, n);
    medium_->fence().or_throw();
  }
  /// Allocates whole lines, 64-byte aligned.
  std::byte* take(std::size_t n) {
    n = lines(n);
    auto& free = free_[n];
    if (!free.empty()) {
      std::byte* const block = free.back();
      free.pop_back();
      return block;
    }
    if (n > medium_->data_bytes() - end_) throw std::bad_alloc();
    end_ += n;
    return data() + (end_ - n);
  }
  void give(void* block, std::size_t n) {
    free_[lines(n)].push_back(static_cast<std::byte*>(block));
  }
  /// For reading.
  [[nodiscard]] std::byte* data() const { return const_cast<std::byte*>(medium_->data()); }
  [[nodiscard]] perdure::medium::Medium& medium() const { return *medium_; }

 private:
  static std::uint64_t lines(std::uint64_t n) {
    return (n + perdure::medium::line_bytes - 1) / perdure::medium::line_bytes *
           perdure::medium::line_bytes;
  }
  std::unique_ptr<perdure::medium::Medium> medium_;
  std::uint64_t end_;
  std::map<std::size_t, std::vector<std::byte*>> free_;
};

struct NvmTx : PlainLoads {
  NvmMemory& memory;
  explicit NvmTx(NvmMemory& m) : memory(m) {}

  template <class T>
  void set(Field<T>& field, std::type_identity_t<T> value) const {
    memory.store(&field.value, &value, sizeof value);
  }
  template <class T>
  void set(Link<T>& link, std::type_identity_t<T>* target) const {
    memory.store(&link.target, &target, sizeof target);
  }
  template <class T, class... Args>
  T* make(Args... args) const {
    const T made(args...);
    auto* t = reinterpret_cast<T*>(memory.take(sizeof(T)));
    memory.store(t, &made, sizeof(T));
    return t;
  }
  template <class T>
  void destroy(T* t) const {
    memory.give(t, sizeof(T));
  }
  template <class T>
  T* allocate(std::size_t n) const {
    return reinterpret_cast<T*>(memory.take(n * sizeof(T)));
  }
};

template <class Root>
class NvmHost : public HostDefaults {
 public:
  explicit NvmHost(const Setting& setting) : memory_(setting, sizeof(Root)) {
    const Root empty{};
    memory_.store(memory_.data(), &empty, sizeof empty);
  }
  template <class F>
  auto update(F&& f) {
    NvmTx tx(memory_);
    return f(tx, *reinterpret_cast<Root*>(memory_.data()));
  }
  template <class F>
  auto view(F&& f) {
    NvmTx tx(memory_);
    return f(tx, *reinterpret_cast<const Root*>(memory_.data()));
  }
  [[nodiscard]] std::map<std::string, double> counters() const {
    const auto c = memory_.medium().counters();
    return {{"fences", static_cast<double>(c.fences)},
            {"flushed_lines", static_cast<double>(c.flushed_lines)}};
  }
  [[nodiscard]] std::string describe() const {
    return memory_.medium().describe() + "; no recovery";
  }

 private:
  NvmMemory memory_;
};

using NvmWorkloads =
    JoinedLists<SwapList<PlainModel>, HashList<PlainModel>, RbList<PlainModel>, BtList<PlainModel>>;

}  // namespace

void add_nvm(Systems& systems) {
  systems.push_back({"nvm",
                     "the same structure in persistent memory, stores synchronous, no recovery",
                     NvmWorkloads::names(), 1,
                     [](const Setting& s) { return open_listed<NvmHost>(NvmWorkloads{}, s); }});
}

}  // namespace bench
