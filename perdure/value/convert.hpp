// SPDX-License-Identifier: BSD-3-Clause
//
// compare() finds what changed between the type of a value in a pool and the program's type;
// convert() reads an image of the old type as an object of the new one.
//
// Fields are found by name. A field that the pool does not have keeps the value that the struct's
// own initialiser gives it. Nothing is converted in the pool: an old image is read into an object,
// and the program writes images of the new type only.
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

/// What a change needs from the program.
enum class Need : std::uint8_t {
  nothing,  ///< values are converted when they are read
  step,     ///< a function of the program has to make the new value from the old one
  refusal,  ///< the program would lose data of the pool
};

/// One difference between two types.
struct Change {
  std::string path;  ///< the field, "sessions.owner"; empty for the value itself
  Need need;
  std::string text;     ///< what changed, and what to do about it
  bool is_new = false;  ///< whether the field is one that the pool's value does not have
};

/// How a part is read.
struct Conversion {
  enum class How : std::uint8_t {
    same,           ///< both images have the same layout
    number,         ///< a number that becomes wider
    sequence,       ///< element by element
    optional,       ///< its value, if it has one
    into_optional,  ///< a value becomes the value of an optional
    variant,        ///< its alternative
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
  /// All changes, in the order of the program's fields; fields that only the pool has come last.
  [[nodiscard]] const std::vector<Change>& changes() const noexcept { return changes_; }
  /// The largest need of all changes.
  [[nodiscard]] Need need() const noexcept;
  /// The changes that have a need of at least this, one per line: "sessions.owner: ...".
  [[nodiscard]] std::string lines(Need least) const;
  /// How to read the old image. Parts that need a step are left out.
  [[nodiscard]] const Conversion& conversion() const noexcept { return *root_; }

 private:
  friend class Comparer;
  friend Comparison compare(const Type& before, const Type& now, const std::string& path);
  Comparison() = default;

  std::vector<Change> changes_;
  std::deque<Conversion> made_;  ///< their addresses stay
  const Conversion* root_ = nullptr;
};

/// Compares a type of the pool with the program's. Both must outlive the result. The paths of the
/// changes begin with `path`. Throws std::bad_alloc.
[[nodiscard]] Comparison compare(const Type& before, const Type& now, const std::string& path);
/// The same for values that are not a part of another.
[[nodiscard]] inline Comparison compare(const Type& before, const Type& now) {
  return compare(before, now, "");
}

/// Sets the number of `to_bytes` bytes at `to` to the value of the number of `bytes` bytes at
/// `from`: a little-endian integer, or a float that becomes a double. REQUIRES: to_bytes >= bytes.
void widen(Number kind, const std::byte* from, std::size_t bytes, void* to,
           std::size_t to_bytes) noexcept;

/// Reads an old image into a new object. REQUIRES: object was value-initialised. Errors:
/// as decode().
void convert(Reader& tx, const Conversion& by, const std::byte* image, void* object);

}  // namespace perdure::value
