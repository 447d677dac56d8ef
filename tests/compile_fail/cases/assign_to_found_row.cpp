// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: assignment of member .*age.* in read-only object|cannot assign to
//
// What find() returns is a copy: a change of it would be lost.
#include "../common.hpp"

struct Person {
  std::uint64_t id = 0;
  int age = 0;
};
struct People {
  perdure::table<Person, perdure::key<&Person::id>> people;
};

int main() {
  auto pool = perdure::Pool<People>::open("never-run.perdure");
  pool.update([](auto& tx, People& root) {
#ifdef PERDURE_CONTROL
    root.people.update(tx, 1, [](Person& person) { person.age = 7; });
    auto copy = root.people.find(tx, 1);
    if (copy) copy->age = 8;
#else
    root.people.find(tx, 1)->age = 7;
#endif
  });
}
