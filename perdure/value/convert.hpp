// SPDX-License-Identifier: BSD-3-Clause
//
// compare(), convert(): what changed between the type of a value in a pool and the program's, and
// how the old image is read as the new type.
//
// Fields are found by name. A field that the pool does not have keeps the value that the struct's
// own initialiser gives it. Nothing is converted in the pool: an old image is read to an object,
// and what is written has the new type's layout.
// Thread safety: compare() is a pure function; a Comparison does not change after it was made;
// convert() has that of the transaction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "perdure/value/access.hpp"
#include "perdure/value/type.hpp"

namespace perdure::value {

/// What a change asks of the program.
enum class Need : std::uint8_t {
  nothing,  ///< values are read and rewritten by themselves
  step,     ///< a function of the program has to make the new value of the old one
  refusal,  ///< the program would lose what the pool has
};

/// One difference between two types.
struct Change {
  std::string path;  ///< of the field: "sessions.owner"; empty for the value itself
  Need need;
  std::string text;     ///< what changed, and what to do about it
  bool is_new = false;  ///< a field that the pool's value does not have
};

/// How a part is read.
struct Conversion {
  enum class How : std::uint8_t {
    same,           ///< both lie in the same way
    number,         ///< a number that becomes wider
    sequence,       ///< element by element
    optional,       ///< what is in it
    into_optional,  ///< a value becomes the value of an optional
    variant,        ///< the alternative that is in it
    array,          ///< element by element
    structure,      ///< field by field
    left_out,       ///< not read: the new value keeps its initialiser
  };
  /// A field, or the alternative of that number.
  struct Step {
    std::uint32_t from_at, to_at;  ///< in the old image, in the new object
    const Conversion* by;
  };
  const Type* from;
  const Type* to;
  How how = How::left_out;
  std::vector<Step> parts = {};
};

/// The result of compare().
class Comparison {
 public:
  /// All changes, in the order of the program's fields; what only the pool has comes last.
  [[nodiscard]] const std::vector<Change>& changes() const noexcept { return changes_; }
  /// The largest need of all changes.
  [[nodiscard]] Need need() const noexcept;
  /// The changes that have a need of at least this, one a line: "sessions.owner: ...".
  [[nodiscard]] std::string lines(Need least) const;
  /// How the old image is read. Parts that need a step are left out.
  [[nodiscard]] const Conversion& conversion() const noexcept { return *root_; }

 private:
  friend class Comparer;
  friend Comparison compare(const Type& before, const Type& now, const std::string& path);
  Comparison() = default;

  std::vector<Change> changes_;
  std::deque<Conversion> made_;  ///< their addresses stay
  const Conversion* root_ = nullptr;
};

/// Compares a type of the pool with the program's. Both must outlive the result. `path` stands
/// before the paths of the changes. Throws std::bad_alloc.
[[nodiscard]] Comparison compare(const Type& before, const Type& now, const std::string& path);
/// The same, of values that are no part of another.
[[nodiscard]] inline Comparison compare(const Type& before, const Type& now) {
  return compare(before, now, "");
}

/// Gives the wider number at `to`, of `to_bytes`, the value of the one at `from`, of `bytes`: a
/// little-endian integer, or a float that becomes a double.
void widen(Number kind, const std::byte* from, std::size_t bytes, void* to,
           std::size_t to_bytes) noexcept;

/// Gives a new object the value of an old image. REQUIRES: object was value-initialised. Errors:
/// as decode().
void convert(Reader& tx, const Conversion& by, const std::byte* image, void* object);

}  // namespace perdure::value
