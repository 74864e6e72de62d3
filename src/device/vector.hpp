// Operations on flat spans: what an exchange, a codec and a checkpoint need beside the ops of a model.
//
// `n` counts elements; sizes are chosen at run time; dtype is f32 or f64. Spans may be unaligned to anything but the
// element; dst and src are the same span or do not overlap. On host devices these are synchronous and may be called
// from any thread; on others they are enqueued on the device's stream.
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
  // `update` by `how`, which is on, element by element (delay_compensation.hpp).
  virtual void compensate(DType dtype, const DelayCompensation& how, const CompensatedUpdate& update,
                          std::size_t n) = 0;
  // Sum of squares in double, in an order that depends on n alone. Synchronous on every device, as are the next two.
  virtual double sum_squares(DType dtype, const void* src, std::size_t n) = 0;
  // Of each range into `sums`, the same bits; a device out of the host's reach waits once for many ranges.
  virtual void sums_of_squares(DType dtype, std::span<const VectorRange> ranges, std::span<double> sums) {
    for (std::size_t i = 0; i < ranges.size(); ++i) sums[i] = sum_squares(dtype, ranges[i].data, ranges[i].n);
  }
  // Largest magnitude, 0 for n = 0; NaN where there is one.
  virtual double max_abs(DType dtype, const void* src, std::size_t n) = 0;
  // Number of values that are inf or NaN.
  virtual std::size_t count_not_finite(DType dtype, const void* src, std::size_t n) = 0;
};

// Operations on host memory, such as a transport sends from; independent of any device. Any thread.
VectorOps& host_vector_ops();

}  // namespace echelon::inline device
