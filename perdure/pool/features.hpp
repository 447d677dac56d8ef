// SPDX-License-Identifier: BSD-3-Clause
//
// Features: what a program must know, according to a pool's header. This is the only list of them.
//
// Format version 4 is the last one that changes by its number: everything new that a pool may hold
// from then on is a feature, one bit in one of the header's three words. A program that finds a bit
// that it does not know refuses to write the pool (words `write` and `read`), refuses to read it
// (word `read`), or ignores the bit and preserves it (word `optional`). A feature's number is never
// used again.
//
// Invariant FEATURE-1: a pool has a feature's bit durably, in both copies of its header, before
// anything in it needs the feature. A new pool gets the bit by set_feature() before its header is
// first written; an open pool gets it by OpenPool::require_feature().
//
// To add a feature: a line in `features`, `implemented` set in the commit that implements it, a row
// in docs/format.md, and test pools in tests/compat. Thread safety: plain functions over their
// arguments.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/pool/format.hpp"

namespace perdure::pool {

/// Which word of the header a feature's bit lies in, that is, for what a program must know the
/// feature.
enum class FeatureWord : std::uint8_t {
  write,  ///< to change the pool
  read,   ///< to read it, and therefore also to recover and to change it
  /// for nothing: a program that does not know it ignores the bit, preserves it, and changes
  /// nothing that belongs to it
  optional
};

/// A feature's number is its bit. Each number is used in only one word, so that the number alone
/// names the feature.
enum class Feature : std::uint8_t {
  combined_records = 0,
  small_logs = 1,
  field_names = 2,
  catalog_root = 3,
  note_entries = 4,
  data_checksums = 5,
  replication_words = 6,
  dependent_records = 7,
  raised_limit = 8,
  copied_objects = 9,
  archived_log = 10
};

struct FeatureInfo {
  Feature feature;
  FeatureWord word;
  std::string_view name;
  std::string_view owner;  ///< the folder whose code gives the feature its meaning
  /// false: the number is taken, and this build refuses a pool that has it
  bool implemented;
  [[nodiscard]] constexpr std::uint64_t bit() const noexcept {
    return std::uint64_t{1} << static_cast<unsigned>(feature);
  }
};

/// The list, in the order of the numbers.
inline constexpr FeatureInfo features[] = {
    // Log records of the kinds `combined` and `packed` (log/record.hpp). Format version 3 was this
    // feature.
    {Feature::combined_records, FeatureWord::read, "combined records", "perdure/log", true},
    // The log and the directory are allocated as they are used: no byte may be stored in a range of
    // them that is not allocated.
    {Feature::small_logs, FeatureWord::write, "small logs", "perdure/pool", true},
    // The names of the root type's fields, beside its layout.
    {Feature::field_names, FeatureWord::optional, "field names", "perdure/api", true},
    // The root object is a catalog (catalog.hpp), which leads to the program's root object.
    {Feature::catalog_root, FeatureWord::read, "catalog root", "perdure/api", true},
    // Log entries that recovery skips.
    {Feature::note_entries, FeatureWord::read, "note entries", "perdure/log", true},
    // Checksums of the data region's pages, which a writer keeps up to date (page_checksums.hpp).
    {Feature::data_checksums, FeatureWord::write, "data checksums", "perdure/pool", true},
    // Words of the header that say which log a replica follows, and how far it has come.
    {Feature::replication_words, FeatureWord::write, "replication words", "perdure/replication",
     true},
    // Log records of the kind `dependent`, and their entries `after` (log/record.hpp).
    {Feature::dependent_records, FeatureWord::read, "dependent records", "perdure/log", true},
    // max_size was raised: the directory has further sections (directory.hpp).
    {Feature::raised_limit, FeatureWord::read, "raised limit", "perdure/pool", true},
    // The catalog has a list of copies of objects (catalog.hpp), or had one.
    {Feature::copied_objects, FeatureWord::read, "copied objects", "perdure/api", true},
    // The header's log_from_id, which every writer keeps: so an archive of the log knows whether a
    // transaction is missing from it.
    {Feature::archived_log, FeatureWord::write, "archived log", "perdure/backup", true},
};

[[nodiscard]] constexpr const FeatureInfo& info(Feature f) noexcept {
  return features[static_cast<std::size_t>(f)];
}

/// The bits of one word that this build knows, that is, implements.
[[nodiscard]] constexpr std::uint64_t known_bits(FeatureWord word) noexcept {
  std::uint64_t bits = 0;
  for (const FeatureInfo& f : features)
    if (f.word == word && f.implemented) bits |= f.bit();
  return bits;
}

/// The three words of a header, whatever its version: version 2 has no feature, version 3 has
/// combined records.
struct FeatureWords {
  std::uint64_t write = 0, read = 0, optional = 0;
  [[nodiscard]] constexpr std::uint64_t& of(FeatureWord w) noexcept {
    return w == FeatureWord::write ? write : w == FeatureWord::read ? read : optional;
  }
  friend constexpr bool operator==(const FeatureWords&, const FeatureWords&) noexcept = default;
};
[[nodiscard]] FeatureWords feature_words(const Header& header) noexcept;
[[nodiscard]] bool has_feature(const Header& header, Feature feature) noexcept;

/// Sets the bit in a header that is not yet written, and raises its version to 4. For an open pool
/// use OpenPool::require_feature.
void set_feature(Header& header, Feature feature) noexcept;

/// Says in a header that is not yet written that the log holds every record above `id`, if the pool
/// has the feature archived log.
void set_log_from(Header& header, std::uint64_t id) noexcept;

/// Ok, or `incompatible`. The error names each feature that the pool has and this build does not
/// know, if reading requires it or, with `for_writing`, writing does.
[[nodiscard]] Status check_features(const std::string& path, const Header& header,
                                    bool for_writing);

/// Every feature of the pool in words, "combined records" or "bit 17 (unknown, optional)", in the
/// order of the numbers. For tools.
[[nodiscard]] std::vector<std::string> feature_names(const Header& header);

namespace detail {
constexpr bool numbered_in_order() {
  for (std::size_t i = 0; i < std::size(features); ++i)
    if (static_cast<std::size_t>(features[i].feature) != i) return false;
  return std::size(features) <= 64;
}
static_assert(numbered_in_order(),
              "each number of a feature is used once, and the list is in their order");
}  // namespace detail

}  // namespace perdure::pool
