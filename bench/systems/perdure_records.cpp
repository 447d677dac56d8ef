// SPDX-License-Identifier: BSD-3-Clause
//
// What a record costs a look-up: the same struct as a value in the container's node
// (perdure::fixed) and as a record, a block of its own with a word for its layout; see perdure.hpp.
#include <optional>
#include <stdexcept>
#include <string>

#include "bench/harness/timed.hpp"
#include "bench/systems/perdure.hpp"

namespace bench {
namespace {

/// The session store's row (examples/sessions.hpp), twice: `Place` makes two types of it.
template <int Place>
struct Row {
  std::uint64_t user = 0;
  std::optional<std::uint64_t> device;
  std::int64_t expires = 0;
  std::string address;
};
using InNode = Row<0>;
using Record = Row<1>;

}  // namespace
}  // namespace bench

template <>
inline constexpr bool perdure::fixed<bench::InNode> = true;

namespace bench {
namespace {

static_assert(perdure::value::placement_of<InNode>() == perdure::value::Placement::image);
static_assert(perdure::value::placement_of<Record>() == perdure::value::Placement::record);

template <class T>
T row_of(std::uint64_t key) {
  T row;
  row.user = mix(key);
  if (key % 2 == 0) row.device = key;
  row.expires = static_cast<std::int64_t>(key) + 1;
  row.address = "10.20." + std::to_string(key);
  return row;
}
template <class T>
bool is_row_of(std::uint64_t key, const T& row) {
  const T right = row_of<T>(key);
  return row.user == right.user && row.device == right.device && row.expires == right.expires &&
         row.address == right.address;
}

/// Look-ups of whole rows in two containers of the same rows; the parameter says in which one.
/// Invariant: each row is its key's.
template <class Kind>
struct Finds {
  struct Root {
    typename Kind::template Map<InNode> in_node;
    typename Kind::template Map<Record> records;
  };
  static constexpr const char* structure = Kind::structure;
  static constexpr std::uint64_t rows = 100'000;

  template <class Host>
  static void fill(Host& host, const Setting&) {
    constexpr std::uint64_t a_transaction = 100;
    for (std::uint64_t from = 0; from < rows; from += a_transaction)
      host.update([from](auto& tx, Root& root) {
        for (std::uint64_t key = from; key < from + a_transaction; ++key) {
          root.in_node.put(tx.tx, key, row_of<InNode>(key));
          root.records.put(tx.tx, key, row_of<Record>(key));
        }
        return true;
      });
  }
  static void check_parameter(unsigned place) {
    if (place > 1)
      throw std::invalid_argument(std::string(structure) + ": found " + std::to_string(place) +
                                  ", expected 0 (values in the node) or 1 (records)");
  }
  template <class Host>
  static Step step(Host& host, const Cell&, unsigned place, Rng& rng) {
    const std::uint64_t key = rng.below(rows);
    const std::uint64_t user = host.view([&](auto& tx, const Root& root) {
      return place == 0 ? root.in_node.find(tx.tx, key)->user : root.records.find(tx.tx, key)->user;
    });
    if (user != mix(key))
      throw std::runtime_error(std::string(structure) + ": a look-up found another key's row");
    return {};
  }
  template <class Host>
  static std::vector<std::string> audit(Host& host, std::int64_t) {
    std::uint64_t wrong = 0;
    for (std::uint64_t key = 0; key < rows; ++key)
      wrong += !host.view([&](auto& tx, const Root& root) {
        const auto in_node = root.in_node.find(tx.tx, key);
        const auto record = root.records.find(tx.tx, key);
        return in_node && record && is_row_of(key, *in_node) && is_row_of(key, *record);
      });
    if (wrong == 0) return {};
    return {std::string(structure) + ": " + std::to_string(wrong) + " of " + std::to_string(rows) +
            " rows are missing or wrong"};
  }
};

struct HashKind {
  static constexpr const char* structure = "hfind";
  template <class T>
  using Map = perdure::hash_map<std::uint64_t, T>;
};
struct TreeKind {
  static constexpr const char* structure = "mfind";
  template <class T>
  using Map = perdure::map<std::uint64_t, T>;
};

}  // namespace

PerdureStructures perdure_records() {
  return perdure_structures<WorkloadList<Finds<HashKind>, Finds<TreeKind>>,
                            perdure::engines<perdure::shadow>>();
}

}  // namespace bench
