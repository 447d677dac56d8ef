// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/hash.hpp"

#include <new>

#define XXH_INLINE_ALL  // nothing to link
#include <xxhash.h>

#if XXH_VERSION_NUMBER < 800
#error "perdure: found xxhash before 0.8.0, expected 0.8.0 or newer, since which XXH3 is fixed"
#endif

namespace perdure::backup {
namespace {

Hash from(XXH128_hash_t h) noexcept { return {h.low64, h.high64}; }

}  // namespace

std::string Hash::text() const {
  constexpr char digits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (unsigned i = 0; i < 16; ++i) {
    text[15 - i] = digits[high >> 4 * i & 15];
    text[31 - i] = digits[low >> 4 * i & 15];
  }
  return text;
}

Hash hash_of(const void* bytes, std::uint64_t n) noexcept { return from(XXH3_128bits(bytes, n)); }

Hash hash_of(const void* a, std::uint64_t na, const void* b, std::uint64_t nb, const void* c,
             std::uint64_t nc) {
  struct State {
    XXH3_state_t* state = XXH3_createState();
    State() {
      if (state == nullptr) throw std::bad_alloc();
    }
    ~State() { XXH3_freeState(state); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
  } const s;
  XXH3_128bits_reset(s.state);
  XXH3_128bits_update(s.state, a, na);
  XXH3_128bits_update(s.state, b, nb);
  XXH3_128bits_update(s.state, c, nc);
  return from(XXH3_128bits_digest(s.state));
}

}  // namespace perdure::backup
