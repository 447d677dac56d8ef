// SPDX-License-Identifier: BSD-3-Clause
//
// An S3-compatible server (SeaweedFS) on loopback with one bucket, as a child process that ends
// with the test.
// Thread safety: none.
#pragma once

#include <string>

#include "s3/bucket.hpp"
#include "tests/support/child_server.hpp"

namespace perdure::s3::test {

class Server {
 public:
  Server();  ///< returns when it answers and has the bucket "backups"
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// A place in a bucket, with all that is needed to open it.
  [[nodiscard]] BucketOptions at(const std::string& folder,
                                 const std::string& bucket = "backups") const;

 private:
  struct Folder {
    Folder();
    ~Folder();
    std::string path;
  } folder_;
  std::string endpoint_;
  perdure::test::ChildServer process_;
};

}  // namespace perdure::s3::test
