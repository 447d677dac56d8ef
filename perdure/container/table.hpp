// SPDX-License-Identifier: BSD-3-Clause
//
// table<T, ...>: rows of a plain struct in a pool, found by their key and by other members.
//
//     struct Session { std::string token; std::uint64_t user; std::chrono::sys_seconds until; };
//     table<Session, key<&Session::token>, indexed<&Session::user>, expires<&Session::until>> all;
//
// A row is one block (table_row.hpp) that keeps its address as long as its shape. A map from the
// key, and one for each other declared member, lead to it (table_parts.hpp). A change of a member
// that is in no index touches no index.
// Thread safety: that of the transaction.
// Invariants:
// TABLE-1 Each part has exactly one entry for each row, but none for a row whose unique member or
// time of expiry is an optional without a value.
// TABLE-2 An entry's key is what the row's member is, and in an index the row's number.
// TABLE-3 A row's number is less than next_, and no two rows share one.
// Zero bytes are an empty table.
#pragma once

#include <any>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perdure/api/layout.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/api/row_steps.hpp"
#include "perdure/container/live_cursor.hpp"
#include "perdure/container/table_parts.hpp"
#include "perdure/container/table_row.hpp"

namespace perdure {

/// A table in a pool. T is a plain struct; `Key` is key<&T::member> or ordered_key<&T::member>;
/// `Others` are indexed, indexed_descending, unique and expires. All but expires may have several
/// members: their values are a std::tuple as a key, also std::tie(a, b).
///
/// Each call takes the transaction first. Calls that change the table need an update()'s `tx` (they
/// do not compile with a view's) and throw error(exists) where a row would share a unique member
/// with another one, and error(full), error(too_big), error(out_of_memory) or std::bad_alloc where
/// memory or log space is lacking; the transaction is then rolled back. A table may be changed in a
/// loop over its rows, as live_cursor.hpp says of maps; reading a row that was erased throws
/// error(invalid).
/// Thread safety: the transaction's.
template <class T, class Key, class... Others>
class alignas(64) table {
  static_assert(
      value::plain_struct<T>,
      "perdure::table: a row is a plain struct: no constructor, no base class, no private "
      "field");
  static_assert(detail::is_key<Key>,
                "perdure::table: the first thing that a table is declared with is its key: "
                "key<&T::member> or ordered_key<&T::member>");
  static_assert(!(detail::is_key<Others> || ...), "perdure::table: a table has one key");
  // A change of layout moves them (api/plan.cpp).
  static_assert(sizeof(detail::table_parts<Key, Others...>) == 64 * (2 + sizeof...(Others)));
  using KeyPart = detail::table_part<Key>;
  using Row = detail::row;

 public:
  /// The type of a row.
  using value_type = T;
  /// The type of the key.
  using key_type = typename KeyPart::type;
  /// How a key is passed in: const K&, std::string_view, or of several members {a, b} or
  /// std::tie(a, b), with texts as std::string_view.
  using key_arg = typename detail::key_passed<key_type>::arg;

  /// The number of rows.
  template <class Tx>
  [[nodiscard]] std::uint64_t size(Tx& tx) const {
    return parts_.first.rows.size(tx);
  }
  /// Whether there is no row.
  template <class Tx>
  [[nodiscard]] bool empty(Tx& tx) const {
    return parts_.first.rows.empty(tx);
  }
  /// Whether there is a row of this key.
  template <class Tx>
  [[nodiscard]] bool contains(Tx& tx, key_arg key) const {
    return parts_.first.rows.contains(tx, key);
  }
  /// Returns a copy of the row with this key; nothing if there is none. The copy is const, so that
  /// `find(tx, key)->member = 1`, which would change only the copy, does not compile. To change the
  /// row, use update().
  template <class Tx>
  [[nodiscard]] const std::optional<T> find(Tx& tx, key_arg key) const {
    return copy(tx, parts_.first.rows.find(tx, key));
  }
  /// The key's row, of which single fields can be read; nothing where there is none.
  template <class Tx>
  [[nodiscard]] std::optional<detail::row_ref<T, Tx>> at(Tx& tx, key_arg key) const {
    const auto found = parts_.first.rows.find(tx, key);
    if (!found) return std::nullopt;
    return detail::row_ref<T, Tx>(tx, *found, &parts_.first.rows);
  }
  /// Whether there is a row of a key of several members: contains(tx, a, b).
  template <class Tx, class A, class B, class... More>
  [[nodiscard]] bool contains(Tx& tx, const A& a, const B& b, const More&... more) const {
    return contains(tx, whole_key(a, b, more...));
  }
  /// The row of a key of several members, as find(tx, key).
  template <class Tx, class A, class B, class... More>
  [[nodiscard]] const std::optional<T> find(Tx& tx, const A& a, const B& b,
                                            const More&... more) const {
    return find(tx, whole_key(a, b, more...));
  }
  /// The row of a key of several members in its transaction, as at(tx, key).
  template <class Tx, class A, class B, class... More>
  [[nodiscard]] auto at(Tx& tx, const A& a, const B& b, const More&... more) const {
    return at(tx, whole_key(a, b, more...));
  }
  /// A copy of the row whose unique members have these values; nothing where there is none:
  /// `one<&T::mail>(tx, mail)`, `one<&T::a, &T::b>(tx, a, b)`.
  template <auto... Members, class Tx>
  [[nodiscard]] const std::optional<T> one(Tx& tx, detail::look_up_arg<Members>... values) const {
    const auto& part = this->part<Members...>();
    using Part = std::remove_cvref_t<decltype(part)>;
    static_assert(Part::is_unique && detail::finds_by<Part, Members...>,
                  "perdure::table: rows may share this member: use by<&T::member>(tx, value)");
    return copy(tx, part.rows.find(tx, Part::entry_of(values...)));
  }

  /// The rows whose member has this value, oldest first. Of an index of several members: the first
  /// ones, and then the rows are in the order of the others: `by<&T::a>(tx, a)` of
  /// indexed<&T::a, &T::b>.
  template <auto... Members, class Tx>
  [[nodiscard]] auto by(Tx& tx, detail::look_up_arg<Members>... values) const {
    const auto& part = this->part<Members...>();
    using Part = std::remove_cvref_t<decltype(part)>;
    static_assert(!detail::finds_by<Part, Members...> || !Part::is_unique,
                  "perdure::table: no two rows share this member: use one<&T::member>(tx, value), "
                  "or find(tx, key)");
    const auto entry = Part::entry_of(values...);
    using Bound = detail::key_bound<typename Part::entry>;
    return part.rows.template range_between<detail::row_of<T>>(
        tx, Bound(entry, sizeof...(Members), false), Bound(entry, sizeof...(Members), true));
  }
  /// The rows from one value of the member to another one, in the index's order; those of `to` are
  /// not among them. The member may be the first one of several.
  template <auto Member, class Tx>
  [[nodiscard]] auto range(Tx& tx, detail::look_up_arg<Member> from,
                           detail::look_up_arg<Member> to) const {
    return range<Member>(tx, perdure::from(from), perdure::before(to));
  }
  /// The rows from a beginning of the member on, up to an end, or between both (bound.hpp), in the
  /// order of the index: `range<&T::a>(tx, after(a))`, `range<&T::a>(tx, from(a), through(b))`.
  /// With several members, the bound applies to the last one, and the values of the others come
  /// first: `range<&T::a, &T::b>(tx, a, through(b))`.
  template <auto... Members, class Tx, class... Arguments>
    requires(sizeof...(Arguments) > 0 && (detail::range_bound<Arguments> || ...))
  [[nodiscard]] auto range(Tx& tx, const Arguments&... arguments) const {
    constexpr std::size_t equal = sizeof...(Members) - 1;
    static_assert(
        sizeof...(Arguments) == equal + 1 || sizeof...(Arguments) == equal + 2,
        "perdure::table::range: the values of all members but the last one, then one bound "
        "of that one, or from() or after() and before() or through()");
    const auto& part = this->part<Members...>();
    using Part = std::remove_cvref_t<decltype(part)>;
    require_order(part);
    const std::tuple<const Arguments&...> all(arguments...);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto bound = [&](const auto& end) {
        return bound_of<Part, Members...>(end.behind, std::get<I>(all)..., end.value);
      };
      const auto& first = std::get<equal>(all);
      using First = std::remove_cvref_t<decltype(first)>;
      using End = std::optional<detail::key_bound<typename Part::entry>>;
      End low, high;
      if constexpr (equal > 0) {
        low.emplace(Part::entry_of(std::get<I>(all)...), unsigned{equal}, false);
        high.emplace(low->key, unsigned{equal}, true);
      }
      if constexpr (sizeof...(Arguments) == equal + 2) {
        const auto& second = std::get<equal + 1>(all);
        static_assert(detail::bounds_a_range<First, std::remove_cvref_t<decltype(second)>>,
                      "perdure::table::range: the first bound is from() or after(), the second one "
                      "before() or through()");
        low = bound(first), high = bound(second);
      } else if constexpr (detail::is_lower_bound<First>) {
        low = bound(first);
      } else {
        high = bound(first);
      }
      return part.rows.template range_between<detail::row_of<T>>(tx, low, high);
    }(std::make_index_sequence<equal>{});
  }
  /// All rows, in the order of the member's index.
  template <auto... Members, class Tx>
  [[nodiscard]] auto ordered(Tx& tx) const {
    const auto& part = this->part<Members...>();
    require_order(part);
    return detail::ordered_range<Tx, decltype(part.rows.begin(tx)), detail::row_of<T>>(
        tx, part.rows.begin(tx), part.rows.end(tx));
  }

  /// Adds a row unless there is one of its key. Returns whether it was added.
  template <class Tx>
  bool insert(Tx& tx, const T& row) {
    detail::require_update<Tx>();
    if (contains(tx, KeyPart::key_of(row, 0))) return false;
    add_row(tx, row);
    return true;
  }
  /// Adds a row under a key that no row of the table had before, and returns the key: 1, 2, 3, and
  /// so on, without the numbers that insert() or put() have used. The key must be one member, an
  /// integer; its value in `row` is ignored. Throws error(full) if the type of the key has no more
  /// numbers.
  template <class Tx>
  key_type add(Tx& tx, T row) {
    detail::require_update<Tx>();
    static_assert(std::is_integral_v<key_type> && !std::is_same_v<key_type, bool>,
                  "perdure::table::add: it gives the row its key, which is one member, an integer: "
                  "use insert() or put()");
    for (std::uint64_t number = tx.read(next_);; ++number) {
      if (!std::in_range<key_type>(number + 1)) detail::throw_no_key(number);
      const auto key = static_cast<key_type>(number + 1);
      if (contains(tx, key)) continue;
      if (number != tx.read(next_)) tx.write(next_, number);
      KeyPart::set_key(row, key);
      add_row(tx, row);
      return key;
    }
  }
  /// Adds a row, or gives the row of its key this value. Returns whether it was added.
  template <class Tx>
  bool put(Tx& tx, const T& row) {
    detail::require_update<Tx>();
    const auto found = parts_.first.rows.find(tx, KeyPart::key_of(row, 0));
    if (found)
      change(tx, *found, *copy(tx, found), row);
    else
      add_row(tx, row);
    return !found;
  }
  /// Calls f(T&), which changes the key's row. Returns false, without a call, when there is none.
  template <class Tx, class F>
  bool update(Tx& tx, key_arg key, F&& f) {
    detail::require_update<Tx>();
    const auto found = parts_.first.rows.find(tx, key);
    if (!found) return false;
    change_by(tx, *found, f);
    return true;
  }
  /// Calls f(T&), which changes the row that a loop over this table is at, or that at() found. The
  /// row is not looked up again. Throws error(invalid) if the row was erased or belongs to another
  /// table.
  template <class Tx, class F>
  void update(Tx& tx, const detail::row_ref<T, Tx>& row, F&& f) {
    detail::require_update<Tx>();
    change_by(tx, mine(row), f);
  }
  /// Removes the key's row. Returns whether there was one.
  template <class Tx>
  bool erase(Tx& tx, key_arg key) {
    detail::require_update<Tx>();
    const auto found = parts_.first.rows.find(tx, key);
    if (found) remove(tx, *found);
    return found.has_value();
  }
  /// Removes the row that a loop over this table is at, or that at() found. Throws as update().
  template <class Tx>
  void erase(Tx& tx, const detail::row_ref<T, Tx>& row) {
    detail::require_update<Tx>();
    remove(tx, mine(row));
  }
  /// Removes the row with this key, and returns a copy of it; nothing if there was none.
  template <class Tx>
  std::optional<T> take(Tx& tx, key_arg key) {
    detail::require_update<Tx>();
    const auto found = parts_.first.rows.find(tx, key);
    if (!found) return std::nullopt;
    return remove(tx, *found);
  }
  /// Removes up to `most` rows whose time has come: not after `now`, the oldest first. Returns how
  /// many. The table is declared with expires<&T::member>.
  template <class Tx, class Time>
  std::uint64_t expire(Tx& tx, const Time& now, std::uint64_t most = ~std::uint64_t{0}) {
    detail::require_update<Tx>();
    static_assert(((detail::table_part<Others>::word == "expires") || ...),
                  "perdure::table: expire() is for a table with expires<&T::member>");
    std::uint64_t removed = 0;
    parts_.each([&]<class Part>(Part& part) {
      if constexpr (Part::word == "expires") {
        while (removed < most) {
          const auto first = part.rows.first(tx);
          if (!first || now < std::get<0>(first->first)) break;
          remove(tx, first->second);
          ++removed;
        }
      }
    });
    return removed;
  }

  /// Removes the rows for which pred(const T&) is true. Returns how many.
  template <class Tx, class F>
  std::uint64_t erase_if(Tx& tx, F pred) {
    detail::require_update<Tx>();
    std::uint64_t removed = 0;
    for (auto at = parts_.first.rows.begin(tx); at; at.next(tx)) {
      Row* const row = at.value(tx);
      T value{};
      value::ReaderOver<Tx> reader(tx);
      value::record::read(reader, type(), &row->record, std::addressof(value));
      const bool gone = [&] {
        const detail::being_changed changing(this);
        return static_cast<bool>(pred(std::as_const(value)));
      }();
      if (!gone) continue;
      remove(tx, row);
      ++removed;
    }
    return removed;
  }

  /// Removes all rows, in this transaction: empty a very large table with clear_some.
  template <class Tx>
  void clear(Tx& tx) {
    (void)clear_some(tx, ~std::uint64_t{0});
  }
  /// Removes up to `n` rows. Returns whether the table is empty.
  template <class Tx>
  bool clear_some(Tx& tx, std::uint64_t n) {
    detail::require_update<Tx>();
    for (auto at = parts_.first.rows.begin(tx); at && n > 0; --n, at.next(tx))
      remove(tx, at.value(tx));
    if (!empty(tx)) return false;
    parts_.each([&](auto& part) { part.rows.clear(tx); });
    return true;
  }

  /// Frees up to `blocks` heap blocks of what the table owns, and lowers `blocks` by their number.
  /// Returns whether nothing is left; until then nothing else may use the table. For retired.hpp.
  template <class Tx>
  bool free_some(Tx& tx, std::uint64_t& blocks) {
    detail::require_update<Tx>();
    bool done = true;
    parts_.each([&]<class Part>(Part& part) {
      if constexpr (!std::is_same_v<Part, KeyPart>) done = done && part.rows.free_some(tx, blocks);
    });
    return done && parts_.first.rows.free_some(tx, blocks, [&](auto& field) {
      Row* const row = tx.read(field);
      if (row == nullptr) return true;
      value::WriterOver<Tx> writer(tx);
      if (!value::record::free_parts(writer, type(), &row->record, blocks) || blocks == 0)
        return false;
      --blocks;
      tx.free(row);
      tx.write(field, nullptr);
      return true;
    });
  }

  /// For a table that replaces another one (rebuilt.hpp): finds rows that would share a key or a
  /// unique member in this table, before it gets them.
  using shared = detail::shared_rows<T, Key, Others...>;
  /// Its rows in the order of their numbers.
  template <class Tx>
  [[nodiscard]] std::vector<detail::row*> rows_by_number(Tx& tx) const;
  /// Calls f(T) for each row.
  template <class Tx, class F>
  void each_row(Tx& tx, F f) const {
    for (auto at = parts_.first.rows.begin(tx); at; at.next(tx))
      f(*copy(tx, std::optional<detail::row*>(at.value(tx))));
  }
  /// Removes one of the rows, and returns it with its number.
  template <class Tx>
  std::pair<T, std::uint64_t> take_numbered(Tx& tx, detail::row* row) {
    detail::require_update<Tx>();
    std::pair<T, std::uint64_t> out(*copy(tx, std::optional(row)), number_of(tx, row));
    remove(tx, row);
    return out;
  }
  /// The number that the next row will get.
  template <class Tx>
  [[nodiscard]] std::uint64_t next_number(Tx& tx) const {
    return tx.read(next_);
  }
  /// Raises the number of the next row to at least this one.
  template <class Tx>
  void go_on_with_number(Tx& tx, std::uint64_t next) {
    detail::require_update<Tx>();
    if (tx.read(next_) < next) tx.write(next_, next);
  }
  /// Adds a row with this number, which no row has.
  template <class Tx>
  void add_numbered(Tx& tx, const T& row, std::uint64_t number) {
    detail::require_update<Tx>();
    add_row(tx, row, number, tx.read(next_));
  }

  /// Calls f(const void*) for each heap block that the table owns, for Pool::check(). Any
  /// transaction.
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    parts_.each([&](const auto& part) { part.rows.each_block(tx, f); });
    value::ReaderOver<Tx> reader(tx);
    for (auto at = parts_.first.rows.begin(tx); at; at.next(tx)) {
      const Row* const row = at.value(tx);
      f(static_cast<const void*>(row));
      value::record::each_part_block(reader, type(), &row->record,
                                     [&](const void* block) { f(block); });
    }
  }
  /// Returns what is wrong; empty when nothing is.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const;

  /// What stands for this table in the layout text of a root (layout.hpp).
  static std::string layout_text(LayoutNames& names) {
    names.note_record(type());
    std::string out = "table<" + value::text_of(type());
    const detail::table_parts<Key, Others...> parts{};
    parts.each([&]<class Part>(const Part&) {
      out += "," + std::string(Part::word) + " ";
      out += Part::names();
      if (names.version() == LayoutVersion::named) out += Part::marks();
    });
    return out + ">/1";
  }
  /// The same, of the table alone.
  static std::string layout_text() {
    LayoutNames names;
    return layout_text(names);
  }

  /// Called when the pool is opened. First rewrites the rows that need it, by `steps`, then makes
  /// the entries that indexes and unique parts lack, and frees the entries of dropped parts, with
  /// up to `batch` of them per update. `run(f)` runs f(tx) as an update, `look(f)` as a view;
  /// `done(n)` is called when n rows have gone through the first part. It takes memory for a list
  /// of pointers to the rows, or none if the table lacks nothing.
  template <class Run, class Look, class Done = void (*)(std::uint64_t)>
  void catch_up_rows(
      Run&& run, Look&& look, std::uint64_t batch, const detail::RowSteps& steps = {{}, {}},
      Done&& done = [](std::uint64_t) {});
  /// From now on, rows of the pool at [begin, begin + bytes) that need it go through `steps` when
  /// they are read (Migration::lazy), until the result is destroyed. `owner` keeps the steps alive.
  [[nodiscard]] static std::shared_ptr<const void> read_late(const std::byte* begin,
                                                             std::uint64_t bytes,
                                                             const detail::RowSteps& steps,
                                                             std::shared_ptr<const void> owner);
  /// Whether the table's rows with these keys, which is all that may need it, have gone through
  /// `steps`; takes up to `n` of them. `keys` is empty before the first call. `run(f)` makes f(tx)
  /// an update, and `look(f)` makes f(tx) a view.
  template <class Run, class Look>
  bool settle_some(Run&& run, Look&& look, std::uint64_t n, const detail::RowSteps& steps,
                   std::any& keys);
  /// Returns how many rows of the table at `old` would share the unique member that `path` ends
  /// with: with another row after `steps`, or with a row that has not gone through its steps yet.
  /// REQUIRES: the old table has this table's rows and key.
  template <class Tx>
  [[nodiscard]] std::uint64_t shared_values(Tx& tx, const std::byte* old, std::string_view path,
                                            const detail::RowSteps& steps) const;

 private:
  static const value::Type& type() { return value::type_of<T>(); }
  /// audit() has a bit for each of the first 2^26 numbers: 8 MiB.
  static constexpr std::uint64_t audited_numbers = std::uint64_t{1} << 26;

  /// The part that finds rows by these members: by them alone, or else the first one that finds
  /// them by these and others.
  template <auto... Members>
  [[nodiscard]] const auto& part() const {
    constexpr bool exactly = (detail::finds_by<KeyPart, Members...> || ... ||
                              detail::finds_by<detail::table_part<Others>, Members...>);
    constexpr bool there = exactly || (detail::orders_by<KeyPart, Members...> || ... ||
                                       detail::orders_by<detail::table_part<Others>, Members...>);
    static_assert(there,
                  "perdure::table: rows are not found by this member: declare it as indexed, "
                  "indexed_descending, unique or expires; of several members, these must be the "
                  "first ones, in order");
    return find_part<exactly, Members...>(parts_);
  }
  template <bool Exactly, auto... Members, class First, class... Rest>
  static const auto& find_part(const detail::table_parts<First, Rest...>& parts) {
    using Part = detail::table_part<First>;
    if constexpr (Exactly ? detail::finds_by<Part, Members...>
                          : detail::orders_by<Part, Members...>)
      return parts.first;
    else
      return find_part<Exactly, Members...>(parts.rest);
  }
  /// The key of its members' values.
  template <class... Values>
  static key_type whole_key(const Values&... values) {
    static_assert(sizeof...(Values) == KeyPart::count,
                  "perdure::table: a look-up takes as many values as the key has members");
    return key_type(values...);
  }
  template <class Part>
  static constexpr void require_order(const Part&) {
    static_assert(Part::word != "key",
                  "perdure::table: rows have no order by a key<&T::member>: declare it as "
                  "ordered_key");
  }
  /// A part had no entry for a row, or already one.
  static void require_agreed(bool as_expected) {
    if (!as_expected)
      throw error(
          Status(Code::corrupt,
                 "perdure::table: found an index that disagrees with its rows, expected one "
                 "entry for each row: Pool::check() says more"));
  }

  template <class Tx>
  static std::optional<T> copy(Tx& tx, const std::optional<Row*>& row) {
    if (!row) return std::nullopt;
    value::ReaderOver<Tx> reader(tx);
    std::optional<T> out(std::in_place);
    value::record::read(reader, type(), &(*row)->record, std::addressof(*out));
    return out;
  }
  /// The address of a row of this table.
  template <class Tx>
  Row* mine(const detail::row_ref<T, Tx>& row) const {
    const auto part = reinterpret_cast<std::uintptr_t>(row.part_);
    const auto begin = reinterpret_cast<std::uintptr_t>(this);
    if (part < begin || part >= begin + sizeof *this) detail::throw_not_mine();
    return const_cast<Row*>(row.at());
  }
  /// The bound of a range whose last member is a bound (bound.hpp).
  template <class Part, auto... Members, class... Values>
  static auto bound_of(bool behind, const Values&... values) {
    static_assert((std::is_convertible_v<const Values&, detail::look_up_arg<Members>> && ...),
                  "perdure::table::range: a bound is a value of the member");
    constexpr unsigned parts = Part::is_unique && Part::count == 1 ? 0 : sizeof...(Members);
    return detail::key_bound<typename Part::entry>(
        Part::entry_of(static_cast<detail::look_up_arg<Members>>(values)...), parts, behind);
  }

  template <class Tx>
  static std::uint64_t number_of(Tx& tx, const Row* row) {
    std::uint64_t number = 0;
    tx.read_bytes(&number, &row->number, sizeof number);
    return number;
  }
  template <class Tx>
  void add_row(Tx& tx, const T& value) {
    const std::uint64_t number = tx.read(next_);
    add_row(tx, value, number, number);
  }
  /// `next`: the value of next_. REQUIRES: no row has this number.
  template <class Tx>
  void add_row(Tx& tx, const T& value, std::uint64_t number, std::uint64_t next) {
    detail::being_changed::refuse(this);
    require_unique(tx, nullptr, value);
    detail::whole_change(tx, [&] {
      value::WriterOver<Tx> writer(tx);
      auto* const row = reinterpret_cast<Row*>(
          value::record::make_behind(writer, number, type(), std::addressof(value)));
      if (number >= next) tx.write(next_, number + 1);
      parts_.each([&](auto& part) {
        if (part.holds(value))
          require_agreed(part.rows.insert(tx, part.key_of(value, number), row));
      });
    });
  }
  template <class Tx, class F>
  void change_by(Tx& tx, Row* row, F& f) {
    const T old = *copy(tx, std::optional(row));
    T now = old;
    {
      const detail::being_changed changing(this);
      f(now);
    }
    change(tx, row, old, now);
  }
  template <class Tx>
  void change(Tx& tx, Row* row, const T& old, const T& now) {
    detail::being_changed::refuse(this);
    require_unique(tx, row, now);
    std::uint64_t number = 0;
    tx.read_bytes(&number, &row->number, sizeof number);
    detail::whole_change(tx, [&] {
      value::WriterOver<Tx> writer(tx);
      auto* const kept = reinterpret_cast<Row*>(value::record::assign_behind(
          writer, type(), reinterpret_cast<std::byte*>(row), std::addressof(now)));
      detail::live_row::changed(row, kept);
      parts_.each([&](auto& part) {
        const auto &before = part.key_of(old, number), &after = part.key_of(now, number);
        if (detail::same_key(before, after)) {
          // A row of an earlier version of T has moved. Its entries stay where they are, so a range
          // that is at the row can continue.
          if (kept != row && part.holds(now)) require_agreed(!part.rows.put(tx, after, kept));
          return;
        }
        if (part.holds(old)) require_agreed(part.rows.erase(tx, before));
        if (part.holds(now)) require_agreed(part.rows.insert(tx, after, kept));
      });
    });
  }
  /// Returns a copy of the row.
  template <class Tx>
  T remove(Tx& tx, Row* row) {
    detail::being_changed::refuse(this);
    T value = *copy(tx, std::optional(row));
    std::uint64_t number = 0;
    tx.read_bytes(&number, &row->number, sizeof number);
    detail::whole_change(tx, [&] {
      detail::live_row::erased(row);
      parts_.each([&](auto& part) {
        if (part.holds(value)) require_agreed(part.rows.erase(tx, part.key_of(value, number)));
      });
      value::WriterOver<Tx> writer(tx);
      value::record::drop_parts(writer, type(), &row->record);
      tx.free(row);
    });
    return value;
  }
  // table_catch_up.hpp.
  template <class Tx>
  Row* settle(Tx& tx, Row* row, const detail::RowSteps& steps);
  template <class Tx>
  bool rows_pending(Tx& tx, const detail::RowSteps& steps) const;

  /// Throws error(exists) if another row than `row`, which is to become `now`, has a unique member
  /// of it. `row` is null for a new one.
  template <class Tx>
  void require_unique(Tx& tx, const Row* row, const T& now) const {
    parts_.each([&]<class Part>(const Part& part) {
      if constexpr (Part::is_unique) {
        if (!part.holds(now)) return;
        const auto found = part.rows.find(tx, part.key_of(now, 0));
        if (found && *found != row) detail::throw_not_unique(Part::names());
      }
    });
  }

  p<std::uint64_t> next_;
  detail::table_parts<Key, Others...> parts_;
};

}  // namespace perdure

#include "perdure/container/table_audit.hpp"
#include "perdure/container/table_catch_up.hpp"
