// SPDX-License-Identifier: BSD-3-Clause
//
// A folder of a bucket in an S3-compatible store, for archives, backups and replicated logs
// (docs/s3.md). Each object is made by a PUT with If-None-Match: *, which the store carries out
// once for each name, however many clients send one.
// Thread safety: any thread may make all calls.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "perdure/backup/store.hpp"

namespace perdure::s3 {

struct BucketOptions {
  /// s3://BUCKET or s3://BUCKET/FOLDER. The bucket exists.
  std::string place;
  /// http://HOST:PORT or https://HOST of the store. Empty: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL,
  /// and AWS itself where neither is set.
  std::string endpoint;
  /// Empty: AWS_REGION, AWS_DEFAULT_REGION, or us-east-1.
  std::string region;
  /// Empty: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.
  std::string access_key, secret_key, session_token;
  /// How long a call waits while nothing moves, and how long it makes new attempts.
  std::chrono::milliseconds patience{30000};
  /// Whether something is to be written; otherwise the key may be one that can only read and list.
  bool writes = true;
};

/// Opens it. Before it is written, one object is made twice, as a test: a store that makes both, or
/// does not list it, is refused. Errors: `invalid` (the options), `unsupported` (such a store),
/// `not_found` (no bucket), `io`.
Result<std::shared_ptr<backup::Store>> open_bucket(const BucketOptions& options);

/// From here on, s3://... can be named wherever a folder of archives and backups can:
/// Options::archive, backup(), restore(). The rest is of the environment, as above.
void enable();

}  // namespace perdure::s3
