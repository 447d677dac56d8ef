// SPDX-License-Identifier: BSD-3-Clause
//
// BaselineStore: SQLite in design B over the two other methods of SoftWrAP's paper (SoftWrAP, MSST
// '15, section V-E runs both under its framework): at a sync the words that differ are stored by
// NonAtomicTx or UndoLogTx (bench/softwrap/baselines.hpp). A block lies at its number's place. COST
// BASELINES ONLY: nothing here recovers.
// Thread safety: store.hpp.
#pragma once

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "bench/softwrap/baselines.hpp"
#include "sqlite/overlay.hpp"

namespace bench::sqlite {

template <class Tx>
class BaselineStore final : public perdure::sqlite::Overlay {
 public:
  BaselineStore(std::string path, const softwrap::Setup& setup)
      : Overlay(std::move(path), false),
        memory_(setup, log_part, threads),
        blocks_(memory_.allocate(setup.data_size)),
        room_(setup.data_size / block) {}

  void sync(perdure::Durability) override {
    Tx tx(memory_);
    for (const auto& [number, bytes] : overlay_) {
      if (number >= room_) throw std::runtime_error("the database is larger than its memory");
      std::array<std::uint64_t, block / 8> then;
      std::memcpy(then.data(), bytes->data(), block);
      const std::uint64_t at = memory_.offset_of(blocks_ + number * block);
      for (std::size_t w = 0; w < then.size(); ++w) {
        std::uint64_t now = 0;
        std::memcpy(&now, memory_.medium().at(at + w * 8), 8);
        if (now != then[w]) tx.word(at + w * 8, &then[w]);
      }
    }
    tx.close();
    overlay_.clear();
    committed_ = size_;
  }
  void close() override {}
  void let_go() noexcept override {}
  [[nodiscard]] perdure::medium::Medium& medium() const noexcept { return memory_.medium(); }

 private:
  static constexpr std::uint64_t block = perdure::sqlite::block_bytes,
                                 log_part = 16 << 20;  // a commit of 1.3 million words
  static constexpr int threads = 4;                    // of the program: those with the first slots
  void load(std::uint64_t number, std::uint64_t skip, std::byte* to, std::uint64_t n) override {
    std::memcpy(to, blocks_ + number * block + skip, n);
  }

  softwrap::Memory memory_;
  std::byte* const blocks_;
  const std::uint64_t room_;  // blocks
};

}  // namespace bench::sqlite
