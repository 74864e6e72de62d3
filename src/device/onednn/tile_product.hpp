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
  bool real = true;  // by the matrix unit, which must be there; else by plain loops
};

class TileProduct {
 public:
  // Takes what it needs from `scratch`.
  TileProduct(Device& device, const TileProductForm& form, ScratchPlan& scratch);
  // c = a b + bias, or c += that. `scratch`: the aligned start of the plan's memory.
  void run(const void* a, const void* b, void* c, bool add, std::uint64_t version, const float* bias,
           std::byte* scratch);
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
    TileResult result;
  };
  bool worth_a_team() const;
  // The part of all blocks that one of a team multiplies.
  void multiply(const Job& job, std::int64_t member, std::int64_t team) const;
  void multiply_block(TileUnit& unit, const Job& job, std::int64_t row_block, std::int64_t column_block) const;

  TileProductForm form_;
  std::int64_t steps_;
  bool backwards_ = false;
  std::size_t a_at_, b_at_ = 0;
  std::shared_ptr<Packed> packed_;
};

}  // namespace echelon::inline device::onednn
