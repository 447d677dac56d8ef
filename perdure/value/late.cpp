// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/late.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace perdure::value::late {
namespace {

struct Book {
  std::mutex mutex;
  std::map<const Type*, std::shared_ptr<const Make>> all;
};

/// Never destroyed: a pool with static storage duration may be read after other such objects are
/// gone.
Book& book() {
  static Book& all = *new Book;
  return all;
}

}  // namespace

void set(const Type& type, Make make) {
  auto made = std::make_shared<const Make>(std::move(make));
  Book& all = book();
  const std::lock_guard lock(all.mutex);
  all.all[&type].swap(made);
}

std::shared_ptr<const Make> find(const Type& type) {
  Book& all = book();
  const std::lock_guard lock(all.mutex);
  const auto found = all.all.find(&type);
  return found == all.all.end() ? nullptr : found->second;
}

}  // namespace perdure::value::late
