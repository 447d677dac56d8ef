// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/resolve.hpp"

#include <algorithm>
#include <unordered_map>

#include "perdure/value/parse.hpp"

namespace perdure::value {
namespace {

std::uint64_t up_to(std::uint64_t at, std::uint64_t align) {
  return (at + align - 1) / align * align;
}

class Resolver {
 public:
  explicit Resolver(std::deque<Type>& types) {
    for (Type& type : types) states_.emplace(&type, State{&type, Progress::none});
  }

  /// REQUIRES: the structures around the type were visited, or are being visited.
  void visit(const Type& which) {
    State& state = states_.at(&which);
    if (state.progress == Progress::done || !wrong_.empty()) return;
    if (state.progress == Progress::begun) {
      wrong_ = "a struct that contains itself without a vector";
      return;
    }
    state.progress = Progress::begun;
    Type& type = *state.type;
    // A sequence's element may be a structure around the sequence, which is visited on its own.
    if (type.kind != Kind::sequence) {
      for (const Part& part : type.parts) visit(*part.type);
    }
    if (wrong_.empty()) place(type);
    state.progress = Progress::done;
  }
  [[nodiscard]] std::string wrong() const { return wrong_; }

 private:
  enum class Progress : std::uint8_t { none, begun, done };
  struct State {
    Type* type;
    Progress progress;
  };

  void place(Type& type) {
    std::uint64_t size = type.size, align = type.align;
    switch (type.kind) {
      case Kind::scalar: break;
      case Kind::text:
      case Kind::sequence:
        size = align = 8;
        type.owns = true;
        break;
      case Kind::array: {
        const Type& one = type.element();
        align = one.align;
        // No overflow: both are at most largest_image.
        size = type.count * one.size;
        break;
      }
      case Kind::optional:
      case Kind::variant: {
        size = 0;
        for (const Part& part : type.parts) {
          size = std::max<std::uint64_t>(size, part.type->size);
          align = std::max<std::uint64_t>(align, part.type->align);
        }
        for (Part& part : type.parts) part.at = static_cast<std::uint32_t>(align);
        size = align + up_to(size, align);
        break;
      }
      case Kind::structure: size = structure(type, align); break;
    }
    if (size > largest_image)
      wrong_ = "a value of more than " + std::to_string(largest_image) + " bytes";
    type.size = static_cast<std::uint32_t>(size);
    type.align = static_cast<std::uint32_t>(align);
    if (type.kind != Kind::sequence)
      for (const Part& part : type.parts) type.owns = type.owns || part.type->owns;
  }

  /// Returns the size, and raises `align`.
  std::uint64_t structure(const Type& type, std::uint64_t& align) {
    std::uint64_t end = 0;
    for (const Part& part : type.parts) {
      const std::uint64_t at = up_to(end, part.type->align);
      if (part.at != at) {
        wrong_ = "field '" + std::string(part.name) + "' at " + std::to_string(part.at) +
                 " instead of " + std::to_string(at);
      }
      end = at + part.type->size;
      align = std::max<std::uint64_t>(align, part.type->align);
    }
    end = up_to(end, align);
    if (type.size != end && wrong_.empty()) {
      wrong_ = "a struct of " + std::to_string(type.size) + " bytes whose fields take " +
               std::to_string(end);
    }
    return end;
  }

  std::unordered_map<const Type*, State> states_;
  std::string wrong_;
};

}  // namespace

std::string resolve(std::deque<Type>& types) {
  Resolver resolver(types);
  for (const Type& type : types) resolver.visit(type);
  return resolver.wrong();
}

}  // namespace perdure::value
