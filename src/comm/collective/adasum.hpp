// SPDX-License-Identifier: Apache-2.0
// Adasum of gradients over all ranks (Maleki et al., MLSys 2021, arXiv:2006.02924): orthogonal parts are added,
// parallel parts are averaged. For each parameter tensor
//
//   Adasum(a, b) = (1 - a.b / (2 |a|^2)) a + (1 - a.b / (2 |b|^2)) b;   a + b where a or b is 0
//
// along the tree of the butterfly: 0 with 1, 2 with 3, then both pairs, .. If the number of ranks k is not a power of
// two, its first 2 (k - p) ranks are paired first (folded.hpp). All ranks combine the same two operands in the same
// order, so that all end with the same bits. Dot products and results are computed in double precision.
//
// Each message is a whole buffer, because dot products need it: p log2 p + 2 (k - p) messages of the buffer's bytes.
#pragma once

#include <memory>
#include <vector>

#include "base/dtype.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/wire_form.hpp"

namespace echelon::inline comm {

// The plan that an AdasumForm is used with; request.segment_elems is ignored.
std::shared_ptr<const Plan> make_adasum(AllreduceRequest request);
Price price_adasum(AllreduceRequest request);

// Combines n values of `a` and `b`, of `dtype` (f32 or f64), into `to`, which may be either of them.
void adasum(DType dtype, const void* a, const void* b, void* to, std::int64_t n);

// Defines what `reduce` does in that plan; values travel unencoded.
class AdasumForm final : public WireForm {
 public:
  struct Part {
    ElemRange range;
    bool summed = false;  // added plainly, because the part is not a gradient
  };

  // For `rank` of `ranks`, on a buffer of `elems`. Each part is one parameter; together they cover the buffer once.
  AdasumForm(DType dtype, int rank, int ranks, std::int64_t elems, std::vector<Part> parts);

  std::string_view name() const override { return "adasum"; }
  std::int64_t elems() const override { return elems_; }
  std::size_t most_bytes(std::int64_t n) const override { return static_cast<std::size_t>(n) * size_of(dtype_); }
  bool exact_size() const override { return true; }
  bool in_place() const override { return true; }

  void begin(void*) override { combined_ = 0; }
  void finish(void*) override {}
  std::size_t encode(void* values, ElemRange range, bool sum, std::byte* wire) override;
  void decode(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) override;
  void decode_add(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) override;

 private:
  bool comes_first() const;

  DType dtype_;
  int rank_, ranks_;
  std::int64_t elems_;
  std::vector<Part> parts_;
  int combined_ = 0;  // operands received from other ranks in this run of the plan
};

}  // namespace echelon::inline comm
