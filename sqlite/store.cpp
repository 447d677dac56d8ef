// SPDX-License-Identifier: BSD-3-Clause
#include "sqlite/store.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <new>

#include "perdure/base/at_fork.hpp"
#include "sqlite/block_store.hpp"
#include "sqlite/database.hpp"

namespace perdure::sqlite {
namespace {

struct Open {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Store>> all;  // by path
};
Open& all_open() {
  static Open* const open = new Open;
  return *open;
}
// Only the parent uses the parent's stores. The mutex is not held over fork(), because opening a
// pool may take long.
const int anew = base::anew_in_child<all_open>();

std::shared_ptr<Store> make(const std::string& path, const Options& options,
                            std::optional<Design> design) {
  if (design == Design::a)
    return std::make_shared<BlockStore>(
        path, BlockPool::open(path, BlockStore::options_of(path, options)), options.read_only);
  auto b = DatabasePool::try_open(path, options);
  // The pool may be of the other design.
  if (b.code() == Code::incompatible && !design && options.engine.empty())
    if (auto a = BlockPool::try_open(path, BlockStore::options_of(path, options));
        a || a.code() != Code::incompatible)
      return std::make_shared<BlockStore>(path, std::move(a).value(), options.read_only);
  return std::make_shared<Database>(path, std::move(b).value(), options.read_only);
}

}  // namespace

std::shared_ptr<Store> Store::open(const std::string& name, const Options& options,
                                   std::optional<Design> design) {
  std::error_code failed;  // then the path stays as it is
  const auto whole = std::filesystem::weakly_canonical(name, failed);
  const std::string path = failed ? name : whole.string();
  Open& open = all_open();
  const std::lock_guard lock(open.mutex);
  if (auto there = open.all[path].lock(); there != nullptr && !there->locks().closed()) {
    if (!there->moved()) {
      if (!there->read_only() || options.read_only) return there;
      if (!there->locks().close())
        throw error(failure(Code::busy, path,
                            "a transaction of this process that has the pool open for reading only",
                            "none, to open it for writing", "end that transaction first"));
      there->let_go();
      auto written = make(path, options, design);
      open.all[path] = written;
      return written;
    }
    throw error(failure(Code::busy, path,
                        "another file than the one that this process has open under this name",
                        "the same", "close the connections to the old one first"));
  }
  auto made = make(path, options, design);
  open.all[path] = made;
  return made;
}

std::shared_ptr<Store> Store::find(const std::string& path) {
  Open& open = all_open();
  const std::lock_guard lock(open.mutex);
  const auto it = open.all.find(path);
  auto found = it == open.all.end() ? nullptr : it->second.lock();
  return found != nullptr && found->locks().closed() ? nullptr : found;
}

std::vector<std::string> Store::open_paths() {
  Open& open = all_open();
  const std::lock_guard lock(open.mutex);
  std::vector<std::string> found;
  for (const auto& [path, store] : open.all)
    if (!store.expired()) found.push_back(path);
  return found;
}

Store::Store(std::string path, bool read_only) : path_(std::move(path)), read_only_(read_only) {
  struct stat now = {};
  if (::stat(path_.c_str(), &now) == 0) device_ = now.st_dev, inode_ = now.st_ino;
}

bool Store::moved() const noexcept {
  struct stat now = {};
  return inode_ != 0 &&
         (::stat(path_.c_str(), &now) != 0 || now.st_dev != device_ || now.st_ino != inode_);
}

void Store::enlist(const std::string& path, const std::shared_ptr<Store>& store) {
  const std::lock_guard lock(all_open().mutex);
  all_open().all[path] = store;
}

void Store::abandon(std::shared_ptr<Store>& store) noexcept {
  if (store != nullptr) ::new (static_cast<void*>(&store)) std::shared_ptr<Store>();
}

void Store::release(std::shared_ptr<Store>& store) {
  const std::lock_guard lock(all_open().mutex);
  store.reset();
}

}  // namespace perdure::sqlite
