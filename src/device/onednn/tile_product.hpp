// SPDX-License-Identifier: Apache-2.0
// A matrix product by tiles (tiles.hpp): factors are packed from their place in memory, rounded to bf16 on the way, and
// multiplied block by block; the result is stored in place. Weights are packed once per parameter version.
#pragma once

#include <cstdint>
#include <memory>

#include "device/onednn/ops.hpp"
#include "device/onednn/primitive.hpp"
#include "device/onednn/tiles.hpp"

namespace echelon::inline device::onednn {

struct TileProductForm {
  TileSource a, b;       // c (a.extent, b.extent) = a b
  Lines c;               // its lines are rows of c
  bool weights = false;  // b is a parameter
  int threads = 1;
  bool real = true;                              // uses the matrix unit, which must exist; else plain loops
  const class TileProduct* same_left = nullptr;  // a product with the same left factor, which packs it before this runs
};

struct ProductArgs {
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  std::byte* scratch = nullptr;  // the aligned start of the plan's memory
  bool add = false;              // c += a b, else c = a b + bias
  std::uint64_t version = 0;     // parameter version of b
  const float* bias = nullptr;   // by columns of c, or null
  std::int64_t rows = 0;         // the first rows of a and c to compute; 0: all
};

class TileProduct {
 public:
  // Reserves what it needs in `scratch`.
  TileProduct(Device& device, const TileProductForm& form, ScratchPlan& scratch);
  void run(const ProductArgs& args);
  // Makes this object use the packed weights of `other`, which has the same plain weights.
  void share(const TileProduct& other);

 private:
  struct Packed {
    Memory memory;
    const void* source = nullptr;
    std::uint64_t version = 0;
  };
  struct Job {
    const BHalf *a, *b;
    void* c;
    std::int64_t rows;
    float* sums;  // sums of all blocks, if the depth is split and the sums are not part of the result
    TileResult result;
  };
  struct Block {
    std::int64_t row, column, step;  // block indices; the step with which a part of the depth begins
  };
  bool worth_a_team(std::int64_t rows) const;
  // Multiplies the share of all blocks that belongs to one member of a team.
  void multiply(const Job& job, std::int64_t member, std::int64_t team) const;
  void multiply_block(TileUnit& unit, const Job& job, const Block& block) const;
  // Whether the sums of a block are stored directly in the result.
  bool in_result(const Job& job) const;

  TileProductForm form_;
  std::int64_t steps_, part_;  // steps of the depth; steps of a part of it, which is finished before the next
  bool backwards_ = false;
  std::size_t a_at_, b_at_ = 0, sums_at_ = 0;
  std::shared_ptr<Packed> packed_;
};

}  // namespace echelon::inline device::onednn
