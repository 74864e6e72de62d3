// SPDX-License-Identifier: Apache-2.0
// Local response normalisation across channels.
//
//   s_c = k + alpha/size * sum_{j in window(c)} x_j^2,  y_c = x_c s_c^-beta
//   dx_c = dy_c s_c^-beta - 2 alpha beta / size * x_c * sum_{j: c in window(j)} dy_j x_j s_j^(-beta-1)
#include <algorithm>
#include <cmath>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

// The channels of one pixel: element (n, c) is at (n * C + c) * plane + i.
template <class T>
struct Pixel {
  const LrnDims& d;
  const T* x;
  std::int64_t first;  // position of channel 0

  std::int64_t at(std::int64_t c) const { return first + c * d.H * d.W; }
  double value(std::int64_t c) const { return static_cast<double>(x[at(c)]); }
  double s(std::int64_t c) const {
    double sum = 0;
    const std::int64_t end = std::min(d.C, c + (d.size - 1) / 2 + 1);
    for (std::int64_t j = std::max<std::int64_t>(0, c - d.size / 2); j < end; ++j) sum += value(j) * value(j);
    return d.k + d.alpha / static_cast<double>(d.size) * sum;
  }
};

template <class T, class Body>
void for_each_pixel(const LrnDims& d, const T* x, const Body& body) {
  for (std::int64_t n = 0; n < d.N; ++n)
    for (std::int64_t i = 0; i < d.H * d.W; ++i) body(Pixel<T>{d, x, n * d.C * d.H * d.W + i});
}

template <class T>
void forward(const LrnDims& d, const OpArgs& args) {
  const Output<T> y(args, 1);
  for_each_pixel(d, in<T>(args, 0), [&](const Pixel<T>& pixel) {
    for (std::int64_t c = 0; c < d.C; ++c) y.put(pixel.at(c), pixel.value(c) * std::pow(pixel.s(c), -d.beta));
  });
}

template <class T>
void backward(const LrnDims& d, const OpArgs& args) {
  const T* dy = in<T>(args, 1);
  const Output<T> dx(args, 2);
  const double factor = 2 * d.alpha * d.beta / static_cast<double>(d.size);
  for_each_pixel(d, in<T>(args, 0), [&](const Pixel<T>& pixel) {
    for (std::int64_t c = 0; c < d.C; ++c) {
      double sum = 0;
      const std::int64_t end = std::min(d.C, c + d.size / 2 + 1);
      for (std::int64_t j = std::max<std::int64_t>(0, c - (d.size - 1) / 2); j < end; ++j)
        sum += static_cast<double>(dy[pixel.at(j)]) * pixel.value(j) * std::pow(pixel.s(j), -d.beta - 1);
      const double own = static_cast<double>(dy[pixel.at(c)]) * std::pow(pixel.s(c), -d.beta);
      dx.put(pixel.at(c), own - factor * pixel.value(c) * sum);
    }
  });
}

}  // namespace

std::unique_ptr<Op> make_lrn(const OpSpec& spec) {
  const auto d = std::get<LrnDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) {
    if (spec.kind == OpKind::lrn_forward) return loop_op([d](const OpArgs& a) { forward<T>(d, a); });
    if (spec.kind != OpKind::lrn_backward) not_of_family(spec);
    return loop_op([d](const OpArgs& a) { backward<T>(d, a); });
  });
}

}  // namespace echelon::inline device::reference
