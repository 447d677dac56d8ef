// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/inspect/load_pool.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "perdure/api/checked.hpp"
#include "perdure/api/erased.hpp"
#include "perdure/api/open.hpp"
#include "perdure/inspect/blocks.hpp"
#include "perdure/inspect/load.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/create.hpp"
#include "perdure/pool/lock.hpp"

namespace perdure::inspect {
namespace {

constexpr std::uint64_t piece = std::uint64_t{1} << 16;  ///< what one transaction writes at most
constexpr std::uint64_t largest_root = std::uint64_t{1} << 30;

/// The blocks of an open pool. A transaction may run its function twice, so each function sets its
/// result anew.
class PoolStore final : public LoadStore {
 public:
  explicit PoolStore(ErasedPool& pool) : pool_(pool) {}

  Address alloc(std::uint64_t bytes) override {
    Address at = 0;
    update([&](ErasedTx& tx) { at = reinterpret_cast<Address>(tx.alloc(bytes)); });
    return at;
  }
  void write(Address to, const void* from, std::uint64_t n) override {
    const auto* const bytes = static_cast<const std::byte*>(from);
    for (std::uint64_t done = 0; done < n; done += piece)
      update([&](ErasedTx& tx) {
        tx.write_bytes(reinterpret_cast<void*>(to + done), bytes + done, std::min(piece, n - done));
      });
  }
  Address add(const void* bytes, std::uint64_t n) override {
    Address at = 0;
    update([&](ErasedTx& tx) {
      std::byte* const block = tx.alloc(n);
      tx.write_bytes(block, bytes, std::min(piece, n));
      at = reinterpret_cast<Address>(block);
    });
    if (n > piece) write(at + piece, static_cast<const std::byte*>(bytes) + piece, n - piece);
    return at;
  }
  void read(void* to, Address from, std::uint64_t n) override {
    view_with([&](ErasedTx& tx) { tx.read_bytes(to, reinterpret_cast<const void*>(from), n); });
  }
  void view(const std::function<void(value::Reader&)>& f) override {
    view_with([&](ErasedTx& tx) {
      value::ReaderOver<ErasedTx> reader(tx);
      f(reader);
    });
  }
  template <class F>
  void view_with(F&& f) {
    pool_.view(Durability::async, call<F>, &f);
  }

 private:
  template <class F>
  void update(F&& f) {
    (void)pool_.update(Durability::async, call<F>, &f);
  }
  template <class F>
  static void call(ErasedTx& tx, void* f) {
    (*static_cast<std::remove_reference_t<F>*>(f))(tx);
  }
  ErasedPool& pool_;
};

/// Removes the file that a killed load has left.
void remove_unfinished(const std::string& path, const std::string& shown) {
  struct stat there = {};
  if (::lstat(path.c_str(), &there) != 0) return;
  auto lock = pool::FileLock::acquire(path, pool::FileLock::Mode::write, path);
  if (!lock.ok())
    throw error(failure(lock.status().code(), shown, "'" + path + "': " + lock.status().message(),
                        "no load of this pool that is going on", "wait for its end"));
  if (::unlink(path.c_str()) != 0) throw error(system_failure(path, "unlink", errno));
}

/// Throws error(invalid) if the dump has something that no sound pool has, such as keys out of
/// order.
std::uint64_t check(PoolStore& store, ErasedPool& pool, const Tree& tree, Address root,
                    const std::string& path) {
  pool::OpenPool& file = pool.file();
  Blocks blocks;
  store.view_with([&](ErasedTx& tx) {
    detail::CheckedTransaction<ErasedTx> transaction(tx, file.view(), file.data_bytes());
    ReadTx<decltype(transaction)> checked(transaction);
    value::ReaderOver<decltype(checked)> reader(checked);
    Walker walker(reader, reinterpret_cast<Address>(file.view()), file.data_bytes());
    walker.use_records_of(tree);
    blocks = find_blocks(walker, tree.root(), root);
  });
  const std::uint64_t found = blocks.offsets.size();
  std::vector<std::string> problems = std::move(blocks.problems);
  if (problems.empty() && blocks.unknown.empty()) {
    const CheckReport heap =
        detail::compare_heap(file, file.view(), std::move(blocks.offsets), true);
    problems = heap.problems;
  }
  if (!problems.empty())
    throw error(failure(Code::invalid, path,
                        "a dump that describes no sound pool: " + problems.front(),
                        "what `perdure dump` writes of a sound pool", "nothing was loaded"));
  return found;
}

}  // namespace

Tree read_schema(std::string_view text, const std::string& name) {
  const auto refuse = [&](Code code, const std::string& found, const std::string& expected) {
    throw error(failure(code, name, found, expected,
                        "`perdure schema --text POOL` writes one; nothing was loaded"));
  };
  Tree tree;
  try {
    tree = read_layout(text, "");
  } catch (const error& e) {
    if (e.code() != Code::corrupt) throw;
    refuse(Code::invalid, std::string("no layout text: ") + e.what(), "one line for each field");
  }
  const std::vector<Member>& fields = tree.root().parts;
  if (fields.empty()) refuse(Code::invalid, "a layout text without fields", "a root object's");
  if (tree.root().size > largest_root)
    refuse(Code::invalid, "a root object of " + std::to_string(tree.root().size) + " bytes",
           "one of up to 1 GiB");
  if (fields.front().name.empty())
    refuse(Code::unsupported,
           "a layout text without the names of fields, of a pool without a "
           "catalog",
           "one with names: open the pool by its program and copy it into a new one first");
  std::string all;
  const std::vector<std::string> refusals = refusals_of(tree);
  for (std::size_t i = 0; i < refusals.size(); ++i)
    all += (i == 0 ? "[" : "; [") + std::to_string(i + 1) + "] " + refusals[i];
  if (!refusals.empty())
    refuse(Code::unsupported, "fields of which a dump does not say enough: " + all,
           "none of these");
  return tree;
}

LoadedPool load_pool(const std::string& path, const LoadOptions& options, JsonReader& in) {
  const Tree tree = read_schema(options.schema, options.schema_name);
  struct stat there = {};
  if (::lstat(path.c_str(), &there) == 0)
    throw error(failure(Code::exists, path, "a file of this name", "none",
                        "name another, or remove that one first"));
  const std::string unfinished = path + ".loading";
  remove_unfinished(unfinished, path);

  Options how = options.pool;
  how.create = how.must_create = true;
  how.read_only = false;
  // No transaction has to be durable before the pool is closed.
  how.durability = Durability::async;
  const ErasedPool::Root root{
      .layout = options.schema, .bytes = root_bytes(tree), .named_layout = options.schema};
  LoadedPool result;
  std::unique_ptr<ErasedPool> pool = ErasedPool::open(unfinished, how, root).value();
  try {
    PoolStore store(*pool);
    pool::OpenPool& file = pool->file();
    const pool::CatalogContents catalog =
        pool::read_catalog(unfinished, file.header(), file.view()).value();
    const Address at = reinterpret_cast<Address>(file.view()) + catalog.root_offset;
    Loader loader(store, tree, in, options.progress);
    if (options.lines)
      loader.lines(at);
    else
      loader.document(at);
    result.entries = loader.entries();
    result.blocks = check(store, *pool, tree, at, path);
    result.stats = pool->stats();
    pool->close().or_throw();
    pool.reset();
    // LOADED-1: close() has made the bytes durable. The link fails if a file has the name by now.
    if (::link(unfinished.c_str(), path.c_str()) != 0)
      throw error(errno == EEXIST ? failure(Code::exists, path, "a file of this name", "none",
                                            "name another, or remove that one first")
                                  : system_failure(path, "link", errno));
  } catch (...) {
    if (pool != nullptr) (void)pool->close();
    pool.reset();
    (void)::unlink(unfinished.c_str());
    throw;
  }
  (void)::unlink(unfinished.c_str());
  pool::sync_folder(path).or_throw();
  return result;
}

}  // namespace perdure::inspect
