// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/shapes.hpp"

#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "perdure/base/at_fork.hpp"
#include "perdure/value/parse.hpp"

namespace perdure::value::shapes {
namespace {

struct Book {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, ParsedType> types;
  std::map<std::pair<const Type*, const Type*>, Comparison> comparisons;
};

/// Never destroyed: a pool with static storage duration may be closed after other static objects
/// have been destroyed.
Book& book() {
  static Book& all = *new Book;
  return all;
}

/// The thread's last look-up, since rows of one old version often follow each other. Types and
/// comparisons are never removed, so the cached result stays right.
struct Last {
  std::uint64_t shape = 0;
  const Type* type = nullptr;
  const Type* before = nullptr;
  const Type* now = nullptr;
  const Comparison* comparison = nullptr;
};
constinit thread_local Last last;

// fork() takes the table's lock, so that the table is whole in the child, which may read records of
// earlier versions, too.
const int held = base::hold_over_fork<book>();

}  // namespace

Status add(std::string_view text) {
  Result<ParsedType> parsed = parse(text);
  if (!parsed) return parsed.status();
  const Type& type = parsed->type();
  if (type.kind != Kind::structure || text_of(type) != text) {
    return Status(Code::corrupt, "perdure: found '" + std::string(text.substr(0, 60)) +
                                     "' as the layout of records, expected a struct: the pool's "
                                     "data is damaged");
  }
  const std::uint64_t shape = type.shape;
  Book& all = book();
  const std::lock_guard lock(all.mutex);
  const auto [at, is_new] = all.types.try_emplace(shape, std::move(*parsed));
  if (!is_new && text_of(at->second.type()) != text) {
    return Status(Code::incompatible, "perdure: found two layouts of records with one hash: '" +
                                          text_of(at->second.type()) + "' and '" +
                                          std::string(text) + "'; rename a field of one of them");
  }
  return {};
}

const Type* find(std::uint64_t shape) {
  if (last.type != nullptr && last.shape == shape) return last.type;
  Book& all = book();
  const std::lock_guard lock(all.mutex);
  const auto at = all.types.find(shape);
  if (at == all.types.end()) return nullptr;
  last.shape = shape;
  last.type = &at->second.type();
  return last.type;
}

const Comparison& between(const Type& before, const Type& now) {
  if (last.before == &before && last.now == &now) return *last.comparison;
  Book& all = book();
  const std::lock_guard lock(all.mutex);
  auto at = all.comparisons.find({&before, &now});
  if (at == all.comparisons.end())
    at = all.comparisons.emplace(std::pair(&before, &now), compare(before, now)).first;
  last.before = &before;
  last.now = &now;
  last.comparison = &at->second;
  return at->second;
}

}  // namespace perdure::value::shapes
