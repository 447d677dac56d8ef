// SPDX-License-Identifier: BSD-3-Clause
#include "bench/systems/pmem_delays.hpp"

#include <dlfcn.h>
#include <libpmem.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "perdure/medium/delay.hpp"

namespace {

std::unique_ptr<perdure::medium::ModelDelay> delay;
std::string delay_name;

// The function of that name in libpmem itself.
template <class F>
F* real(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();  // libpmemobj needs it, so the loader must have found it
  return reinterpret_cast<F*>(found);
}

void written(const void* address, std::size_t n) {
  if (!delay || n == 0) return;
  const auto first = reinterpret_cast<std::uintptr_t>(address) / 64,
             last = (reinterpret_cast<std::uintptr_t>(address) + n - 1) / 64;
  delay->written(first, last - first + 1);
}
void drained() {
  if (delay) delay->fenced();
}
void copied(const void* address, std::size_t n, unsigned flags) {
  if ((flags & PMEM_F_MEM_NOFLUSH) != 0) return;
  written(address, n);
  if ((flags & PMEM_F_MEM_NODRAIN) == 0) drained();
}

}  // namespace

namespace bench {

void set_pmem_delays(const std::string& name) {
  const auto delays = perdure::medium::Delays::named(name).value();
  delay_name = delays.none() ? "" : ", delays " + name;
  if (!delays.none()) delay = std::make_unique<perdure::medium::ModelDelay>(delays);
}
std::string pmem_delays_text() { return delay_name; }

}  // namespace bench

extern "C" {

void pmem_flush(const void* address, size_t n) {
  static auto* const f = real<void(const void*, size_t)>("pmem_flush");
  f(address, n);
  written(address, n);
}
void pmem_drain(void) {
  static auto* const f = real<void()>("pmem_drain");
  f();
  drained();
}
void pmem_persist(const void* address, size_t n) {
  static auto* const f = real<void(const void*, size_t)>("pmem_persist");
  f(address, n);
  written(address, n);
  drained();
}
void* pmem_memcpy(void* to, const void* from, size_t n, unsigned flags) {
  static auto* const f = real<void*(void*, const void*, size_t, unsigned)>("pmem_memcpy");
  void* const result = f(to, from, n, flags);
  copied(to, n, flags);
  return result;
}
void* pmem_memmove(void* to, const void* from, size_t n, unsigned flags) {
  static auto* const f = real<void*(void*, const void*, size_t, unsigned)>("pmem_memmove");
  void* const result = f(to, from, n, flags);
  copied(to, n, flags);
  return result;
}
void* pmem_memset(void* to, int byte, size_t n, unsigned flags) {
  static auto* const f = real<void*(void*, int, size_t, unsigned)>("pmem_memset");
  void* const result = f(to, byte, n, flags);
  copied(to, n, flags);
  return result;
}

}  // extern "C"
