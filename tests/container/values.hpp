// SPDX-License-Identifier: BSD-3-Clause
//
// Values of many kinds for the container suite, each made from a number.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "perdure/value/placement.hpp"
#include "tests/container/suite.hpp"

namespace perdure::test {

enum class Mood : std::uint8_t { good, bad };

struct Place {
  std::string town;
  std::optional<std::uint16_t> floor;
  friend bool operator==(const Place&, const Place&) = default;
};

/// A field of each kind; it contains itself through a vector.
struct Person {
  std::string name;
  std::int32_t age = 7;
  Mood mood = Mood::good;
  bool member = true;
  char initials[3] = {'x', 'y', 'z'};
  double weight = 0.5;
  std::chrono::sys_seconds born{};
  std::chrono::milliseconds pause{};
  std::optional<std::string> nick;
  std::variant<std::int32_t, std::string, Place> contact;
  std::array<std::uint16_t, 3> marks{};
  std::pair<std::uint8_t, std::string> badge;
  std::tuple<std::int64_t, char> seat;
  Place home;
  std::vector<std::string> words;
  std::vector<Person> children;
  std::vector<std::optional<std::uint32_t>> scores;
  friend bool operator==(const Person& a, const Person& b) {
    return std::tie(a.name, a.age, a.mood, a.member, a.weight, a.born, a.pause, a.nick, a.contact,
                    a.marks, a.badge) == std::tie(b.name, b.age, b.mood, b.member, b.weight, b.born,
                                                  b.pause, b.nick, b.contact, b.marks, b.badge) &&
           std::equal(a.initials, a.initials + 3, b.initials) && a.seat == b.seat &&
           a.home == b.home && a.words == b.words && a.children == b.children &&
           a.scores == b.scores;
  }
};
template <>
struct Sample<Person> {
  static Person of(std::uint64_t i) {
    Person person;
    if (i == 0) return person;
    const auto text = [](std::uint64_t n) { return Sample<std::string>::of(n); };
    person.name = text(i);
    person.age = -static_cast<std::int32_t>(i);
    person.mood = i % 2 == 0 ? Mood::good : Mood::bad;
    person.member = i % 3 == 0;
    person.initials[1] = static_cast<char>('a' + i % 26);
    person.weight = static_cast<double>(i) / 8;
    person.born = std::chrono::sys_seconds(std::chrono::seconds(i * 86400));
    person.pause = std::chrono::milliseconds(i);
    if (i % 2 == 0) person.nick = text(i / 2);
    if (i % 3 == 1) person.contact = text(i + 1);
    if (i % 3 == 2) person.contact = Place{text(i + 2), static_cast<std::uint16_t>(i)};
    person.marks = {static_cast<std::uint16_t>(i), 0, static_cast<std::uint16_t>(i + 2)};
    person.badge = {static_cast<std::uint8_t>(i), text(i + 3)};
    person.seat = {static_cast<std::int64_t>(i) << 33, 'c'};
    person.home = {text(i + 4), std::nullopt};
    for (std::uint64_t n = 0; n < i % 5; ++n) person.words.push_back(text(i + n));
    for (std::uint64_t n = 0; n < i % 3; ++n) person.children.push_back(of((i + n) / 7));
    for (std::uint64_t n = 0; n < i % 4; ++n)
      person.scores.push_back(n % 2 == 0 ? std::optional<std::uint32_t>(i) : std::nullopt);
    return person;
  }
};
/// Changes a part that depends on what the value has.
inline Person changed(Person person) {
  switch (person.age % 6) {
    case 0: person.nick = person.nick ? std::nullopt : std::optional<std::string>("nick"); break;
    case -1: person.contact = static_cast<std::int32_t>(person.age); break;
    case -2: person.words.emplace_back("one word more"); break;
    case -3:
      if (!person.children.empty()) person.children.pop_back();
      person.home.floor = 3;
      break;
    case -4: person.scores.assign(9, person.age); break;
    default: person.name += '+'; person.words.clear();
  }
  --person.age;
  return person;
}

/// A key of several parts that has no operator<.
struct Address {
  std::string street;
  std::int16_t number = 0;
  friend bool operator==(const Address&, const Address&) = default;
};
/// A key with an order of its own: the larger number is first.
struct Ranked {
  std::int32_t rank = 0;
  std::string name;
  friend bool operator<(const Ranked& a, const Ranked& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.name < b.name;
  }
  friend bool operator==(const Ranked&, const Ranked&) = default;
};
template <>
struct Sample<Ranked> {
  static Ranked of(std::uint64_t i) {
    return {static_cast<std::int32_t>(i % 11) - 5, Sample<std::string>::of(i)};
  }
};
inline Ranked changed(Ranked value) { return ++value.rank, value; }
using NameAndNumber = std::pair<std::string, std::int32_t>;
template <>
struct Sample<NameAndNumber> {
  static NameAndNumber of(std::uint64_t i) {
    return {Sample<std::string>::of(i / 3), static_cast<std::int32_t>(i % 3) - 1};
  }
};
using Words = std::vector<std::string>;
template <>
struct Sample<Words> {
  static Words of(std::uint64_t i) {
    Words words;
    for (std::uint64_t n = 0; n < i % 6; ++n) words.push_back(Sample<std::string>::of(i + n / 2));
    return words;
  }
};
inline Words changed(Words words) {
  if (words.size() > 8) words.resize(1);
  words.emplace_back("more");
  return words;
}
/// Distinct numbers give distinct keys.
using Path = std::vector<std::uint16_t>;
template <>
struct Sample<Path> {
  static Path of(std::uint64_t i) {
    Path path;
    for (; i > 0; i /= 9) path.push_back(static_cast<std::uint16_t>(i % 9 * 300));
    return path;
  }
};
using Either = std::variant<std::uint32_t, std::string, std::monostate>;
template <>
struct Sample<Either> {
  static Either of(std::uint64_t i) {
    if (i % 3 == 0) return static_cast<std::uint32_t>(i);
    if (i % 3 == 1) return Sample<std::string>::of(i);
    return std::monostate();
  }
};
inline Either changed(const Either& either) {
  return either.index() == 1 ? Either(std::uint32_t{1}) : Either("some text of a fair length");
}
using Perhaps = std::optional<std::string>;
template <>
struct Sample<Perhaps> {
  static Perhaps of(std::uint64_t i) {
    return i == 0 ? Perhaps() : Perhaps(Sample<std::string>::of(i));
  }
};

/// The same, in the container's node.
struct Fixed {
  std::string name;
  std::uint64_t number = 0;
  friend bool operator==(const Fixed&, const Fixed&) = default;
};
template <>
struct Sample<Fixed> {
  static Fixed of(std::uint64_t i) { return {Sample<std::string>::of(i), i}; }
};
inline Fixed changed(Fixed value) { return ++value.number, value; }

/// The stand-in checks each byte of a value: it takes fewer steps.
struct SlowDramPolicy : DramPolicy {
  static constexpr int scale = 30;
};

}  // namespace perdure::test

template <>
inline constexpr bool perdure::fixed<perdure::test::Fixed> = true;
