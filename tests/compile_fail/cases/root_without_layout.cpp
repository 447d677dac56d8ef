// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: perdure: the layout of this type can.t be seen.*layout_id
//
// A root type whose layout can not be told: neither an aggregate nor one that states a layout_id.
#include "../common.hpp"

#include <string_view>

class Hidden {
 public:
#ifdef PERDURE_CONTROL
  static constexpr std::string_view layout_id = "hidden/1";
#endif
  Hidden() : count_(0) {}
  template <class Tx>
  std::uint64_t count(Tx& tx) const {
    return tx(count_);
  }

 private:
  perdure::p<std::uint64_t> count_;
};

int main() {
  auto pool = perdure::Pool<Hidden>::open("never-run.perdure");
  return static_cast<int>(pool.view([](auto& tx, const Hidden& root) { return root.count(tx); }));
}
