// SPDX-License-Identifier: BSD-3-Clause
//
// What a block may do with strings and bytes of the pool: the instrumented forms of C's functions
// on them, byte by byte, because what lies behind a string's end may not be mapped.
#include <cstddef>
#include <cstdint>

#include "plain/access.hpp"

namespace perdure::plain {
namespace {

unsigned char at(const void* from, std::size_t i) noexcept {
  unsigned char byte = 0;
  load(&byte, static_cast<const unsigned char*>(from) + i, 1);
  return byte;
}

void put(void* to, std::size_t i, unsigned char byte) noexcept {
  store(static_cast<unsigned char*>(to) + i, &byte, 1);
}

void* address(const void* from, std::size_t i) noexcept {
  return const_cast<unsigned char*>(static_cast<const unsigned char*>(from) + i);
}

// `of_text`: two strings that end alike are equal there.
int compare(const void* a, const void* b, std::size_t n, bool of_text) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const unsigned char x = at(a, i), y = at(b, i);
    if (x != y) return x < y ? -1 : 1;
    if (of_text && x == 0) break;
  }
  return 0;
}

}  // namespace
}  // namespace perdure::plain

namespace plain = perdure::plain;

// By the names that both compilers give instrumented forms.
#define PERDURE_FORM(RESULT, NAME, SYMBOL, ...) \
  RESULT NAME(__VA_ARGS__) __asm__(SYMBOL);     \
  RESULT NAME(__VA_ARGS__)

extern "C" {
PERDURE_FORM(int, plain_memcmp, "_ZGTt6memcmp", const void* a, const void* b, std::size_t n) {
  return plain::compare(a, b, n, false);
}
PERDURE_FORM(int, plain_bcmp, "_ZGTt4bcmp", const void* a, const void* b, std::size_t n) {
  return plain::compare(a, b, n, false);
}
PERDURE_FORM(void*, plain_memchr, "_ZGTt6memchr", const void* in, int c, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    if (plain::at(in, i) == static_cast<unsigned char>(c)) return plain::address(in, i);
  return nullptr;
}
PERDURE_FORM(std::size_t, plain_strlen, "_ZGTt6strlen", const char* text) {
  std::size_t n = 0;
  while (plain::at(text, n) != 0) ++n;
  return n;
}
PERDURE_FORM(int, plain_strcmp, "_ZGTt6strcmp", const char* a, const char* b) {
  return plain::compare(a, b, SIZE_MAX, true);
}
PERDURE_FORM(int, plain_strncmp, "_ZGTt7strncmp", const char* a, const char* b, std::size_t n) {
  return plain::compare(a, b, n, true);
}
PERDURE_FORM(char*, plain_strchr, "_ZGTt6strchr", const char* text, int c) {
  for (std::size_t i = 0;; ++i) {
    const unsigned char byte = plain::at(text, i);
    if (byte == static_cast<unsigned char>(c)) return static_cast<char*>(plain::address(text, i));
    if (byte == 0) return nullptr;
  }
}
PERDURE_FORM(char*, plain_strcpy, "_ZGTt6strcpy", char* to, const char* from) {
  unsigned char byte = 0;
  std::size_t i = 0;
  do {
    byte = plain::at(from, i);
    plain::put(to, i++, byte);
  } while (byte != 0);
  return to;
}
PERDURE_FORM(char*, plain_strncpy, "_ZGTt7strncpy", char* to, const char* from, std::size_t n) {
  unsigned char byte = 1;
  for (std::size_t i = 0; i < n; ++i) {
    if (byte != 0) byte = plain::at(from, i);
    plain::put(to, i, byte);
  }
  return to;
}
}
