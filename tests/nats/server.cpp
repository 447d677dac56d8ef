// SPDX-License-Identifier: BSD-3-Clause
#include "tests/nats/server.hpp"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace perdure::nats::test {

Servers::Servers(int n, bool always)
    : folder_(std::filesystem::temp_directory_path() / "perdure-nats-XXXXXX") {
  if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error(folder_ + ": mkdtemp");
  const auto count = static_cast<std::size_t>(n);
  ports_ = perdure::test::free_ports(2 * count);
  std::string routes;
  for (std::size_t i = 0; i < count; ++i)
    routes += (i == 0 ? "nats-route://127.0.0.1:" : ", nats-route://127.0.0.1:") +
              std::to_string(ports_[count + i]);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = "server" + std::to_string(i), folder = folder_ + "/" + name,
                      file = folder + "/config";
    std::filesystem::create_directory(folder);
    servers_.emplace_back(
        std::vector{perdure::test::program_of("PERDURE_NATS_SERVER"), std::string("-c"), file},
        file + ".log");
    std::ofstream config(file);
    config << "server_name: " << name << "\nlisten: 127.0.0.1:" << ports_[i]
           << "\njetstream { store_dir: \"" << folder
           << "\", sync_interval: " << (always ? "always" : "2m") << ", max_file: 1G }\n"
           << "accounts { app: { jetstream: enabled, users: [ { user: app, password: app } ] }\n"
           << "  $SYS: { users: [ { user: system, password: secret } ] } }\nno_auth_user: app\n";
    if (count > 1)
      config << "cluster { name: perdure, listen: 127.0.0.1:" << ports_[count + i] << ", routes: [ "
             << routes << " ] }\n";
    urls_ += (i == 0 ? "" : ",") + url(static_cast<int>(i));
  }
  for (int i = 0; i < n; ++i) start(i);
}

std::string Servers::url(int i) const {
  return "nats://127.0.0.1:" + std::to_string(ports_[static_cast<std::size_t>(i)]);
}

std::string Servers::log(const std::string& stream) const {
  std::string urls = urls_;
  const std::string again = ",nats://";
  for (std::size_t at; (at = urls.find(again)) != std::string::npos;)
    urls.replace(at, again.size(), ",");
  return urls + "/" + stream;
}

Servers::~Servers() {
  servers_.clear();
  std::filesystem::remove_all(folder_);
}

}  // namespace perdure::nats::test
