// SPDX-License-Identifier: BSD-3-Clause
#include "tools/load_dump.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "perdure/base/descriptor.hpp"
#include "perdure/inspect/load_pool.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/progress.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

/// A file that is read from its beginning to its end; "-" is standard input.
class InputFile {
 public:
  explicit InputFile(const std::string& path)
      : name_(path == "-" ? "standard input" : path),
        fd_(path == "-" ? STDIN_FILENO : base::open_file(path.c_str(), O_RDONLY)) {
    if (fd_ < 0) throw error(system_failure(path, "open", errno));
  }
  ~InputFile() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::size_t read(char* to, std::size_t n) {
    while (true) {
      const ssize_t got = ::read(fd_, to, n);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) throw error(system_failure(name_, "read", errno));
    }
  }
  /// The size of the file; 0 if it is not known.
  [[nodiscard]] std::uint64_t bytes() const {
    struct stat st = {};
    return ::fstat(fd_, &st) == 0 && S_ISREG(st.st_mode) ? static_cast<std::uint64_t>(st.st_size)
                                                         : 0;
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_;
  int fd_;
};

}  // namespace

int load_dump(App& app, const PoolArguments& pool, const DumpToLoad& dump, const std::string& file,
              const std::string& progress) {
  const auto begun = std::chrono::steady_clock::now();
  if (dump.schema == "-" && file == "-")
    throw UsageError("both SCHEMA and FILE are standard input");
  inspect::LoadOptions options;
  {
    const InputFile schema(dump.schema);
    options.schema = read_all(schema.fd(), schema.name());
    options.schema_name = schema.name();
  }
  options.lines = dump.lines;
  options.pool.medium = pool.medium;
  options.pool.medium_options.direct = !pool.no_direct;
  options.pool.engine = pool.engine;
  if (pool.max_size != 0) options.pool.creation.max_size = pool.max_size;
  options.pool.creation.log_size = pool.log_size != 0 ? pool.log_size : std::uint64_t{16} << 20;

  InputFile input(file);
  inspect::JsonReader in([&](char* to, std::size_t n) { return input.read(to, n); }, input.name());
  std::optional<Progress> shown(std::in_place, progress, input.bytes(), "entries");
  shown->start(0, 0);
  options.progress = [&](std::uint64_t entries) { shown->durable(entries, in.position()); };
  const inspect::LoadedPool loaded = inspect::load_pool(pool.path, options, in);
  shown.reset();  // before anything else is printed
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (app.json)
    print_json({{"pool", pool.path},
                {"file", file},
                {"schema", dump.schema},
                {"entries", loaded.entries},
                {"blocks", loaded.blocks},
                {"bytes_loaded", in.position()},
                {"seconds", seconds},
                {"engine", loaded.stats.engine},
                {"commits", loaded.stats.commits}});
  else
    fmt::print("loaded {} entries, {}, in {:.2f} s; the pool was checked: {} blocks\n",
               grouped(loaded.entries), human_bytes(in.position()), seconds,
               grouped(loaded.blocks));
  return exit_ok;
}

}  // namespace perdure::tool
