// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/directory.hpp"

#include "perdure/pool/features.hpp"

namespace perdure::pool {

// A build that does not know the feature compares data_bytes with max_data_bytes before it looks at
// the features. If max_data_bytes were the raised limit, or the limit at creation, it would report
// a damaged header.
std::uint64_t stated_max_bytes(const Header& header) noexcept {
  if (header.raised_max_bytes == 0) return header.max_data_bytes;
  return std::max(header.first_max_bytes,
                  (header.data_bytes + chunk_bytes - 1) / chunk_bytes * chunk_bytes);
}

void set_data_bytes(Header& header, std::uint64_t data_bytes) noexcept {
  header.data_bytes = data_bytes;
  // In a pool whose limit was not raised, max_data_bytes must not be stored to: other threads read
  // it.
  if (header.raised_max_bytes != 0) header.max_data_bytes = stated_max_bytes(header);
}

void raise_limit(Header& header, std::uint64_t max_data_bytes) noexcept {
  if (header.raised_max_bytes == 0) header.first_max_bytes = header.max_data_bytes;
  header.raised_max_bytes = max_data_bytes;
  set_feature(header, Feature::raised_limit);
}

}  // namespace perdure::pool
