// SPDX-License-Identifier: BSD-3-Clause
//
// plain: the workloads over ordinary memory, without the library, without a log and without
// isolation. One thread: a reference for every other system.
// Thread safety: none.
#include <cstdlib>

#include "bench/systems/host.hpp"
#include "bench/systems/plain_model.hpp"
#include "bench/systems/systems.hpp"

namespace bench {
namespace {

template <class Root>
class PlainHost : public HostDefaults {
 public:
  explicit PlainHost(const Setting&) {}
  template <class F>
  auto update(F&& f) {
    return f(tx_, root_);
  }
  template <class F>
  auto view(F&& f) {
    return f(tx_, static_cast<const Root&>(root_));
  }
  [[nodiscard]] std::string describe() const {
    const char* tunables = std::getenv("GLIBC_TUNABLES");
    return std::string("ordinary memory, malloc") +
           (tunables != nullptr ? std::string(", ") + tunables : "");
  }

 private:
  PlainTx tx_;
  Root root_{};
};

using PlainWorkloads =
    JoinedLists<SwapList<PlainModel>, HashList<PlainModel>, RbList<PlainModel>, BtList<PlainModel>,
                HashInsertList<PlainModel>, TreeInsertList<PlainModel>, NewOrderList<PlainModel>,
                LocationList<PlainModel>, StoreList<PlainModel>, YcsbList<PlainModel>,
                TcHashList<PlainModel>>;

}  // namespace

void add_plain(Systems& systems) {
  systems.push_back({"plain", "the same structure in ordinary memory, no library",
                     PlainWorkloads::names(), 1,
                     [](const Setting& s) { return open_listed<PlainHost>(PlainWorkloads{}, s); }});
}

}  // namespace bench
