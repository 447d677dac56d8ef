// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/api/erased.hpp"

#include <array>
#include <type_traits>
#include <utility>

#include "perdure/api/pool.hpp"

namespace perdure {
namespace {

template <class TxT>
class TxOver final : public ErasedTx {
 public:
  template <class Context>
  explicit TxOver(Context& context) noexcept : tx_(context) {}

  void read_bytes(void* to, const void* from, std::size_t n) override { tx_.read_bytes(to, from, n); }
  std::uint64_t read_word(const std::uint64_t* from) override { return tx_.read(*reinterpret_cast<const p<std::uint64_t>*>(from)); }
  void write_bytes([[maybe_unused]] void* to, [[maybe_unused]] const void* from, [[maybe_unused]] std::size_t n) override {
    if constexpr (TxT::read_only)
      refuse();
    else
      tx_.write_bytes(to, from, n);
  }
  void write_word([[maybe_unused]] std::uint64_t* to, [[maybe_unused]] std::uint64_t value) override {
    if constexpr (TxT::read_only)
      refuse();
    else
      tx_.write(*reinterpret_cast<p<std::uint64_t>*>(to), value);
  }
  std::byte* alloc([[maybe_unused]] std::size_t n) override {
    if constexpr (TxT::read_only)
      refuse();
    else
      return tx_.alloc(n);
  }
  void free([[maybe_unused]] void* block) override {
    if constexpr (TxT::read_only)
      refuse();
    else
      tx_.free(block);
  }
  bool read_only() const noexcept override { return TxT::read_only; }

 private:
  [[noreturn]] static void refuse() { throw error(failure(Code::read_only, "", "a change inside a view", "an update")); }
  TxT tx_;
};

template <class Instance>
class PoolOver final : public ErasedPool {
 public:
  explicit PoolOver(detail::Opened opened) : running_(std::move(opened)) {}

  std::uint64_t update(Durability durability, Body body, void* arg) override {
    return engine::run(*running_.engine, true, durability, [&](Context& context) {
      TxOver<Tx<Context>> tx(context);
      body(tx, arg);
    });
  }
  void view(Durability durability, Body body, void* arg) override {
    const std::uint64_t seen = engine::run(*running_.engine, false, durability, [&](Context& context) {
      TxOver<ReadTx<Context>> tx(context);
      body(tx, arg);
    });
    if (durability != Durability::async && seen != engine::joined) running_.wait_durable(seen).or_throw();
  }
  Status wait(std::uint64_t id) override { return running_.wait_durable(id); }
  std::uint64_t durable_id() const noexcept override { return running_.durable_now(); }
  bool is_durable(std::uint64_t id) const noexcept override { return running_.is_durable(id); }
  void when_durable(std::uint64_t id, std::function<void(Status)> f) override { running_.when_durable(id, std::move(f)); }
  Status checkpoint() override { return running_.engine->checkpoint(); }
  Status close() override { return running_.close(); }
  Stats stats() override { return running_.engine->stats(); }
  pool::PoolFile& file() noexcept override { return running_.file(); }
  std::string_view engine_name() const noexcept override { return Instance::name; }

 private:
  using Context = typename Instance::type::Context;
  detail::Running<Instance> running_;
};

template <class Engines>
struct Table;
template <class... Instances>
struct Table<engines<Instances...>> {
  using Make = std::unique_ptr<ErasedPool> (*)(detail::Opened);
  template <class Instance>
  static std::unique_ptr<ErasedPool> make(detail::Opened opened) {
    return std::make_unique<PoolOver<Instance>>(std::move(opened));
  }
  static constexpr std::array<Make, sizeof...(Instances)> makers = {&make<Instances>...};
  static constexpr std::array<detail::Candidate, sizeof...(Instances)> candidates = {
      detail::Candidate{Instances::name, Instances::type::name, Instances::isolation, Instances::type::view_policy,
                        &Instances::type::identity, &Instances::type::recover}...};
};
using All = Table<all_engines>;

}  // namespace

Result<std::unique_ptr<ErasedPool>> ErasedPool::open(const std::string& path, const Options& options, const Root& root) {
  auto opened = detail::open_pool(path, options, All::candidates, root.layout, root.bytes, nullptr, false, root.any_layout);
  if (!opened) return opened.status();
  try {
    const std::size_t index = opened->index;
    return All::makers[index](std::move(*opened));
  } catch (const error& e) {
    return e.status();
  } catch (const std::bad_alloc&) {
    return failure(Code::out_of_memory, path, "not enough memory to open the pool");
  }
}

std::string_view ErasedPool::instance(std::size_t n) noexcept {
  return n < All::candidates.size() ? All::candidates[n].name : std::string_view();
}

}  // namespace perdure
