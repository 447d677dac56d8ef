// SPDX-License-Identifier: BSD-3-Clause
//
// The example programs (examples/) as they are, on every engine that isolates transactions and
// keeps them: a Pool<Root>, whose engine is chosen when it is opened.
#include "bench/apps/programs.hpp"
#include "bench/systems/perdure.hpp"

namespace bench {
namespace {

using perdure::engine::EngineInfo;

const EngineInfo* info_of(std::string_view engine) {
  for (const EngineInfo& info : perdure::engine::registered())
    if (info.name == engine) return &info;
  return nullptr;
}

struct PerdureWay {
  perdure::Options options;
  std::uint64_t rings;
  std::string about;

  PerdureWay(const Setting& setting, const PerdureChoice& choice, const EngineInfo& info)
      : options(perdure_options(setting, choice, info.isolation, info.identity)),
        rings(rings_of(options, info.identity)) {}
  template <class Store>
  std::unique_ptr<Store> open(const std::string& directory, bool) {
    auto store = apps::open_store<Store>(directory + "/pool.perdure", options);
    about = description_of(options, rings, store->pool().stats().log_capacity);
    return store;
  }
  [[nodiscard]] std::string describe() const { return about; }
};

template <class Store>
class PerdureStoreHost : public apps::StoreHost<Store, PerdureWay> {
 public:
  PerdureStoreHost(const Setting& setting, const PerdureWay& way)
      : apps::StoreHost<Store, PerdureWay>(setting, way),
        async_(way.options.durability == perdure::async) {}

  /// The updates of f join one transaction.
  template <class F>
  void batch(F f) {
    pool().update([&](auto&, auto&) { f(); });
  }
  /// A durable view covers everything that this thread committed before it.
  void settle() {
    if (async_) pool().view(perdure::durable, [](auto&, const auto&) { return 0; });
  }
  [[nodiscard]] std::map<std::string, double> counters() { return counters_of(pool().stats()); }
  std::vector<std::string> check() {
    std::vector<std::string> problems;
    for (const auto& problem : pool().check().problems) problems.push_back("check: " + problem);
    return problems;
  }

 private:
  auto& pool() { return this->store().pool(); }
  bool async_;
};

Programs programs(const PerdureWay& way) {
  return apps::programs<PerdureStoreHost, sessions::Store, jobs::Queue, book::Book>(way);
}

}  // namespace

PerdureStructures perdure_apps() {
  return {{apps::SessionsWork::structure, apps::JobsWork::structure, apps::BookWork::structure},
          [](std::string_view engine) {
            const EngineInfo* const info = info_of(engine);
            return info != nullptr && info->isolation == perdure::Isolation::full &&
                   info->family != "volatile";
          },
          [](const Setting& setting, const PerdureChoice& choice) {
            return open_program(programs({setting, choice, *info_of(choice.engine)}), setting);
          }};
}

}  // namespace bench
