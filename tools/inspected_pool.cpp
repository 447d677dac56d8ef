// SPDX-License-Identifier: BSD-3-Clause
#include "tools/inspected_pool.hpp"

#include "perdure/api/checked.hpp"
#include "perdure/api/erased.hpp"
#include "perdure/api/snapshot.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/open_pool.hpp"
#include "perdure/value/access.hpp"
#include "tools/command.hpp"
#include "tools/progress.hpp"
#include "tools/unmapped_pool.hpp"

namespace perdure::tool {
namespace {

std::unique_ptr<ErasedPool> open(const PoolArguments& arguments) {
  Options options;
  options.create = false;
  options.read_only = true;
  options.medium = arguments.medium;
  options.medium_options.direct = !arguments.no_direct;
  options.recovery.progress = show_recovery(arguments.path);
  const ErasedPool::Root any{.layout = {}, .bytes = 0, .any_layout = true};
  auto pool = ErasedPool::open(arguments.path, options, any);
  if (pool.code() == Code::read_only) {
    try {  // its log has to be applied
      (void)put_in_order(*open_unmapped(arguments, false), arguments);
    } catch (const error& e) {
      if (e.code() != Code::read_only) throw;
      throw error(
          failure(Code::read_only, arguments.path,
                  "a pool that was not closed in order, and no permission to write it",
                  "a cleanly closed pool, or one that may be written: its log has to be applied",
                  "run `perdure recover` on it as a user that may write it, then read it"));
    }
    // For reading only, also where a change of the program's version is not finished.
    pool = ErasedPool::open(arguments.path, options, any);
  }
  return std::move(pool).value();
}

using View = std::function<void(inspect::Walker&, const inspect::Source&)>;

void walk(ErasedTx& tx, ErasedPool& pool, const View& f) {
  pool::OpenPool& file = pool.file();
  detail::CheckedTransaction<ErasedTx> transaction(tx, file.view(), file.data_bytes());
  ReadTx<decltype(transaction)> checked(transaction);
  value::ReaderOver<decltype(checked)> reader(checked);
  inspect::Walker walker(reader, reinterpret_cast<inspect::Address>(file.view()),
                         file.data_bytes());
  const pool::CatalogContents catalog =
      pool::read_catalog(
          file.path(), file.header(), file.view(),
          [&](void* to, const std::byte* from, std::size_t n) { checked.read_bytes(to, from, n); })
          .value();
  const inspect::Source source = inspect::read_source(walker, file.header(), catalog);
  walker.use_records_of(source.tree);
  walker.use_copies(catalog.copied);
  f(walker, source);
}

struct Call {
  ErasedPool& pool;
  const View& f;
};
void body(ErasedTx& tx, void* arg) {
  const auto& call = *static_cast<Call*>(arg);
  walk(tx, call.pool, call.f);
}

}  // namespace

InspectedPool::InspectedPool(const PoolArguments& arguments) : pool_(open(arguments)) {
  if (pool_->file().following()) state_ = pool_->snapshot(Durability::async).value();
}
InspectedPool::~InspectedPool() {
  state_ = nullptr;
  // A pool that was recovered is in order now. Its next opening reports errors.
  (void)pool_->close();
}

void InspectedPool::view(const std::function<void(inspect::Walker&, const inspect::Source&)>& f) {
  if (state_ != nullptr) {
    const detail::SnapshotReader inside(*state_);
    ErasedTx tx(*state_);
    walk(tx, *pool_, f);
    state_->must_be_sound();
    return;
  }
  Call call{*pool_, f};
  pool_->view(Durability::async, body, &call);
}

}  // namespace perdure::tool
