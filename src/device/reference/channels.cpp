// SPDX-License-Identifier: Apache-2.0
// Concatenates the channels of several tensors, and extracts a range of channels of one.
#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

template <class T>
void concat(const ConcatDims& d, const OpArgs& args) {
  const int inputs = d.inputs();
  const Output<T> y(args, inputs);
  const std::int64_t plane = d.H * d.W;
  std::int64_t before = 0;  // channels of the inputs so far
  for (int input = 0; input < inputs; ++input) {
    const T* x = in<T>(args, input);
    const std::int64_t C = d.channels[static_cast<std::size_t>(input)];
    for (std::int64_t n = 0; n < d.N; ++n)
      for (std::int64_t c = 0; c < C; ++c)
        for (std::int64_t i = 0; i < plane; ++i)
          y.put((n * d.C() + before + c) * plane + i, static_cast<double>(x[(n * C + c) * plane + i]));
    before += C;
  }
}

// T: i32 or a floating type; doubles hold each exactly.
template <class T>
void slice(const SliceDims& d, const OpArgs& args) {
  const T* x = in<T>(args, 0);
  const Output<T> y(args, 1);
  const std::int64_t plane = d.H * d.W;
  for (std::int64_t n = 0; n < d.N; ++n)
    for (std::int64_t c = 0; c < d.count; ++c)
      for (std::int64_t i = 0; i < plane; ++i)
        y.put((n * d.count + c) * plane + i, static_cast<double>(x[(n * d.C + d.first + c) * plane + i]));
}

}  // namespace

std::unique_ptr<Op> make_concat(const OpSpec& spec) {
  const auto d = std::get<ConcatDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) { return loop_op([d](const OpArgs& a) { concat<T>(d, a); }); });
}

std::unique_ptr<Op> make_slice(const OpSpec& spec) {
  const auto d = std::get<SliceDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) {
    return loop_op([d](const OpArgs& a) { d.indices ? slice<std::int32_t>(d, a) : slice<T>(d, a); });
  });
}

}  // namespace echelon::inline device::reference
