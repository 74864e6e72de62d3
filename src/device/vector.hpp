// SPDX-License-Identifier: Apache-2.0
// Operations on flat spans, which exchanges, codecs and checkpoints need in addition to the ops of a model.
//
// `n` counts elements; sizes are chosen at run time; dtype is f32 or f64. Spans need only the alignment of an element;
// dst and src are either the same span or do not overlap. On host devices these functions are synchronous and may be
// called from any thread; on others they enqueue work on the device's stream.
#pragma once

#include <cstddef>
#include <span>

#include "base/dtype.hpp"
#include "device/delay_compensation.hpp"

namespace echelon::inline device {

struct VectorRange {
  const void* data = nullptr;
  std::size_t n = 0;
};

class VectorOps {
 public:
  virtual ~VectorOps() = default;
  virtual void fill(DType dtype, void* dst, double value, std::size_t n) = 0;
  virtual void copy(DType dtype, void* dst, const void* src, std::size_t n) = 0;
  virtual void add(DType dtype, void* dst, const void* src, std::size_t n) = 0;                  // dst += src
  virtual void scale(DType dtype, void* dst, double factor, std::size_t n) = 0;                  // dst *= factor
  virtual void axpy(DType dtype, void* dst, double factor, const void* src, std::size_t n) = 0;  // dst += factor * src
  // Applies the compensation `how`, which must be on, to `update`, element by element (delay_compensation.hpp).
  virtual void compensate(DType dtype, const DelayCompensation& how, const CompensatedUpdate& update,
                          std::size_t n) = 0;
  // Sum of squares in double, in an order that depends only on n. Synchronous on every device, as are the next two.
  virtual double sum_squares(DType dtype, const void* src, std::size_t n) = 0;
  // Writes the same sum of each range to `sums`, with the same bits; a GPU waits only once for many ranges.
  virtual void sums_of_squares(DType dtype, std::span<const VectorRange> ranges, std::span<double> sums) {
    for (std::size_t i = 0; i < ranges.size(); ++i) sums[i] = sum_squares(dtype, ranges[i].data, ranges[i].n);
  }
  // Largest magnitude; 0 for n = 0, NaN if any value is NaN.
  virtual double max_abs(DType dtype, const void* src, std::size_t n) = 0;
  // Returns the number of values that are inf or NaN.
  virtual std::size_t count_not_finite(DType dtype, const void* src, std::size_t n) = 0;
};

// Operations on host memory, such as a transport's buffers; independent of any device. Any thread.
VectorOps& host_vector_ops();

}  // namespace echelon::inline device
