// SPDX-License-Identifier: Apache-2.0
// Upsampling: each output reads up to two cells along each axis; the backward pass gives them its gradient.
#include <algorithm>
#include <vector>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

// Calls tap(x_at, y_at, weight) for every cell of x that an output reads.
template <class Tap>
void for_each_tap(const UpsampleDims& d, const Tap& tap) {
  const SpatialExtents y = d.out();
  const auto taps = [&](std::int64_t i, int axis) { return upsample_taps(i, d.factor[axis], d.in[axis], d.linear); };
  std::int64_t y_at = 0;
  for (std::int64_t nc = 0; nc < d.N * d.C; ++nc)
    for (std::int64_t o = 0; o < y.d; ++o)
      for (std::int64_t p = 0; p < y.h; ++p)
        for (std::int64_t q = 0; q < y.w; ++q, ++y_at) {
          const UpsampleTaps of[] = {taps(o, 0), taps(p, 1), taps(q, 2)};
          for (unsigned corner = 0; corner < 8; ++corner) {
            std::int64_t at = nc;
            double weight = 1;
            for (int axis = 0; axis < kMostAxes; ++axis) {
              const bool second = (corner >> axis & 1U) != 0;
              at = at * d.in[axis] + (second ? of[axis].b : of[axis].a);
              weight *= second ? of[axis].t : 1 - of[axis].t;
            }
            if (weight != 0) tap(at, y_at, weight);
          }
        }
}

template <class T>
void run(const UpsampleDims& d, bool forward, const OpArgs& args, std::vector<double>& sums) {
  const T* from = in<T>(args, 0);
  const Output<T> to(args, 1);
  std::fill(sums.begin(), sums.end(), 0.0);
  for_each_tap(d, [&](std::int64_t x_at, std::int64_t y_at, double weight) {
    const std::int64_t target = forward ? y_at : x_at, source = forward ? x_at : y_at;
    sums[static_cast<std::size_t>(target)] += weight * static_cast<double>(from[source]);
  });
  for (std::size_t i = 0; i < sums.size(); ++i) to.put(static_cast<std::int64_t>(i), sums[i]);
}

}  // namespace

std::unique_ptr<Op> make_upsample(const OpSpec& spec) {
  const auto d = std::get<UpsampleDims>(spec.dims);
  const bool is_forward = spec.kind == OpKind::upsample_forward;
  if (!is_forward && spec.kind != OpKind::upsample_backward) not_of_family(spec);
  return with_float(spec.dtype, [&]<class T>(T) {
    std::vector<double> sums(static_cast<std::size_t>(d.N * d.C * (is_forward ? d.out().cells() : d.in.cells())));
    return loop_op([d, is_forward, sums](const OpArgs& a) mutable { run<T>(d, is_forward, a, sums); });
  });
}

}  // namespace echelon::inline device::reference
