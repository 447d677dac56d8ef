// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure scrub POOL`: compares the pages of a pool with their checksums, beside the program that
// has it open, and says what of the pool's data a damaged page holds. With --fill and --accept it
// gives pages of a closed pool checksums.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "perdure/api/erased.hpp"
#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/inspect/blocks.hpp"
#include "perdure/inspect/dump.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/open_pool.hpp"
#include "perdure/pool/page_checksums.hpp"
#include "perdure/pool/scrub.hpp"
#include "perdure/pool/size_classes.hpp"
#include "tools/command.hpp"
#include "tools/inspected_pool.hpp"
#include "tools/json.hpp"
#include "tools/point_text.hpp"
#include "tools/text.hpp"
#include "tools/unmapped_pool.hpp"

namespace perdure::tool {
namespace {

constexpr std::uint64_t page_bytes = pool::PageChecksums::page_bytes;

PoolArguments arguments;
double rate = 0;
bool fill = false, accept = false;

// What of a field lies in a page.
struct Held {
  std::uint64_t parts = 0;  // blocks, keys and values
  bool keys = false;
  std::string first, last;  // keys, as JSON, in the container's order
};
// What lies in a damaged page.
struct Owners {
  std::vector<std::string> structures;  // of the heap's own
  std::map<std::string, Held> fields;
};

std::string json_of(inspect::Walker& walker, const inspect::Layout& type, inspect::Address at) {
  std::string text;
  inspect::JsonWriter out([&](std::string_view piece) { text += piece; });
  inspect::Dump(walker, out).value(type, at);
  out.flush();
  return text;
}

// Reads who owns what in the damaged pages. Damage may hide an owner.
class OwnerSearch {
 public:
  explicit OwnerSearch(const std::vector<DamagedPage>& pages) {
    for (const DamagedPage& page : pages) owners_[page.offset];
  }
  std::map<std::uint64_t, Owners> run() {
    InspectedPool opened(arguments);
    opened.view([&](inspect::Walker& walker, const inspect::Source& source) {
      pool::OpenPool& file = opened.pool().file();
      note_blocks(file);
      (void)inspect::find_blocks(walker, source.tree.root(), source.root,
                                 [&](const inspect::Part& part) { note(walker, part); });
    });
    return std::move(owners_);
  }

 private:
  // The directory, bitmaps, and the lengths of the blocks that reach into a damaged page.
  void note_blocks(pool::OpenPool& file) {
    const pool::Header& h = file.header();
    const pool::Directory directory(h);
    const std::byte* const data = file.following() ? file.view() : file.medium().data();
    for (auto& [offset, owners] : owners_) {
      const std::uint64_t chunk = offset / pool::chunk_bytes;
      if (directory.holds_words(chunk)) {
        owners.structures.emplace_back(offset == 0 ? "the first page" : "the heap's directory");
        continue;
      }
      pool::ChunkWord word;
      std::memcpy(&word, data + directory.word(chunk), sizeof word);
      if (word.kind() == pool::ChunkWord::free) owners.structures.emplace_back("a free chunk");
      if (word.kind() == pool::ChunkWord::small && offset % pool::chunk_bytes == 0 &&
          word.size_class() < pool::small_classes)
        owners.structures.push_back(
            fmt::format("the bitmap of blocks of {} bytes", pool::class_bytes(word.size_class())));
    }
    (void)pool::audit_heap(
        data, h,
        [&](std::uint64_t offset, std::uint64_t bytes) {
          if (any_in(offset, bytes)) blocks_[offset] = bytes;
        },
        file.known_holes());
    if (const auto root = blocks_.find(h.root_offset); root != blocks_.end())
      each_in(root->first, root->second, [](Owners& owners) {
        owners.structures.emplace_back("the root object or the catalog");
      });
  }
  void note(inspect::Walker& walker, const inspect::Part& part) {
    std::uint64_t bytes = part.bytes;
    if (bytes == 0) {
      const auto block = blocks_.find(part.offset);
      if (block == blocks_.end()) return;
      bytes = block->second;
    }
    each_in(part.offset, bytes, [&](Owners& owners) {
      Held& held = owners.fields[part.field];
      ++held.parts;
      if (part.key == nullptr) return;
      try {
        held.last = json_of(walker, *part.key, part.key_at);
        if (!std::exchange(held.keys, true)) held.first = held.last;
      } catch (const error& e) {
        if (e.code() != Code::corrupt) throw;  // the key itself is damaged
      }
    });
  }
  [[nodiscard]] bool any_in(std::uint64_t offset, std::uint64_t bytes) const {
    const auto first = owners_.lower_bound(offset / page_bytes * page_bytes);
    return first != owners_.end() && first->first < offset + bytes;
  }
  template <class F>
  void each_in(std::uint64_t offset, std::uint64_t bytes, F&& f) {
    for (auto it = owners_.lower_bound(offset / page_bytes * page_bytes);
         it != owners_.end() && it->first < offset + bytes; ++it)
      f(it->second);
  }

  std::map<std::uint64_t, Owners> owners_;  // by the offset of the page
  std::map<std::uint64_t, std::uint64_t> blocks_;
};

std::string text_of(const Owners& owners) {
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
  for (const std::string& one : owners.structures) add(one);
  for (const auto& [field, held] : owners.fields) {
    std::string keys;
    if (held.keys)
      keys = held.first == held.last ? ", key " + held.first
                                     : ", keys " + held.first + " to " + held.last;
    add(fmt::format("{}: {} part{}{}", field.empty() ? "root" : field, grouped(held.parts),
                    held.parts == 1 ? "" : "s", keys));
  }
  return text.empty() ? "nothing that is known by the pool's layout" : text;
}

Json json_of(const Owners& owners) {
  Json fields = Json::array();
  for (const auto& [field, held] : owners.fields) {
    Json one = {{"field", field}, {"parts", held.parts}};
    if (held.keys) {
      one["first_key"] = Json::parse(held.first);
      one["last_key"] = Json::parse(held.last);
    }
    fields.push_back(std::move(one));
  }
  return {{"structures", owners.structures}, {"fields", std::move(fields)}};
}

int give_checksums(App& app) {
  auto file = open_unmapped(arguments, false);
  (void)put_in_order(*file, arguments);
  const engine::EngineInfo* const entry =
      engine::find_family(std::string(pool::engine_name(file->header())));
  if (entry == nullptr || !entry->keeps_checksums)
    failure(Code::unsupported, arguments.path,
            "a pool of engine '" + std::string(pool::engine_name(file->header())) + "'",
            "one whose engine keeps checksums: shadow")
        .or_throw();
  if (!pool::PageChecksums::has(file->header())) {
    file = nullptr;
    file = open_unmapped(arguments, false);
    file->want_checksums();
    file->start_session(pool::ViewPolicy::none).or_throw();
    file->close_clean(file->header().checkpoint_id).or_throw();
  }
  file = nullptr;
  file = open_unmapped(arguments, false);
  const pool::FilledChecksums filled =
      pool::fill_checksums(*file, accept, show_bytes("checksums")).value();
  if (app.json)
    print_json({{"pool", arguments.path},
                {"had", filled.had},
                {"got", filled.got},
                {"accepted", filled.accepted}});
  else
    fmt::print("{} pages have a checksum: {} had it, {} got it, of {} it was replaced\n",
               grouped(filled.had + filled.got + filled.accepted), grouped(filled.had),
               grouped(filled.got), grouped(filled.accepted));
  return exit_ok;
}

int run(App& app) {
  if (fill || accept) return give_checksums(app);
  ScrubReport report;
  {
    ScrubOptions options;
    options.bytes_per_second = static_cast<std::uint64_t>(rate * 1e6);
    options.progress = show_bytes("scrub");
    report = pool::scrub(*open_unmapped_beside(arguments), options).value();
  }
  std::map<std::uint64_t, Owners> owners;
  std::string unknown;
  if (!report.ok()) {
    try {
      owners = OwnerSearch(report.damaged).run();
    } catch (const error& e) {
      unknown = e.what();
    }
  }
  if (app.json) {
    Json damaged = Json::array();
    for (const DamagedPage& page : report.damaged) {
      Json one = {{"offset", page.offset},
                  {"checksum", fmt::format("{:016x}", page.checksum)},
                  {"found", fmt::format("{:016x}", page.found)}};
      if (const auto of = owners.find(page.offset); of != owners.end())
        one["holds"] = json_of(of->second);
      damaged.push_back(std::move(one));
    }
    print_json({{"pool", arguments.path},
                {"ok", report.ok()},
                {"has_checksums", report.has_checksums},
                {"from_disk", report.from_disk},
                {"pages", report.pages},
                {"without", report.without},
                {"undecided", report.undecided},
                {"damaged", std::move(damaged)}});
  } else if (!report.has_checksums) {
    fmt::print(
        "the pool has no checksums; `perdure scrub --fill` gives a closed pool's pages "
        "theirs\n");
  } else {
    fmt::print(
        "{} pages compared ({}), {} in use have no checksum{}\n", grouped(report.pages),
        report.from_disk ? "from the disk" : "as the page cache has them", grouped(report.without),
        report.undecided == 0
            ? ""
            : fmt::format(", {} are decided by the pool's recovery", grouped(report.undecided)));
  }
  for (const DamagedPage& page : report.damaged) {
    fmt::print(stderr, "perdure: {}: damaged {}\n", arguments.path, pool::text_of(page));
    if (const auto of = owners.find(page.offset); of != owners.end())
      fmt::print(stderr, "perdure:   it holds {}\n", text_of(of->second));
  }
  if (!unknown.empty())
    fmt::print(stderr, "perdure:   what they hold can't be read: {}\n", unknown);
  if (!app.json && report.has_checksums)
    fmt::print("{}\n", report.ok() ? "no damage found"
                                   : fmt::format("damaged pages: {}", report.damaged.size()));
  return report.ok() ? exit_ok : exit_problem;
}

}  // namespace

void add_scrub(App& app) {
  auto sub = app.add("scrub",
                     "compare a pool's pages with their checksums, beside the program that has it",
                     "perdure scrub bank.perdure --rate 50");
  arguments.add_to(sub);
  sub.option("--rate", rate, "read at most this many MB/s (default: no limit)");
  sub.flag("--fill", fill,
           "of a pool that no program has open: give every page in use a checksum from what it "
           "holds; refused if a page is damaged");
  sub.flag("--accept", accept, "as --fill; damaged pages get the checksum of what they hold, too");
  sub.runs(run);
}

}  // namespace perdure::tool
