// SPDX-License-Identifier: BSD-3-Clause
// A stranger's program that restores from a bucket: without a place, it is told what is missing.
#include <cstdio>
#include <perdure.hpp>
#include <perdure/backup/restore.hpp>
#include <s3/bucket.hpp>

int main() {
  perdure::s3::enable();
  try {
    perdure::restore("s3://", "none.perdure");
  } catch (const perdure::error& e) {
    std::printf("refused: %s\n", e.what());
    return e.code() == perdure::Code::invalid ? 0 : 1;
  }
}
