// SPDX-License-Identifier: BSD-3-Clause
//
// Checks a kept pool with this build: the pool is opened, recovered, checked, compared in full with
// the acknowledged transactions, rewritten, closed, reopened, killed during a rewrite, and
// recovered again. Or it is refused with the words that were recorded.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "perdure/engine/stat_page.hpp"
#include "perdure/pool/header.hpp"
#include "tests/compat/spec.hpp"

namespace perdure::compat {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool sanitizes_threads = true;
#else
constexpr bool sanitizes_threads = false;
#endif

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Checked {
 public:
  Checked(const Known& known, const std::string& path) : known_(known), path_(path) {}

  std::string run() {
    original_ = read_all(path_);
    std::string why = header_is_as_known();
    if (!why.empty()) return why;
    // The address of a plain build: a build with ThreadSanitizer expects "an address within ...,
    // all that ThreadSanitizer leaves".
    const std::string refused = sanitizes_threads && base_ < kept_address
                                    ? "all that ThreadSanitizer leaves"
                                    : known_.refused;
    why = refused.empty() ? opens() : is_refused(refused);
    ::shm_unlink(engine::stat_page_name(uuid_).c_str());
    return why;
  }

 private:
  std::string is_refused(const std::string& words) {
    for (const bool read_only : {true, false}) {
      Options o = options();
      o.read_only = read_only;
      const auto pool = TestPool::try_open(path_, o);
      if (pool.ok()) return "it opens, expected a refusal with the words: " + words;
      if (pool.status().message().find(words) == std::string::npos)
        return "it is refused with: " + pool.status().message() + "; expected the words: " + words;
      if (read_all(path_) != original_) return "the refusal changed the file";
    }
    return {};
  }

  std::string opens() {
    std::string why = read_only();
    if (why.empty()) why = recovered_and_rewritten();
    if (why.empty()) why = reopened(rewritten_, "after a close");
    if (why.empty()) why = killed_and_recovered();
    if (why.empty()) why = later_version();
    return why;
  }

  std::string header_is_as_known() {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    const auto chosen = pool::read_header(path_, fd);
    ::close(fd);
    if (!chosen.ok()) return chosen.status().message();
    const pool::Header& h = chosen->header;
    std::copy(std::begin(h.uuid), std::end(h.uuid), std::begin(uuid_));
    base_ = h.base;
    if (h.version != known_.version)
      return "format version " + std::to_string(h.version) + ", expected " +
             std::to_string(known_.version);
    if (order_name(h.order) != known_.order)
      return std::string("order ") + order_name(h.order) + ", expected " + known_.order;
    if ((h.clean != 0) != known_.clean) return "clean is " + std::to_string(h.clean);
    return {};
  }

  // A pool that was closed in order, or whose engine serves reader processes, shows its contents
  // without a write; any other pool is refused, because recovery writes.
  std::string read_only() {
    Options o = options();
    o.read_only = true;
    const bool opens = known_.clean || engine::find_instance(known_.engine)->serves_readers;
    {
      auto pool = TestPool::try_open(path_, o);
      if (opens) {
        if (!pool.ok()) return "opened for reading only: " + pool.status().message();
        if (std::string why = compared(*pool, known_.transactions); !why.empty())
          return "opened for reading only: " + why;
      } else if (pool.ok()) {
        return "a pool that was not closed in order opens for reading only";
      } else if (pool.code() != Code::read_only ||
                 pool.status().message().find("not closed in order") == std::string::npos) {
        return "opened for reading only it is refused with: " + pool.status().message();
      }
    }
    return read_all(path_) == original_ ? std::string()
                                        : "opening for reading only changed the file";
  }

  std::string recovered_and_rewritten() {
    auto pool = TestPool::try_open(path_, options());
    if (!pool.ok()) return "opened: " + pool.status().message();
    if (pool->stats().recovery.was_clean != known_.clean)
      return known_.clean ? "it had to be recovered" : "nothing was recovered";
    if (std::string why = sound(*pool, known_.transactions); !why.empty()) return "opened: " + why;
    update(*pool, known_.transactions + 1, known_.transactions + 30);
    pool->checkpoint();
    update(*pool, known_.transactions + 31, rewritten_);
    if (std::string why = sound(*pool, rewritten_); !why.empty()) return "rewritten: " + why;
    pool->close();
    return {};
  }

  std::string reopened(std::uint64_t n, const std::string& when) {
    auto pool = TestPool::try_open(path_, options());
    if (!pool.ok()) return "reopened " + when + ": " + pool.status().message();
    std::string why = sound(*pool, known_.survives ? n : 0);
    pool->close();
    return why.empty() ? why : "reopened " + when + ": " + why;
  }

  std::string killed_and_recovered() {
    const std::uint64_t from = known_.survives ? rewritten_ : 0, last = from + 20;
    const int status = in_child([&] {
      TestPool pool = TestPool::open(path_, options());
      update(pool, from + 1, last);
      pool.update([&](auto& tx, Root& root) {
        step(tx, root, last + 1, known_.large);
        (void)::kill(::getpid(), SIGKILL);
      });
    });
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
      return "the process that rewrites it ended with " + std::to_string(status);
    return reopened(last, "after a kill");
  }

  // A later version of the program, with another field, opens the pool, which first gets a catalog.
  std::string later_version() {
    const std::uint64_t n = known_.survives ? rewritten_ + 20 : 0;
    Options o = options();
    o.migrate.add_catalog = true;
    {
      TestPool pool = TestPool::open(path_, o);
      if (std::string why = sound(pool, n); !why.empty()) return "with a catalog: " + why;
    }
    if (!known_.survives) return {};  // the root object of such a pool is made at each opening
    auto pool = Pool<LaterRoot, engines<any_engine>>::open(path_, options());
    if (const CheckReport report = pool.check(); !report.ok())
      return "as version 2: " + report.problems.front();
    const std::string why =
        difference(pool.view([](auto& tx, const LaterRoot& root) { return contents(tx, root); }),
                   model_after(n, known_.large));
    return why.empty() ? why : "as version 2: " + why;
  }

  [[nodiscard]] Options options() const {
    Options o;
    o.engine = known_.engine;
    o.isolation = engine::find_instance(known_.engine)->isolation;
    o.create = false;
    o.medium = medium_of(known_.unit);
    return o;
  }

  void update(TestPool& pool, std::uint64_t first, std::uint64_t last) const {
    for (std::uint64_t n = first; n <= last; ++n)
      pool.update([&](auto& tx, Root& root) { step(tx, root, n, known_.large); }).wait();
  }

  std::string sound(TestPool& pool, std::uint64_t n) const {
    const CheckReport report = pool.check();
    if (!report.ok()) return "check(): " + report.problems.front();
    return compared(pool, n);
  }

  [[nodiscard]] std::string compared(TestPool& pool, std::uint64_t n) const {
    const Model found = pool.view([](auto& tx, const Root& root) { return contents(tx, root); });
    std::string why = difference(found, model_after(n, known_.large));
    if (why.empty() && n == known_.transactions && digest(found) != known_.digest)
      why = "the contents have digest " + std::to_string(digest(found)) + ", the manifest has " +
            std::to_string(known_.digest);
    return why;
  }

  const Known& known_;
  const std::string& path_;
  std::string original_;
  std::uint8_t uuid_[16] = {};
  std::uint64_t base_ = 0;
  const std::uint64_t rewritten_ = known_.transactions + 60;
};

}  // namespace

std::string check(const Known& known, const std::string& path) {
  if (engine::find_instance(known.engine) == nullptr && known.refused.empty())
    return "this build has no engine '" + known.engine +
           "', and the manifest does not say that the pool is refused";
  try {
    return Checked(known, path).run();
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace perdure::compat
