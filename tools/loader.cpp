// SPDX-License-Identifier: BSD-3-Clause
#include "tools/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tools/text.hpp"

namespace perdure::tool {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

std::string absolute(const std::string& path) {
  std::error_code failed;
  const auto full = std::filesystem::absolute(path, failed);
  return failed ? path : full.string();
}

// The backups of a load, each begun when the load has reached its part of the file.
class Backups {
 public:
  Backups(const LoadOptions& options, std::uint64_t bytes, std::uint64_t position)
      : options_(options), bytes_(bytes) {
    while (left() && position > 0 && position >= due()) ++next_;
    for (std::uint64_t n = next_; n <= options.backups && options.archive.empty(); ++n)
      if (std::filesystem::exists(name(n)))
        failure(Code::exists, name(n), "a file of that name", "none: a backup replaces no file",
                "remove it, or load without --backups; no row was loaded")
            .or_throw();
  }
  void reached(StorePool& pool, const LoadResult& so_far, Progress& progress) {
    for (; left() && so_far.position >= due(); ++next_) {
      finish_last();
      const MadeBackup made{name(next_), so_far.rows, so_far.position};
      writing_ = options_.archive.empty() ? pool.back_up(made.path) : pool.back_up_to_archive();
      made_.push_back(made);
      progress.event("backup",
                     {{"path", made.path}, {"rows", made.rows}, {"position", made.position}});
    }
  }
  std::vector<MadeBackup> finish() {
    finish_last();
    return std::move(made_);
  }

 private:
  [[nodiscard]] std::string name(std::uint64_t n) const {
    return options_.archive.empty() ? fmt::format("{}.backup-{}", options_.backup_name, n)
                                    : options_.archive;
  }
  // One backup is written at a time.
  void finish_last() {
    if (!writing_.valid()) return;
    std::future<void> last = std::move(writing_);  // it ends with its snapshot
    try {
      last.get();
    } catch (const error& e) {
      throw error(Status(e.code(), std::string(e.what()) +
                                       "; the rows that are loaded stay: load again to go on"));
    }
  }
  [[nodiscard]] bool left() const { return next_ <= options_.backups; }
  [[nodiscard]] std::uint64_t due() const { return bytes_ / (options_.backups + 1) * next_; }
  const LoadOptions& options_;
  const std::uint64_t bytes_;
  std::uint64_t next_ = 1;
  std::future<void> writing_;
  std::vector<MadeBackup> made_;
};

}  // namespace

Loader::Loader(LoadOptions options)
    : options_(std::move(options)),
      file_(SourceFile::open(options_.file).value()),
      identity_(file_.identity().value()) {}

Spec Loader::chosen() {
  return resolve(options_.spec, options_.file, file_.first_bytes(65536).value()).value();
}

void Loader::rehearse() {
  RecordReader reader(file_, chosen());
  reader.begin().or_throw();
  Record record;
  (void)reader.next(record).value();
}

// The pool does not have a source yet: this file becomes its source, in one durable transaction
// before the first row.
void Loader::start(StorePool& pool, const SourceState&) {
  reader_.emplace(file_, chosen());
  reader_->begin().or_throw();
  SourceState state;
  state.begun = true;
  state.path = absolute(options_.file);
  state.spec = reader_->spec().to_json();
  state.prologue = reader_->prologue();
  state.identity = identity_;
  state.position = reader_->position();
  state.line = reader_->line();
  pool.begin_source(state);
}

// Checks that this is the file that the pool was begun with, cut in the same way. Throws an error
// that names the difference.
void Loader::compare(StorePool& pool, const SourceState& state) {
  const std::string advice =
      fmt::format("the pool holds {} rows of {}: load that file again to go on, or name a new pool",
                  grouped(state.rows), state.path);
  if (identity_.size != state.identity.size) {
    failure(Code::invalid, options_.file, fmt::format("{} bytes", grouped(identity_.size)),
            fmt::format("the {} bytes of the file that this pool was begun with",
                        grouped(state.identity.size)),
            advice)
        .or_throw();
  }
  if (identity_.hash != state.identity.hash) {
    std::string where = "somewhere behind what is loaded";
    if (state.edits != 0)
      where = "somewhere";  // rows were changed by hand: they say nothing about the file
    else {
      file_.seek(0);
      std::uint64_t line = 1;
      const auto same = [&](std::string_view bytes) {
        while (file_.window().size() < bytes.size() && file_.more()) {}
        if (!file_.window().starts_with(bytes)) return false;
        file_.consume(bytes.size());
        line += static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
        return true;
      };
      const auto differs = [&] { where = fmt::format("in the record at line {}", line); };
      if (!same(state.prologue))
        differs();
      else
        pool.each_row([&](const StoredRow& row) {
          if (same(row.bytes)) return true;
          differs();
          return false;
        });
    }
    failure(
        Code::invalid, options_.file,
        fmt::format("content {:016x}, which differs {}", identity_.hash, where),
        fmt::format("content {:016x}, of the file that this pool was begun with (the sizes agree)",
                    state.identity.hash),
        advice)
        .or_throw();
  }
  const Spec have = Spec::from_json(state.spec).value();
  if (const std::string text = difference(have, options_.spec); !text.empty()) {
    failure(Code::invalid, options_.file, text + " as when this pool was begun", "",
            "leave these options out: the pool remembers them (" + have.describe() + ")")
        .or_throw();
  }
}

// Cuts the next batch; false when the file has no more records.
bool Loader::fill(RecordReader& reader) {
  batch_.clear();
  std::size_t bytes = 0;
  Record record;
  while (batch_.size() < options_.batch_rows && bytes < options_.batch_bytes) {
    if (!reader.next(record).value()) break;
    batch_.push_back({std::move(record.key), std::string(record.raw), record.line,
                      reader.position(), reader.line()});
    bytes += batch_.back().bytes.size();
  }
  return !batch_.empty();
}

// Appends rows; a batch that is too big for the log is split into halves. A repeat's index counts
// from `done` rows before this part.
std::optional<Repeat> Loader::append(StorePool& pool, std::span<const BatchRow> batch,
                                     std::size_t done) {
  try {
    auto repeat = pool.append(batch);
    if (repeat) repeat->index += done;
    return repeat;
  } catch (const error& e) {
    if (e.code() != Code::too_big) throw;
    if (batch.size() == 1) {
      failure(Code::too_big, fmt::format("{}:{}", options_.file, batch[0].line),
              human_bytes(batch[0].bytes.size()) + " in one row", e.what(),
              "load into a new pool with a larger --log-size")
          .or_throw();
    }
  }
  const std::size_t half = batch.size() / 2;
  if (auto repeat = append(pool, batch.first(half), done)) return repeat;
  return append(pool, batch.subspan(half), done + half);
}

LoadResult Loader::run(StorePool& pool, Progress& progress) {
  SourceState state = pool.source();
  const bool resumed = state.begun;
  if (!resumed) {
    start(pool, state);
    state = pool.source();
  } else {
    compare(pool, state);
    reader_.emplace(file_, Spec::from_json(state.spec).value());
    reader_->resume(state.position, state.line);
  }
  LoadResult result;
  result.spec = reader_->spec();
  result.rows_before = result.rows = state.rows;
  result.position = state.position;
  result.was_complete = state.complete;
  const std::uint64_t from = resumed ? state.position : 0;
  progress.start(state.rows, state.position);
  if (state.complete) return result;

  Backups backups(options_, identity_.size, result.position);
  const auto begun = Clock::now();
  const auto settle = [&](std::size_t in_flight) {
    if (const auto s = pool.settle(in_flight); s.any) progress.durable(s.rows, s.position);
  };
  while (!result.repeated && fill(*reader_)) {
    std::optional<Repeat> repeat = append(pool, batch_);
    while (repeat) {
      // No row of that batch was appended: append the rows before the repeated key.
      const BatchRow& row = batch_[repeat->index];
      result.repeated = RepeatedKey{row.key, row.line, repeat->other_line};
      batch_.resize(repeat->index);
      // Halves that were appended before.
      const auto already = static_cast<std::size_t>(pool.source().rows - result.rows);
      repeat = already < batch_.size() ? append(pool, std::span(batch_).subspan(already), already)
                                       : std::nullopt;
    }
    result.rows += batch_.size();
    if (!batch_.empty()) result.position = batch_.back().end_position;
    settle(options_.max_in_flight);
    backups.reached(pool, result, progress);
  }
  if (!result.repeated) {
    if (reader_->position() != identity_.size) {
      failure(Code::io, options_.file, fmt::format("an end at byte {}", reader_->position()),
              fmt::format("byte {}", identity_.size),
              "the file changed while it was loaded: load the unchanged file again, it goes on "
              "where it was cut")
          .or_throw();
    }
    pool.finish_source(reader_->epilogue(), reader_->position(), reader_->line());
    result.position = reader_->position();
  }
  settle(0);
  result.backups = backups.finish();
  result.bytes = result.position - from;
  result.seconds = since(begun);
  return result;
}

}  // namespace perdure::tool
