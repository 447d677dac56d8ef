// SPDX-License-Identifier: BSD-3-Clause
//
// kv FILE put KEY VALUE | get KEY | del KEY | list [FROM]: an ordered key-value store in one file,
// in sixty lines.
//
// put and del are durable when the program ends. get and list open the file read-only, so several
// of them may run at once.
#include <perdure.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace {

struct Store {
  perdure::map<std::string, std::string> entries;
};
using Pool = perdure::Pool<Store>;

int usage() {
  return std::fprintf(stderr, "usage: kv FILE put KEY VALUE | get KEY | del KEY | list [FROM]\n"),
         2;
}

int run(const std::vector<std::string>& arg) {
  if (arg.size() < 2) return usage();
  const std::string &file = arg[0], &command = arg[1];
  const bool reads = command == "get" || command == "list";
  auto pool =
      Pool::open(file, {.create = !reads,
                        .read_only = reads,
                        .creation = {.max_size = std::uint64_t{1} << 30, .log_size = 4 << 20}});

  if (command == "put" && arg.size() == 4) {
    pool.update([&](auto& tx, Store& store) { store.entries.put(tx, arg[2], arg[3]); });
    return 0;
  }
  if (command == "del" && arg.size() == 3) {
    const auto erased =
        pool.update([&](auto& tx, Store& store) { return store.entries.erase(tx, arg[2]); });
    return erased.value() ? 0 : 1;
  }
  if (command == "get" && arg.size() == 3) {
    const auto value =
        pool.view([&](auto& tx, const Store& store) { return store.entries.find(tx, arg[2]); });
    if (!value) return std::fprintf(stderr, "kv: no key '%s'\n", arg[2].c_str()), 1;
    std::printf("%s\n", value->c_str());
    return 0;
  }
  if (command == "list" && arg.size() <= 3) {
    const auto found = pool.view([&](auto& tx, const Store& store) {
      std::vector<std::pair<std::string, std::string>> all;
      store.entries.scan(
          tx, arg.size() == 3 ? arg[2] : std::string(),
          [&](const std::string& key, const std::string& value) { all.emplace_back(key, value); });
      return all;
    });
    for (const auto& [key, value] : found) std::printf("%s\t%s\n", key.c_str(), value.c_str());
    return 0;
  }
  return usage();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const perdure::error& e) {
    return std::fprintf(stderr, "kv: %s\n", e.what()), 1;
  }
}
