// SPDX-License-Identifier: BSD-3-Clause
#include "s3/lock.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "perdure/base/descriptor.hpp"
#include "perdure/base/process.hpp"
#include "perdure/replication/self_test.hpp"

namespace perdure::s3 {
namespace {

using Use = backup::Store::Use;

// A process, as others can find it again.
struct Owner {
  std::string host, machine, boot, processes;  // the last: its numbers' namespace
  long process = 0;
  std::uint64_t began = 0;  // base::process_start()

  [[nodiscard]] std::string text() const {
    return host + " " + machine + " " + boot + " " + processes + " " + std::to_string(process) +
           " " + std::to_string(began) + "\n";
  }
  static Owner of(const std::string& text) {
    Owner o;
    std::istringstream(text) >> o.host >> o.machine >> o.boot >> o.processes >> o.process >>
        o.began;
    return o;
  }
};

std::string first_line(const std::string& path) {
  std::string text = base::read_whole_file(path);
  text.resize(std::min(text.size(), text.find('\n')));
  return text.empty() ? "-" : text;
}

Owner this_process() {
  Owner o;
  std::array<char, 256> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  o.host = host[0] == '\0' ? "-" : host.data();
  o.machine = first_line("/etc/machine-id");
  o.boot = first_line("/proc/sys/kernel/random/boot_id");
  std::array<char, 64> link{};
  const ssize_t n = ::readlink("/proc/self/ns/pid", link.data(), link.size() - 1);
  o.processes = n > 0 ? link.data() : "-";
  o.process = ::getpid();
  o.began = base::process_start(o.process);
  return o;
}

// Whether the process has ended, as far as this one can know.
bool ended(const Owner& of, const Owner& me) {
  if (of.host != me.host || of.machine != me.machine || of.machine == "-") return false;
  if (of.boot != me.boot) return true;
  return of.processes == me.processes && !base::process_runs(of.process, of.began);
}

// Names begin so: of what is held, and of what excludes it.
constexpr std::string_view log_names = ".lock-log-", shared_names = ".lock-chunks-shared-",
                           alone_names = ".lock-chunks-alone-", chunk_names = ".lock-chunks-";
std::string_view own_names(Use use) {
  return use == Use::log ? log_names : use == Use::chunks ? shared_names : alone_names;
}
std::string_view others_names(Use use) {
  return use == Use::log ? log_names : use == Use::chunks ? alone_names : chunk_names;
}

class Lock {
 public:
  Lock(std::shared_ptr<Client> client, std::string key)
      : client_(std::move(client)), key_(std::move(key)) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    if (::getpid() != process_) return;  // in a forked child it is the parent's
    try {
      (void)client_->send({.method = "DELETE", .key = key_});
    } catch (...) {  // it is found to have ended
    }
  }

 private:
  const std::shared_ptr<Client> client_;
  const std::string key_;
  const pid_t process_ = ::getpid();
};

}  // namespace

Result<std::shared_ptr<void>> take_lock(std::shared_ptr<Client> client, const std::string& prefix,
                                        const std::string& place, Use use) {
  const Owner me = this_process();
  const std::string mine = std::string(own_names(use)) + replication::random_name(),
                    text = me.text();
  // S3LOCK-1
  auto lock = std::make_shared<Lock>(client, prefix + mine);
  const Answer made =
      client->send({.method = "PUT", .key = prefix + mine, .bytes = text.data(), .n = text.size()});
  if (!made.ok()) return failed(place, "PUT of " + mine, made);
  auto others = list_names(*client, prefix, std::string(others_names(use)), place);
  if (!others) return others.status();
  for (const std::string& other : *others) {
    if (other == mine) continue;
    const Answer found = client->send({.key = prefix + other});
    if (found.status == 404) continue;  // released meanwhile
    if (!found.ok()) return failed(place, "GET of " + other, found);
    const Owner owner = Owner::of(found.body);
    if (ended(owner, me)) {
      (void)client->send({.method = "DELETE", .key = prefix + other});
      continue;
    }
    return failure(
        Code::busy, place,
        "a lock of process " + std::to_string(owner.process) + " on " + owner.host,
        use == Use::log ? "one open pool that writes the archive"
                        : "no backup that begins and no `prune` at the same time",
        "try again when it has ended; if it is gone for good, remove the object " + prefix + other);
  }
  return std::shared_ptr<void>(std::move(lock));
}

}  // namespace perdure::s3
