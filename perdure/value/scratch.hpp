// SPDX-License-Identifier: BSD-3-Clause
//
// Scratch: holds values in DRAM in the form that they would have in a pool. So the result of one
// step is read by the next step by the names of its fields.
//
// Thread safety: none; an object belongs to one call. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "perdure/value/access.hpp"

namespace perdure::value {

class Scratch final : public Writer {
 public:
  void read_bytes(void* to, const void* from, std::size_t n) override { std::memcpy(to, from, n); }
  void expect(const void*, std::size_t) override {}
  void write_bytes(void* to, const void* from, std::size_t n) override { std::memcpy(to, from, n); }
  std::byte* alloc(std::size_t n) override {
    return blocks_.emplace_back(std::make_unique<std::byte[]>(n)).get();
  }
  void free(void*) override {}
  void keep_refusal() noexcept override {}

 private:
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

}  // namespace perdure::value
