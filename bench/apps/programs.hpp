// SPDX-License-Identifier: BSD-3-Clause
//
// The three example programs as structures of a benchmark's system: one workload each
// (sessions_work.hpp, jobs_work.hpp, book_work.hpp), on a host that has the program's store. A
// store has the calls of the classes in examples/: sessions::Store, jobs::Queue, book::Book.
// Thread safety: as StructureSession's.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "bench/apps/book_work.hpp"
#include "bench/apps/jobs_work.hpp"
#include "bench/apps/sessions_work.hpp"
#include "bench/apps/stores.hpp"
#include "bench/systems/host.hpp"

namespace bench::apps {

/// A store that is filled without waiting, and opened anew before it is measured. `Way` says how:
///   template <class Store> std::unique_ptr<Store> open(const std::string& directory, bool filled)
///   std::string describe()
template <class Store, class Way>
class StoreHost : public HostDefaults {
 public:
  StoreHost(const Setting& setting, const Way& way)
      : directory_(setting.directory),
        way_(way),
        store_(way_.template open<Store>(directory_, false)) {}

  [[nodiscard]] Store& store() { return *store_; }
  /// Calls f, which fills the store.
  template <class F>
  void batch(F f) {
    f();
  }
  void filled() { reopen(); }
  bool reopen() {
    store_.reset();
    store_ = way_.template open<Store>(directory_, true);
    return true;
  }
  [[nodiscard]] std::string describe() { return way_.describe(); }

 private:
  std::string directory_;
  Way way_;
  std::unique_ptr<Store> store_;
};

/// The three programs on these stores. `HostOf<Store>` is constructed from a setting and `way`.
template <template <class> class HostOf, class Sessions, class Jobs, class Book, class Way>
Programs programs(const Way& way) {
  const auto program = [&]<class Store, class Work>(std::type_identity<Store>,
                                                    std::type_identity<Work>) {
    return Program{Work::structure, [way](const Setting& setting) -> std::unique_ptr<Session> {
                     return std::make_unique<StructureSession<HostOf<Store>, Work>>(setting, way);
                   }};
  };
  return {program(std::type_identity<Sessions>{}, std::type_identity<SessionsWork>{}),
          program(std::type_identity<Jobs>{}, std::type_identity<JobsWork>{}),
          program(std::type_identity<Book>{}, std::type_identity<BookWork>{})};
}

}  // namespace bench::apps
