// SPDX-License-Identifier: BSD-3-Clause
//
// The tree of bench/workloads/bplus_tree.hpp in a pool: REWIND in all its compositions, isolated by
// its caller (one thread, as in the paper), the pool's lock or transactional memory, and Perdure's
// default engine for comparison.
#include <chrono>
#include <stdexcept>

#include "bench/rewind/tree.hpp"
#include "bench/systems/perdure.hpp"
#include "papers/engines.hpp"
#include "perdure/api/compiled_pool.hpp"

namespace bench {
namespace {

using Table = BplusTree<PerdureModel>;
static_assert(Table::keys == Tree::keys);

struct RolledBack {};

template <class Instance>
class PerdureTree final : public Tree {
 public:
  explicit PerdureTree(const TreeSetting& setting)
      : host_(setting.store, PerdureChoice{setting.system, perdure::durable}) {}

  void transact(std::span<const TreeOp> ops) override {
    bool updates = false;
    for (const TreeOp& op : ops) updates = updates || op.update;
    if (updates)
      host_.update([ops](auto& tx, auto& root) { return play(tx, root, ops); });
    else
      host_.view([ops](auto& tx, const auto& root) {
        std::uint64_t found = 0;
        for (const TreeOp& op : ops) found += Table::contains(tx, root, op.key) ? 1U : 0U;
        return found;
      });
  }

  double roll_back(std::span<const TreeOp> ops) override {
    using Clock = std::chrono::steady_clock;
    Clock::time_point start;
    try {
      host_.update([&](auto& tx, auto& root) {
        play(tx, root, ops);
        start = Clock::now();
        throw RolledBack();
        return 0;
      });
    } catch (const RolledBack&) {}
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  void reopen() override { host_.reopen(); }
  std::uint64_t audit() override {
    std::vector<std::string> problems;
    const std::uint64_t found = Table::audit(host_, problems);
    for (auto& problem : host_.check()) problems.push_back(std::move(problem));
    if (!problems.empty()) throw std::runtime_error(problems.front());
    return found;
  }
  std::uint64_t recovered() override { return host_.recovered(); }
  std::string describe() override { return host_.describe(); }

 private:
  template <class Tx, class Root>
  static std::uint64_t play(Tx& tx, Root& root, std::span<const TreeOp> ops) {
    std::uint64_t found = 0;
    for (const TreeOp& op : ops) {
      if (op.update)
        Table::toggle(tx, root, op.key, op.key + 1);
      else
        found += Table::contains(tx, root, op.key) ? 1U : 0U;
    }
    return found;
  }
  PerdureHost<Table::Root, Instance> host_;
};

}  // namespace

std::unique_ptr<Tree> open_perdure_tree(const TreeSetting& setting) {
  std::unique_ptr<Tree> tree;
  for_each_instance(perdure::engines<perdure::rewind, perdure::rewind_stm, perdure::rewind_none,
                                     perdure::shadow>{},
                    [&]<class Instance>(std::type_identity<Instance>) {
                      for (const auto& n : Instance::names) {
                        if (n.name != setting.system) continue;
                        if (setting.threads > 1 && Instance::isolation != perdure::Isolation::full)
                          throw std::invalid_argument(
                              "found " + setting.system +
                              " with several threads, expected a system that isolates them");
                        tree = std::make_unique<PerdureTree<Instance>>(setting);
                      }
                    });
  if (!tree)
    throw std::invalid_argument(
        "found system '" + setting.system +
        "', expected berkeleydb, shadow, or one of REWIND's: rewind-1l-nfp-batch/none");
  return tree;
}

}  // namespace bench
