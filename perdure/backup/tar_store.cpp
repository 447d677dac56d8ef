// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/tar_store.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <set>
#include <utility>
#include <vector>

#include "perdure/backup/base.hpp"

namespace perdure::backup {
namespace {

constexpr std::size_t block = 512;

// A file's header in a tar archive. Numbers are octal text.
struct TarHeader {
  char name[100];
  char mode[8], uid[8], gid[8];
  char size[12], mtime[12];
  char checksum[8];
  char kind;
  char link[100];
  char magic[6], version[2];
  char user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
static_assert(sizeof(TarHeader) == block);

void set_octal(char* field, std::size_t digits, std::uint64_t n) {
  for (std::size_t i = digits; i-- > 0; n /= 8) field[i] = static_cast<char>('0' + n % 8);
}

// The sum of the header's bytes, with the sum itself as spaces.
unsigned sum_of(TarHeader header) {
  std::memset(header.checksum, ' ', sizeof header.checksum);
  unsigned sum = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&header);
  for (std::size_t i = 0; i < block; ++i) sum += bytes[i];
  return sum;
}

const std::string stream = "the stream";

Status write_all(int fd, const void* bytes, std::size_t n) {
  for (std::size_t at = 0; at < n;) {
    const ssize_t w = ::write(fd, static_cast<const char*>(bytes) + at, n - at);
    if (w < 0 && errno == EINTR) continue;
    if (w < 0) return system_failure(stream, "write", errno);
    at += static_cast<std::size_t>(w);
  }
  return {};
}

// Returns false at the end of the stream, if not a byte of these is there.
Result<bool> read_all(int fd, void* bytes, std::size_t n) {
  for (std::size_t at = 0; at < n;) {
    const ssize_t r = ::read(fd, static_cast<char*>(bytes) + at, n - at);
    if (r < 0 && errno == EINTR) continue;
    if (r < 0) return system_failure(stream, "read", errno);
    if (r == 0 && at == 0) return false;
    if (r == 0)
      return failure(Code::corrupt, stream, "an end within a file", "a whole backup",
                     "send it again");
    at += static_cast<std::size_t>(r);
  }
  return true;
}

class Writing final : public TarStore {
 public:
  explicit Writing(int fd) : fd_(fd) {}
  Result<bool> put(const std::string& name, const void* bytes, std::uint64_t n) override {
    if (!names_.insert(name).second) return false;
    TarHeader h{};
    std::memcpy(h.name, name.data(), std::min(name.size(), sizeof h.name - 1));
    set_octal(h.mode, 7, 0600);
    set_octal(h.uid, 7, 0);
    set_octal(h.gid, 7, 0);
    set_octal(h.size, 11, n);
    set_octal(h.mtime, 11, static_cast<std::uint64_t>(std::time(nullptr)));
    h.kind = '0';
    std::memcpy(h.magic, "ustar", 6);
    std::memset(h.version, '0', sizeof h.version);
    set_octal(h.checksum, 6, sum_of(h));
    h.checksum[7] = ' ';
    const char zeros[block] = {};
    if (Status s = write_all(fd_, &h, sizeof h); !s.ok()) return s;
    if (Status s = write_all(fd_, bytes, n); !s.ok()) return s;
    if (Status s = write_all(fd_, zeros, (block - n % block) % block); !s.ok()) return s;
    return true;
  }
  Result<bool> has(const std::string& name) override { return names_.count(name) != 0; }
  Result<std::vector<std::byte>> get(const std::string& name) override { return none(name); }
  Result<std::vector<std::string>> list(std::string_view) override {
    return std::vector<std::string>();
  }
  Status remove(const std::string& name) override { return none(name); }
  Result<std::shared_ptr<void>> lock(Use) override { return std::shared_ptr<void>(); }
  [[nodiscard]] const std::string& name() const noexcept override { return stream; }
  Status finish() override {
    const char zeros[2 * block] = {};
    return write_all(fd_, zeros, sizeof zeros);
  }

 private:
  static Status none(const std::string& name) {
    return failure(Code::unsupported, stream, "a look at " + name, "writing only", "use a folder");
  }
  const int fd_;
  std::set<std::string> names_;
};

// The names that backups have: nothing that leads out of the folder.
bool is_ours(const std::string& name) {
  return !name.empty() && name.front() != '/' && name.find("..") == std::string::npos &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-/") == std::string::npos;
}

}  // namespace

std::shared_ptr<TarStore> TarStore::on(int fd) { return std::make_shared<Writing>(fd); }

Status unpack(int fd, Store& store) {
  std::vector<std::byte> bytes;
  const std::unique_ptr<Store::Batch> batch = store.batch();
  for (;;) {
    TarHeader h{};
    auto more = read_all(fd, &h, sizeof h);
    if (!more) return more.status();
    const auto bad = [](const std::string& what) {
      return failure(Code::corrupt, stream, what, "a backup as `perdure backup POOL -` writes it",
                     "send it again");
    };
    if (!*more) return bad("an end without the mark of one");
    if (h.name[0] == 0) {  // the end: two blocks of zeros
      more = read_all(fd, &h, sizeof h);
      if (!more) return more.status();
      if (!*more) return bad("an end without the whole mark of one");
      break;
    }
    std::uint64_t sum = 0, n = 0;
    for (std::size_t i = 0; i < 6 && h.checksum[i] >= '0' && h.checksum[i] <= '7'; ++i)
      sum = sum * 8 + static_cast<std::uint64_t>(h.checksum[i] - '0');
    for (std::size_t i = 0; i < 11 && h.size[i] >= '0' && h.size[i] <= '7'; ++i)
      n = n * 8 + static_cast<std::uint64_t>(h.size[i] - '0');
    if (sum != sum_of(h)) return bad("a file's header that fails its check");
    std::string name(h.name, strnlen(h.name, sizeof h.name));
    if (name.starts_with("./")) name.erase(0, 2);
    if (h.kind == '5' || name.empty()) continue;  // a folder, where tar has packed a folder
    // Of a folder that was packed: its locks, and files without their names.
    const bool hidden = name[name.rfind('/') + 1] == '.';
    if (!is_ours(name) && !hidden) return bad("a file named '" + name + "'");
    if (h.kind != '0' && h.kind != 0) return bad("an entry '" + name + "' that is no file");
    bytes.clear();
    std::byte rest[block];
    // In pieces: the length may be wrong.
    for (std::uint64_t at = 0; at < n; at = bytes.size()) {
      const std::uint64_t piece = std::min<std::uint64_t>(n - at, 1 << 20);
      bytes.resize(at + piece);
      more = read_all(fd, bytes.data() + at, piece);
      if (!more) return more.status();
      if (!*more) return bad("an end within a file");
    }
    if (const std::size_t pad = (block - n % block) % block; pad != 0) {
      more = read_all(fd, rest, pad);
      if (!more) return more.status();
    }
    if (hidden) continue;
    // BASE-1: the chunks come first.
    if (name.starts_with(base_prefix))
      if (Status s = batch->flush(); !s.ok()) return s;
    if (Status s = batch->put(name, bytes.data(), n); !s.ok()) return s;
  }
  return batch->flush();
}

}  // namespace perdure::backup
