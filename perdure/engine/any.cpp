// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/any.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "perdure/engine/registry.hpp"
#include "perdure/engine/workload_recorder.hpp"

namespace perdure::engine {
namespace {

template <class E>
class ContextOver final : public Any::Context {
  using Inner = typename E::Context;

 public:
  explicit ContextOver(Inner& inner) noexcept : inner_(inner) {}
  [[nodiscard]] Inner& inner() noexcept { return inner_; }

  void begin(bool update) override { inner_.begin(update); }
  bool inside() const noexcept override { return inner_.inside(); }
  bool in_view() const noexcept override { return inner_.in_view(); }
  bool direct() const noexcept override { return inner_.direct(); }
  std::uint64_t read(const std::uint64_t* a) override { return inner_.read(a); }
  void write(std::uint64_t* a, std::uint64_t v) override { inner_.write(a, v); }
  void read_words(std::uint64_t* to, const std::uint64_t* a, std::uint64_t n) override {
    if constexpr (requires { inner_.read_words(to, a, n); })
      inner_.read_words(to, a, n);
    else
      for (std::uint64_t i = 0; i < n; ++i) to[i] = inner_.read(a + i);
  }
  void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) override {
    inner_.write_words(a, src, n);
  }
  std::byte* alloc(std::uint64_t bytes) override { return inner_.alloc(bytes); }
  void free(void* p) override { inner_.free(p); }
  std::uint64_t commit(Durability durability) override { return inner_.commit(durability); }
  void rollback() noexcept override { inner_.rollback(); }
  void backoff() noexcept override { inner_.backoff(); }
  std::uint64_t unseen_retries() const noexcept override { return inner_.unseen_retries(); }
  bool mine(const tm::Conflict& c) const noexcept override { return inner_.mine(c); }
  bool mine(const NeedRoom& n) const noexcept override { return inner_.mine(n); }
  bool try_direct_view() noexcept override { return inner_.try_direct_view(); }
  void leave_direct_view() noexcept override { inner_.leave_direct_view(); }
  std::uint64_t end_direct_view(bool bound) override { return inner_.end_direct_view(bound); }

 private:
  Inner& inner_;
};

template <class E>
class Over final : public Any::Behind {
 public:
  Over(pool::PoolFile& file, const Config& config, const Recovery& recovery)
      : engine_(file, config, recovery) {}

  Any::Context& context() override {
    // of the same thread slot
    return contexts_.get(
        [this](int) { return std::make_unique<ContextOver<E>>(engine_.context()); });
  }
  void make_room(Any::Context& context, std::uint64_t bytes) override {
    engine_.make_room(static_cast<ContextOver<E>&>(context).inner(), bytes);
  }
  Status wait(std::uint64_t id) override { return engine_.wait(id); }
  std::uint64_t durable_id() const noexcept override { return engine_.durable_id(); }
  bool held() const noexcept override { return engine_.held(); }
  Status checkpoint() override { return engine_.checkpoint(); }
  Status close() override { return engine_.close(); }
  Stats stats() override { return engine_.stats(); }
  Core& core() noexcept override { return engine_.core(); }

 private:
  E engine_;
  Contexts<ContextOver<E>> contexts_;
};

using Make = std::unique_ptr<Any::Behind> (*)(pool::PoolFile&, const Config&, const Recovery&);

template <class E>
std::unique_ptr<Any::Behind> make(pool::PoolFile& file, const Config& config,
                                  const Recovery& recovery) {
  return std::make_unique<Over<E>>(file, config, recovery);
}

struct Registered {
  std::vector<Entry> entries;
  std::vector<Make> makers;  // of each entry
};

template <class... Instances>
Registered list(engines<Instances...>) {
  Registered all;
  ((add_entries<Instances>(all.entries),
    all.makers.resize(all.entries.size(), &make<typename Instances::type>)),
   ...);
  return all;
}

const Registered& all() {
  static const Registered instances = list(all_engines());
  return instances;
}
// a forked child would wait for ever for another thread that was making it
[[maybe_unused]] const Registered& at_load = all();

template <class Is>
const Entry* first(Is&& is) {
  const auto entries = registered();
  const auto found = std::find_if(entries.begin(), entries.end(), is);
  return found == entries.end() ? nullptr : &*found;
}

std::unique_ptr<Any::Behind> make_named(pool::PoolFile& file, const Config& config,
                                        const Recovery& recovery) {
  const Entry* const entry = find_instance(config.instance);
  if (entry == nullptr)
    throw error(failure(Code::invalid, "", "engine '" + std::string(config.instance) + "'",
                        "the name of a registered instance"));
  return all().makers[static_cast<std::size_t>(entry - all().entries.data())](file, config,
                                                                              recovery);
}

}  // namespace

Any::Any(pool::PoolFile& file, const Config& config, const Recovery& recovery) {
  auto trace = TraceWriter::for_pool(file, config);  // first: it may fail
  behind_ = make_named(file, config, recovery);
  if (trace != nullptr) behind_ = record_workload(std::move(behind_), std::move(trace));
}

std::span<const Entry> registered() { return all().entries; }

const Entry* find_instance(std::string_view name) {
  return first([name](const Entry& e) { return e.name == name; });
}

const Entry* find_family(std::string_view family) {
  return first([family](const Entry& e) { return e.family == family; });
}

}  // namespace perdure::engine
