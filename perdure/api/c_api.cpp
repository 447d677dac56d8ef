// SPDX-License-Identifier: BSD-3-Clause
//
// perdure.h over ErasedPool. No exception leaves: a body's transaction keeps the first failure (a
// conflict too) as an exception_ptr until the body has returned through its C frames. It is thrown
// then, inside the engine's loop, which rolls back and may run the body again.
// Thread safety: as perdure.h says. A thread's open transactions form a chain, through which nested
// calls join.
#include "perdure/api/c_api.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/engine/engine_base.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/tm/tm.hpp"

using namespace perdure;
using namespace perdure::c;

static_assert(PERDURE_NO_ID == engine::joined);
static_assert(PERDURE_IO == static_cast<int>(Code::io) &&
              PERDURE_CORRUPT == static_cast<int>(Code::corrupt) &&
              PERDURE_FULL == static_cast<int>(Code::full) &&
              PERDURE_INVALID == static_cast<int>(Code::invalid) &&
              PERDURE_POISONED == static_cast<int>(Code::poisoned) &&
              PERDURE_OUT_OF_MEMORY == static_cast<int>(Code::out_of_memory) &&
              PERDURE_TOO_MANY_THREADS == static_cast<int>(Code::too_many_threads) &&
              PERDURE_EXPIRED == static_cast<int>(Code::expired));
static_assert(PERDURE_LOCAL == static_cast<int>(Ack::local) &&
              PERDURE_SHIPPED == static_cast<int>(Ack::shipped) &&
              PERDURE_QUORUM == static_cast<int>(Ack::quorum) &&
              PERDURE_STANDBY == static_cast<int>(standby(1)) &&
              PERDURE_STANDBY + 15 == static_cast<int>(standby(most_standbys)));

namespace {
constinit thread_local char last_message[1024] = "";
constinit thread_local perdure_tx* innermost = nullptr;
struct Stop {};  // a body returned a value other than 0
}  // namespace

namespace perdure::c {

int fail(int code, const char* text) noexcept {
  std::strncpy(last_message, text, sizeof last_message - 1);
  return code;
}
int fail(const Status& s) noexcept {
  return s.ok() ? PERDURE_OK : fail(static_cast<int>(s.code()), s.message().c_str());
}

bool inherited(const perdure_pool* pool) noexcept { return pool->owner.is_parent(); }
int refuse_inherited() noexcept {
  return fail(PERDURE_CLOSED,
              "this handle was carried through fork(): open the pool in this process, when the "
              "parent has closed it");
}

int caught() noexcept {
  try {
    throw;
  } catch (const Stop&) {
    return fail(PERDURE_ABORTED, "the transaction was rolled back: its body returned other than 0");
  } catch (const error& e) {
    return fail(e.status());
  } catch (const perdure::tm::Conflict&) {
    return PERDURE_AGAIN;
  } catch (const engine::LogFull&) {
    return PERDURE_AGAIN;
  } catch (const std::bad_alloc&) {
    return fail(PERDURE_OUT_OF_MEMORY, "not enough memory");
  } catch (const std::exception& e) {
    return fail(PERDURE_ABORTED, e.what());
  } catch (...) {
    return fail(PERDURE_ABORTED, "the transaction was rolled back: its body threw an exception");
  }
}

perdure_tx* open_on(const perdure_pool* pool, bool snapshots) noexcept {
  perdure_tx* tx = innermost;
  while (tx != nullptr && (&tx->pool != pool || (tx->of_snapshot && !snapshots))) tx = tx->outer;
  return tx;
}

void run_body(ErasedTx& erased, void* arg) {
  const Call& call = *static_cast<Call*>(arg);
  perdure_tx tx{erased, *call.pool, innermost, !erased.read_only(), call.of_snapshot};
  struct Scope {
    explicit Scope(perdure_tx* inner) noexcept { innermost = inner; }
    ~Scope() { innermost = innermost->outer; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  } scope(&tx);
  int result = 0;
  try {
    result = call.body(&tx, call.arg);
  } catch (...) {  // a body written in C++
    if (tx.failure == nullptr) throw;
  }
  if (tx.failure != nullptr) std::rethrow_exception(tx.failure);
  if (result != 0) throw Stop();
}

bool understood(perdure_durability when, Durability own, Durability& out) noexcept {
  switch (when) {
    case PERDURE_DEFAULT: out = own; return true;
    case PERDURE_DURABLE: out = Durability::durable; return true;
    case PERDURE_GROUP: out = Durability::group; return true;
    case PERDURE_ASYNC: out = Durability::async; return true;
  }
  fail(PERDURE_INVALID,
       "found a durability that is none, expected PERDURE_DEFAULT, _DURABLE, _GROUP or _ASYNC");
  return false;
}

}  // namespace perdure::c

namespace {

int stick(perdure_tx& tx) noexcept {
  tx.failure = std::current_exception();
  return tx.code = caught();
}

// Runs one call inside a body: it does nothing after a failure, and a failure sticks.
template <class F>
int step(perdure_tx* tx, F&& f) noexcept {
  if (__builtin_expect(tx->code != PERDURE_OK, 0)) return tx->code;
  try {
    f();
    return PERDURE_OK;
  } catch (...) {
    return stick(*tx);
  }
}

// Whether a range of data overlaps directory words, also in sections of a raised limit, or
// checksums.
bool meets_words(const perdure_pool& pool, std::uint64_t offset, std::uint64_t n) {
  bool meets = false;
  perdure::pool::Directory(pool.impl->file().header())
      .each_run_of_words(pool.impl->file().data_bytes(), [&](std::uint64_t from, std::uint64_t to) {
        meets = meets || (offset < to * perdure::pool::chunk_bytes &&
                          from * perdure::pool::chunk_bytes < offset + n);
      });
  return meets;
}

void check_range(const perdure_tx& tx, const void* at, std::size_t n) {
  // An address below the pool wraps to a huge offset.
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - tx.pool.view);
  const std::uint64_t end = tx.pool.impl->file().data_bytes();
  if (__builtin_expect(offset >= tx.pool.first_data && offset < end && n <= end - offset, 1))
    if (__builtin_expect(!tx.pool.raised, 1) || !meets_words(tx.pool, offset, n)) return;
  throw error(failure(Code::invalid, tx.pool.impl->file().path(),
                      std::to_string(n) + " bytes that lie outside the pool's data",
                      "an address in the pool"));
}
void check_word(const perdure_tx& tx, const void* at) {
  check_range(tx, at, 8);
  if (reinterpret_cast<std::uintptr_t>(at) % 8 != 0)
    throw error(failure(Code::invalid, tx.pool.impl->file().path(),
                        "a word at an address that is no multiple of 8",
                        "an aligned word, or perdure_read and perdure_write"));
}
void check_writable(const perdure_tx& tx) {
  if (!tx.writable)
    throw error(failure(Code::read_only, tx.pool.impl->file().path(), "a change inside a view",
                        "an update"));
}

// A call inside a body on the same pool joins its transaction.
int join(perdure_tx& tx, perdure_body* body, void* arg, bool update) noexcept {
  if (tx.code != PERDURE_OK) return tx.code;
  if (update && !tx.writable)
    return fail(PERDURE_INVALID, "perdure_update() inside a view: leave the view first");
  const bool writable = tx.writable;
  tx.writable = update;
  try {
    const int result = body(&tx, arg);
    tx.writable = writable;
    if (tx.code != PERDURE_OK || result == 0) return tx.code;
    if (!update) return fail(PERDURE_ABORTED, "the view's body returned other than 0");
    throw Stop();
  } catch (...) {
    tx.writable = writable;
    return tx.code != PERDURE_OK ? tx.code : stick(tx);
  }
}

void copy(const Stats& s, perdure_stats& out) noexcept {
  out = {s.commits,
         s.reads,
         s.aborts,
         s.last_id,
         s.durable_id,
         s.checkpoint_id,
         s.log_bytes,
         s.log_used,
         s.log_capacity,
         s.checkpoints,
         s.heap_used,
         s.data_bytes,
         s.medium.fences,
         s.medium.syncs,
         s.medium.written_bytes,
         s.recovery.transactions,
         s.recovery.rolled_back,
         s.recovery.was_clean};
}

int check_level(int level) {
  if (level >= PERDURE_LOCAL && level < PERDURE_STANDBY + static_cast<int>(most_standbys))
    return PERDURE_OK;
  return fail(failure(Code::invalid, "", "level " + std::to_string(level),
                      "PERDURE_LOCAL, _SHIPPED, _QUORUM, or PERDURE_STANDBY + n - 1 with n from 1 "
                      "to " +
                          std::to_string(most_standbys)));
}

// Checks whether this id may be waited for here.
int check_receipt(perdure_pool& pool, perdure_id id) {
  if (inherited(&pool)) return refuse_inherited();
  if (id == PERDURE_NO_ID)
    return fail(PERDURE_INVALID,
                "found no transaction's number: a nested update is covered by its outer one, a "
                "failed one by none");
  if (open_on(&pool) != nullptr)
    return fail(PERDURE_INVALID,
                "a wait for durability inside a transaction: it would wait for itself");
  if (pool.impl->durable_id() < id && pool.impl->stats().last_id < id)
    return fail(PERDURE_INVALID, "found a receipt that no transaction of this pool has");
  return PERDURE_OK;
}

}  // namespace

extern "C" {

const char* perdure_version(void) { return PERDURE_VERSION; }
const char* perdure_message(void) { return last_message; }
const char* perdure_code_name(int code) {
  if (code == PERDURE_ABORTED) return "aborted";
  if (code == PERDURE_AGAIN) return "again";
  // They are literals, so they are null-terminated.
  return code >= 0 && code <= PERDURE_DIVERGED ? name(static_cast<Code>(code)).data() : "unknown";
}
const char* perdure_engine_at(size_t n) {
  const auto all = perdure::engine::registered();
  return n < all.size() ? all[n].name.data() : nullptr;
}

int perdure_close(perdure_pool* pool, perdure_stats* last) {
  if (pool == nullptr) return PERDURE_OK;
  return guarded([&]() -> int {
    if (open_on(pool, true) != nullptr)
      return fail(PERDURE_INVALID, "perdure_close() inside a body on the pool");
    if (pool->of_standby)
      return fail(PERDURE_INVALID, "perdure_close() of a standby's pool: close the standby");
    const std::unique_ptr<perdure_pool> owned(pool);
    if (inherited(pool)) {
      (void)owned->impl.release();  // its threads are the parent's, so nothing ends here
      return fail(PERDURE_CLOSED,
                  "this handle was carried through fork(): the pool is the parent's to close");
    }
    if (last != nullptr) copy(pool->impl->stats(), *last);
    return fail(pool->impl->close());
  });
}

const char* perdure_engine(const perdure_pool* pool) { return pool->impl->engine_name().data(); }

int perdure_get_stats(perdure_pool* pool, perdure_stats* stats) {
  if (inherited(pool)) return refuse_inherited();
  return guarded([&] { return copy(pool->impl->stats(), *stats), PERDURE_OK; });
}

int perdure_checkpoint(perdure_pool* pool) {
  if (inherited(pool)) return refuse_inherited();
  return guarded([&] {
    if (open_on(pool) != nullptr)
      return fail(PERDURE_INVALID, "perdure_checkpoint() inside a transaction of the pool");
    return fail(pool->impl->checkpoint());
  });
}

int perdure_trim(perdure_pool* pool, uint64_t max_bytes, uint64_t* given_back, int* more) {
  constexpr std::uint64_t usual = std::uint64_t{64} << 20;
  if (given_back != nullptr) *given_back = 0;
  if (more != nullptr) *more = 0;
  if (inherited(pool)) return refuse_inherited();
  return guarded([&] {
    if (open_on(pool) != nullptr)
      return fail(PERDURE_INVALID, "perdure_trim() inside a transaction of the pool");
    const auto did = pool->impl->trim(max_bytes != 0 ? max_bytes : usual);
    if (!did.ok()) return fail(did.status());
    if (given_back != nullptr) *given_back = did->bytes;
    if (more != nullptr) *more = did->more ? 1 : 0;
    return static_cast<int>(PERDURE_OK);
  });
}

int perdure_scrub(perdure_pool* pool, uint64_t bytes_per_second, perdure_scrub_report* report) {
  if (report != nullptr) *report = {};
  if (inherited(pool)) return refuse_inherited();
  return guarded([&] {
    perdure::ScrubOptions options;
    options.bytes_per_second = bytes_per_second;
    const auto found = perdure::pool::scrub(pool->impl->file(), options);
    if (!found.ok()) return fail(found.status());
    if (report != nullptr) {
      report->has_checksums = found->has_checksums ? 1 : 0;
      report->from_disk = found->from_disk ? 1 : 0;
      report->pages = found->pages;
      report->without = found->without;
      report->undecided = found->undecided;
      report->damaged = found->damaged.size();
    }
    if (found->ok()) return static_cast<int>(PERDURE_OK);
    return fail(failure(Code::corrupt, pool->impl->file().path(),
                        perdure::pool::text_of(found->damaged.front()), {},
                        "see `perdure scrub`; restore the pool from a backup"));
  });
}

int perdure_update(perdure_pool* pool, perdure_durability when, perdure_body* body, void* arg,
                   perdure_id* id) {
  if (id != nullptr) *id = PERDURE_NO_ID;
  Durability durability;
  if (!understood(when, pool->durability, durability)) return PERDURE_INVALID;
  if (perdure_tx* outer = open_on(pool)) return join(*outer, body, arg, true);
  return guarded([&] {
    Call call{pool, body, arg};
    const std::uint64_t drawn = pool->impl->update(durability, run_body, &call);
    if (id != nullptr) *id = drawn;
    return PERDURE_OK;
  });
}

int perdure_view(perdure_pool* pool, perdure_durability when, perdure_body* body, void* arg) {
  Durability durability;
  if (!understood(when, Durability::async, durability)) return PERDURE_INVALID;
  if (perdure_tx* outer = open_on(pool)) return join(*outer, body, arg, false);
  return guarded([&] {
    Call call{pool, body, arg};
    pool->impl->view(durability, run_body, &call);
    return PERDURE_OK;
  });
}

void* perdure_root(perdure_tx* tx) { return tx->pool.root; }
perdure_pool* perdure_pool_of(perdure_tx* tx) { return &tx->pool; }
int perdure_status(const perdure_tx* tx) { return tx->code; }

int perdure_read(perdure_tx* tx, void* to, const void* from, size_t n) {
  const int code = step(tx, [&] {
    if (n == 0) return;
    check_range(*tx, from, n);
    tx->tx.read_bytes(to, from, n);
  });
  if (code != PERDURE_OK && n != 0) std::memset(to, 0, n);
  return code;
}

int perdure_write(perdure_tx* tx, void* to, const void* from, size_t n) {
  return step(tx, [&] {
    check_writable(*tx);
    if (n == 0) return;
    check_range(*tx, to, n);
    tx->tx.write_bytes(to, from, n);
  });
}

uint64_t perdure_read_word(perdure_tx* tx, const void* from) {
  std::uint64_t word = 0;
  step(tx, [&] {
    check_word(*tx, from);
    word = tx->tx.read_word(static_cast<const std::uint64_t*>(from));
  });
  return word;
}

int perdure_write_word(perdure_tx* tx, void* to, uint64_t value) {
  return step(tx, [&] {
    check_writable(*tx);
    check_word(*tx, to);
    tx->tx.write_word(static_cast<std::uint64_t*>(to), value);
  });
}

void* perdure_read_pointer(perdure_tx* tx, const void* from) {
  return reinterpret_cast<void*>(perdure_read_word(tx, from));
}
int perdure_write_pointer(perdure_tx* tx, void* to, const void* value) {
  return perdure_write_word(tx, to, reinterpret_cast<std::uintptr_t>(value));
}

void* perdure_alloc(perdure_tx* tx, size_t n) {
  std::byte* block = nullptr;
  step(tx, [&] {
    check_writable(*tx);
    block = tx->tx.alloc(n);
  });
  return block;
}

int perdure_free(perdure_tx* tx, void* block) {
  return step(tx, [&] {
    check_writable(*tx);
    if (block == nullptr) return;
    check_range(*tx, block, 1);
    tx->tx.free(block);
  });
}

int perdure_emit(perdure_tx* tx, const char* topic, const void* bytes, size_t n, uint16_t schema) {
  return step(tx, [&] {
    check_writable(*tx);
    if (bytes == nullptr && n != 0)
      throw error(failure(Code::invalid, "", "perdure_emit() of no bytes", "their address"));
    tx->tx.emit(topic != nullptr ? topic : "", {static_cast<const char*>(bytes), n}, schema);
  });
}

int perdure_wait(perdure_pool* pool, perdure_id id) {
  return guarded([&] {
    const int code = check_receipt(*pool, id);
    return code != PERDURE_OK ? code : fail(pool->impl->wait(id));
  });
}

int perdure_wait_level(perdure_pool* pool, perdure_id id, int level) {
  return guarded([&] {
    int code = check_receipt(*pool, id);
    if (code == PERDURE_OK) code = check_level(level);
    return code != PERDURE_OK ? code : fail(pool->impl->wait(id, static_cast<Ack>(level)));
  });
}

int perdure_when_level(perdure_pool* pool, perdure_id id, int level,
                       void (*done)(int code, void* arg), void* arg) {
  return guarded([&] {
    int code = check_receipt(*pool, id);
    if (code == PERDURE_OK) code = check_level(level);
    if (code != PERDURE_OK) return code;
    pool->impl->when(id, static_cast<Ack>(level),
                     [done, arg](const Status& s) { done(fail(s), arg); });
    return static_cast<int>(PERDURE_OK);
  });
}

int perdure_get_replication(perdure_pool* pool, perdure_replication* out) {
  if (inherited(pool)) return refuse_inherited();
  return guarded([&] {
    const ReplicationStats s = pool->impl->replication();
    *out = {};
    out->primary = s.primary ? 1 : 0;
    out->term = s.term;
    out->sequence = s.sequence;
    out->shipped_id = s.shipped_id;
    out->behind_ms = static_cast<std::uint64_t>(s.behind.count());
    out->behind_bytes = s.behind_bytes;
    out->waits = s.waits;
    out->unanswered = s.unanswered;
    std::copy_n(s.standby_ids.begin(), std::min(s.standby_ids.size(), std::size(out->standby_ids)),
                out->standby_ids);
    return fail(PERDURE_OK, s.problem.c_str());
  });
}

int perdure_is_durable(perdure_pool* pool, perdure_id id) {
  return id != PERDURE_NO_ID && pool->impl->is_durable(id) ? 1 : 0;
}
perdure_id perdure_durable_id(perdure_pool* pool) {
  return inherited(pool) ? 0 : pool->impl->durable_id();
}

int perdure_refresh(perdure_pool* pool, perdure_id* id) {
  if (id != nullptr) *id = PERDURE_NO_ID;
  if (inherited(pool)) return refuse_inherited();
  return guarded([&] {
    const std::uint64_t seen = pool->impl->refresh();
    if (id != nullptr) *id = seen;
    return PERDURE_OK;
  });
}

int perdure_wait_for_id(perdure_pool* pool, perdure_id id, uint64_t milliseconds) {
  if (inherited(pool)) return refuse_inherited();
  return guarded([&]() -> int {
    if (pool->impl->wait_for(id, milliseconds_of(milliseconds))) return PERDURE_OK;
    return fail(PERDURE_EXPIRED, "perdure_wait_for_id: the transaction was not seen in time");
  });
}

int perdure_when_durable(perdure_pool* pool, perdure_id id, void (*done)(int code, void* arg),
                         void* arg) {
  return guarded([&] {
    const int code = check_receipt(*pool, id);
    if (code != PERDURE_OK) return code;
    pool->impl->when_durable(id, [done, arg](const Status& s) { done(fail(s), arg); });
    return static_cast<int>(PERDURE_OK);
  });
}

uint64_t perdure_offset(perdure_pool* pool, const void* address) {
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - pool->view);
  return address != nullptr && !inherited(pool) && offset < pool->impl->file().data_bytes() ? offset
                                                                                            : 0;
}

void* perdure_address(perdure_pool* pool, uint64_t offset) {
  return offset != 0 && !inherited(pool) && offset < pool->impl->file().data_bytes()
             ? pool->view + offset
             : nullptr;
}

}  // extern "C"
