// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_blocks, and with Clang's pass perdure_bench_pass: the workloads' text over ordinary
// structs and pointers, with updates in blocks that the compiler makes transactions of
// (docs/plain.md); views are Pool's. Beside it the same engines behind Pool<Root>, which is what a
// block runs on: perdure_bench_engines has them compiled in.
// Thread safety: as Pool's.
#include "bench/systems/host.hpp"
#include "bench/systems/perdure.hpp"
#include "bench/systems/plain_model.hpp"
#include "plain/plain.hpp"

namespace bench {
namespace {

/// For views and check(): plain structs, read through a transaction.
template <class Tx>
struct PlainReads {
  Tx& tx;
  template <class T>
  T get(const PlainModel::Field<T>& field) {
    return read(field);
  }
  template <class T>
  T* get(const PlainModel::Link<T>& link) {
    return read(link);
  }
  template <class T>
  T read(const PlainModel::Field<T>& field) {
    PlainModel::Field<T> value;
    tx.read_bytes(&value, &field, sizeof value);
    return value.value;
  }
  template <class T>
  T* read(const PlainModel::Link<T>& link) {
    PlainModel::Link<T> value;
    tx.read_bytes(&value, &link, sizeof value);
    return value.target;
  }
};
/// A workload's root, as a pool's.
template <class Root>
struct BlockRoot : Root {
  static constexpr const char* layout_id = Root::layout_id;
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    PlainReads<Tx> reads{tx};
    Root::each_block(reads, f);
  }
};

/// A pool whose engine is chosen when it is opened. `Derived` has update() and view().
template <class Pool>
class ChosenHost : public HostDefaults {
 public:
  ChosenHost(const Setting& setting, const std::string& engine)
      : path_(setting.directory + "/pool.perdure"), options_(options_of(setting, engine)) {
    open();
  }
  [[nodiscard]] std::map<std::string, double> counters() { return counters_of(pool_->stats()); }
  std::vector<std::string> check() {
    std::vector<std::string> problems;
    for (const auto& problem : pool_->check().problems) problems.push_back("check: " + problem);
    return problems;
  }
  bool reopen() {
    pool_->close();
    pool_.reset();
    open();
    return true;
  }
  [[nodiscard]] std::string describe() const { return options_.medium + " medium, one ring"; }

 protected:
  std::optional<Pool> pool_;

 private:
  void open() { pool_.emplace(Pool::open(path_, options_)); }
  static perdure::Options options_of(const Setting& setting, const std::string& engine) {
    const perdure::engine::EngineInfo& info = *perdure::engine::find_instance(engine);
    return perdure_options(setting, {engine}, info.isolation, info.identity);
  }
  const std::string path_;
  const perdure::Options options_;
};

template <class Root>
class PoolHost : public ChosenHost<perdure::Pool<Root>> {
 public:
  using ChosenHost<perdure::Pool<Root>>::ChosenHost;
  template <class F>
  auto update(F&& f) {
    return this->pool_
        ->update([&f](auto& tx, Root& root) {
          PerdureTx<std::remove_reference_t<decltype(tx)>> handle{tx};
          return f(handle, root);
        })
        .value();
  }
  template <class F>
  auto view(F&& f) {
    return this->pool_->view([&f](auto& tx, const Root& root) {
      PerdureTx<std::remove_reference_t<decltype(tx)>> handle{tx};
      return f(handle, root);
    });
  }
};

template <class Root>
class BlocksHost : public ChosenHost<perdure::Pool<BlockRoot<Root>>> {
 public:
  using ChosenHost<perdure::Pool<BlockRoot<Root>>>::ChosenHost;
  template <class F>
  auto update(F&& f) {
    std::invoke_result_t<F&, const PlainTx&, Root&> value{};
    if (binding_ == nullptr) binding_ = perdure::plain::bind(*this->pool_, perdure::durable);
    const auto in_block = [&](Root& root) {
      const PlainTx tx;
      value = f(tx, root);
    };
    perdure::plain::run(binding_, perdure::durable, root(), in_block);
    return value;
  }
  template <class F>
  auto view(F&& f) {
    return this->pool_->view([&f](auto& tx, const Root& root) {
      PlainReads<std::remove_reference_t<decltype(tx)>> handle{tx};
      return f(handle, root);
    });
  }
  bool reopen() {
    perdure::plain::end(binding_);
    binding_ = nullptr;
    return ChosenHost<perdure::Pool<BlockRoot<Root>>>::reopen();
  }

 private:
  Root& root() { return perdure::plain::root_of(*this->pool_); }
  std::shared_ptr<perdure::plain::Binding> binding_;
};

// Modes: with the other compiler what is compared with is compiled by it, too.
#ifdef __clang__
constexpr const char *blocks = ":pass", *chosen = ":chosen-clang";
#else
constexpr const char *blocks = ":blocks", *chosen = ":chosen";
#endif

template <class Model>
using UpdateWorkloads = JoinedLists<SwapList<Model>, HashList<Model>, RbList<Model>>;

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;  // NOLINT(google-build-using-namespace)
  perdure::papers::register_engines();
  Systems systems;
  for (const char* const engine :
       {"shadow", "undo", "rewind-1l-nfp-batch", "bppm", "dudetm-sync", "softwrap"}) {
    const std::string name(engine);
    systems.push_back({name + blocks, "Perdure, " + name + ": plain statements in blocks",
                       UpdateWorkloads<PlainModel>::names(), 64, [name](const Setting& s) {
                         return open_listed<BlocksHost>(UpdateWorkloads<PlainModel>{}, s, name);
                       }});
    systems.push_back({name + chosen, "Perdure, " + name + ": chosen when a pool is opened",
                       UpdateWorkloads<PerdureModel>::names(), 64, [name](const Setting& s) {
                         return open_listed<PoolHost>(UpdateWorkloads<PerdureModel>{}, s, name);
                       }});
  }
  return serve(argc, argv, systems);
}
