// A matrix product by tiles (tiles.hpp): factors are packed as they lie, rounded to bf16 on the way, multiplied block
// by block and put where they belong. Weights are packed once a parameter version.
#pragma once

#include <cstdint>
#include <memory>

#include "device/onednn/ops.hpp"
#include "device/onednn/primitive.hpp"
#include "device/onednn/tiles.hpp"

namespace echelon::inline device::onednn {

struct TileProductForm {
  TileSource a, b;       // c (a.extent, b.extent) = a b
  Lines c;               // whose lines are rows of c
  bool weights = false;  // b is a parameter
  int threads = 1;
  bool real = true;                              // by the matrix unit, which must be there; else by plain loops
  const class TileProduct* same_left = nullptr;  // whose left factor is this one's, too, and is packed before this runs
};

struct ProductArgs {
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  std::byte* scratch = nullptr;  // the aligned start of the plan's memory
  bool add = false;              // c += a b, else c = a b + bias
  std::uint64_t version = 0;     // of b where it is a parameter
  const float* bias = nullptr;   // of c's columns, or none
  std::int64_t rows = 0;         // of a and c, the first ones; 0: all
};

class TileProduct {
 public:
  // Takes what it needs from `scratch`.
  TileProduct(Device& device, const TileProductForm& form, ScratchPlan& scratch);
  void run(const ProductArgs& args);
  // Of the same plain weights: these are the other's from now on.
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
    float* sums;  // of all blocks, where the depth is split and they are no part of the result
    TileResult result;
  };
  struct Block {
    std::int64_t row, column, step;  // blocks; the step with which a part of the depth begins
  };
  bool worth_a_team(std::int64_t rows) const;
  // The part of all blocks that one of a team multiplies.
  void multiply(const Job& job, std::int64_t member, std::int64_t team) const;
  void multiply_block(TileUnit& unit, const Job& job, const Block& block) const;
  // Whether blocks of sums are parts of the result itself.
  bool in_result(const Job& job) const;

  TileProductForm form_;
  std::int64_t steps_, part_;  // of the depth; of the part of it that is done before the next
  bool backwards_ = false;
  std::size_t a_at_, b_at_ = 0, sums_at_ = 0;
  std::shared_ptr<Packed> packed_;
};

}  // namespace echelon::inline device::onednn
