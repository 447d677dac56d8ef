// SPDX-License-Identifier: BSD-3-Clause
//
// EngineOptions: options that belong to one engine. Each engine with options of its own declares a
// struct for them. A pool is opened with such a struct in Options::engine_options, and the engine
// asks for its own struct and gets the defaults where none was given. Structs for several engines
// can be given at once, for any_engine: each engine takes its own.
//
//   struct MyOptions {
//     std::uint32_t depth = 4;
//     // ok, or what was found, what was expected, what to do
//     Status check(const std::string& path) const;
//     // optional: the same, once it is known which engine runs the pool
//     Status fits(const std::string& path, const engine::EngineInfo& chosen) const;
//   };
//
// Thread safety: that of a plain value.
#pragma once

#include <memory>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include "perdure/base/status.hpp"

namespace perdure {

namespace engine {
struct EngineInfo;
}

/// Options that belong to one engine, of a pool that is opened. Each engine that has some declares
/// a struct of its own; an engine that is given none takes its defaults. Thread safety: a value.
class EngineOptions {
 public:
  /// Every engine's defaults.
  EngineOptions() = default;
  /// One engine's struct: `options.engine_options = papers::RewindOptions{.log_group = 16}`. Throws
  /// std::bad_alloc.
  template <class T>
    requires requires(const T& t, const std::string& path) { t.check(path); }
  EngineOptions(T options) {  // NOLINT: implicit, so that a struct may be assigned
    set(std::move(options));
  }

  /// Adds an engine's struct, or replaces the one of its type. Throws std::bad_alloc.
  template <class T>
  EngineOptions& set(T options) {
    Held held{
        std::type_index(typeid(T)), std::make_shared<const T>(std::move(options)),
        [](const void* o, const std::string& path) {
          return static_cast<const T*>(o)->check(path);
        },
        [](const void* o, const std::string& path, const engine::EngineInfo& chosen) -> Status {
          if constexpr (requires(const T& t) { t.fits(path, chosen); })
            return static_cast<const T*>(o)->fits(path, chosen);
          return {};
        }};
    for (Held& h : held_)
      if (h.type == held.type) return h = std::move(held), *this;
    held_.push_back(std::move(held));
    return *this;
  }
  /// Returns the struct of a type: the one that was given, or one of defaults. It is valid while
  /// this object is not changed.
  template <class T>
  [[nodiscard]] const T& get() const noexcept {
    for (const Held& h : held_)
      if (h.type == std::type_index(typeid(T))) return *static_cast<const T*>(h.options.get());
    static const T defaults{};
    return defaults;
  }

  /// Returns the first failure of the structs' check(), or ok.
  [[nodiscard]] Status check(const std::string& path) const {
    for (const Held& h : held_)
      if (Status s = h.check(h.options.get(), path); !s.ok()) return s;
    return {};
  }
  /// Returns the first failure of the structs' fits(), or ok.
  [[nodiscard]] Status fits(const std::string& path, const engine::EngineInfo& chosen) const {
    for (const Held& h : held_)
      if (Status s = h.fits(h.options.get(), path, chosen); !s.ok()) return s;
    return {};
  }

 private:
  struct Held {
    std::type_index type;
    std::shared_ptr<const void> options;
    Status (*check)(const void*, const std::string&);
    Status (*fits)(const void*, const std::string&, const engine::EngineInfo&);
  };
  std::vector<Held> held_;
};

}  // namespace perdure
