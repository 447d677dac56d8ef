// SPDX-License-Identifier: BSD-3-Clause
#include "tests/s3/server.hpp"

#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "s3/client.hpp"
#include "tests/support/comes.hpp"

namespace perdure::s3::test {
namespace {

constexpr const char* key = "perdure";
constexpr const char* secret = "secret";

std::vector<std::string> command(const std::string& folder, const std::vector<int>& ports) {
  std::vector<std::string> words = {perdure::test::program_of("PERDURE_S3_SERVER"),
                                    "server",
                                    "-s3",
                                    "-ip=127.0.0.1",
                                    "-ip.bind=127.0.0.1",
                                    "-s3.autoCreateBucket=false",
                                    "-volume.max=50",
                                    "-master.volumeSizeLimitMB=64",
                                    "-dir=" + folder,
                                    "-s3.config=" + folder + "/accounts"};
  std::size_t next = 0;
  for (const char* const part : {"s3", "master", "volume", "filer"})
    for (const char* const end : {".port=", ".port.grpc="})
      words.push_back("-" + std::string(part) + end + std::to_string(ports[next++]));
  return words;
}

}  // namespace

Server::Folder::Folder() : path(std::filesystem::temp_directory_path() / "perdure-s3-XXXXXX") {
  if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error(path + ": mkdtemp");
  std::ofstream(path + "/accounts")
      << R"({"identities": [{"name": "perdure", "actions": ["Admin", "Read", "Write", "List"],
           "credentials": [{"accessKey": ")"
      << key << R"(", "secretKey": ")" << secret << R"("}]}]})";
}

Server::Folder::~Folder() { std::filesystem::remove_all(path); }

Server::Server()
    : process_([this] {
        const std::vector<int> ports = perdure::test::free_ports(8);
        endpoint_ = "http://127.0.0.1:" + std::to_string(ports[0]);
        return perdure::test::ChildServer(command(folder_.path, ports), folder_.path + "/log");
      }()) {
  ::setenv("no_proxy", "127.0.0.1", 1);
  process_.start();
  const auto made = [&] {
    Client client({.url = endpoint_ + "/backups",
                   .region = "us-east-1",
                   .access_key = key,
                   .secret_key = secret,
                   .session_token = {},
                   .patience = std::chrono::seconds(1)});
    const long status = client.send({.method = "PUT"}).status;
    return status == 200 || status == 409;
  };
  if (!perdure::test::comes(made)) throw std::runtime_error("the S3 server does not come up");
}

BucketOptions Server::at(const std::string& folder, const std::string& bucket) const {
  BucketOptions o;
  o.place = "s3://" + bucket + (folder.empty() ? "" : "/" + folder);
  o.endpoint = endpoint_;
  o.access_key = key;
  o.secret_key = secret;
  return o;
}

}  // namespace perdure::s3::test
