// SPDX-License-Identifier: Apache-2.0
// Sums of two tensors, and copies from one layout or dtype into another.
#include <algorithm>

#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

// Returns the position of element (n, c, h, w) in memory.
std::int64_t stored_at(Layout layout, const Shape& shape, std::int64_t n, std::int64_t c, std::int64_t h,
                       std::int64_t w) {
  const std::int64_t C = shape[1], H = shape[2], W = shape[3];
  const auto blocked = [&](std::int64_t block) {
    return (((n * ((C + block - 1) / block) + c / block) * H + h) * W + w) * block + c % block;
  };
  switch (layout) {
    case Layout::plain: return ((n * C + c) * H + h) * W + w;
    case Layout::channels_last: return ((n * H + h) * W + w) * C + c;
    case Layout::blocked8: return blocked(8);
    case Layout::blocked16: return blocked(16);
  }
  return 0;
}

template <class T>
void add(const ElementwiseDims& d, const OpArgs& args) {
  const T *a = in<T>(args, 0), *b = in<T>(args, 1);
  const Output<T> y(args, 2);
  for (std::int64_t i = 0; i < d.shape.elems(); ++i) {
    const double sum = static_cast<double>(a[i]) + static_cast<double>(b[i]);
    y.put(i, d.relu && sum < 0 ? 0 : sum);  // NaN stays NaN
  }
}

template <class T>
void masked_add(const ElementwiseDims& d, const OpArgs& args) {
  const T *mask = in<T>(args, 0), *a = in<T>(args, 1), *b = in<T>(args, 2);
  const Output<T> y(args, 3);
  for (std::int64_t i = 0; i < d.shape.elems(); ++i)
    y.put(i, (static_cast<double>(a[i]) + static_cast<double>(b[i])) * (mask[i] > T(0) ? 1 : 0));
}

template <class X, class Y>
void reorder(const Shape& whole, Layout from, Layout to, const OpArgs& args) {
  const Shape shape = whole.rank() == 5 ? whole.folded(2) : whole;  // a volume lies like an image with D*H rows
  const X* x = in<X>(args, 0);
  Y* y = static_cast<Y*>(args.tensors[1]);
  if (shape.rank() != 4) {
    std::transform(x, x + shape.elems(), y, [](X value) { return static_cast<Y>(value); });
    return;
  }
  std::fill_n(y, stored_elems(shape, to), Y{0});
  for (std::int64_t n = 0; n < shape[0]; ++n)
    for (std::int64_t c = 0; c < shape[1]; ++c)
      for (std::int64_t h = 0; h < shape[2]; ++h)
        for (std::int64_t w = 0; w < shape[3]; ++w)
          y[stored_at(to, shape, n, c, h, w)] = static_cast<Y>(x[stored_at(from, shape, n, c, h, w)]);
}

}  // namespace

std::unique_ptr<Op> make_add(const OpSpec& spec) {
  const auto d = std::get<ElementwiseDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) {
    if (spec.kind == OpKind::masked_add) return loop_op([d](const OpArgs& a) { masked_add<T>(d, a); });
    if (spec.kind != OpKind::add) not_of_family(spec);
    return loop_op([d](const OpArgs& a) { add<T>(d, a); });
  });
}

std::unique_ptr<Op> make_reorder(const OpSpec& spec) {
  const auto& d = std::get<ReorderDims>(spec.dims);
  return with_float(spec.dtype, [&]<class Y>(Y) {
    return with_float(d.from.value_or(spec.dtype), [&]<class X>(X) {
      return loop_op([shape = d.shape, from = spec.layouts[0], to = spec.layouts[1]](const OpArgs& a) {
        reorder<X, Y>(shape, from, to, a);
      });
    });
  });
}

}  // namespace echelon::inline device::reference
