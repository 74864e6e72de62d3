// SPDX-License-Identifier: Apache-2.0
// Adds one tensor to every sample; its gradient is the sum over samples.
#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

template <class T>
void add(std::int64_t N, std::int64_t elems, std::int64_t cells, const OpArgs& args) {
  const T *x = in<T>(args, 0), *w = in<T>(args, 1);
  const Output<T> y(args, 2);
  for (std::int64_t i = 0; i < N * elems * cells; ++i)
    y.put(i, static_cast<double>(x[i]) + static_cast<double>(w[i / cells % elems]));
}

template <class T>
void sum(std::int64_t N, std::int64_t elems, std::int64_t cells, const OpArgs& args) {
  const T* dy = in<T>(args, 0);
  const Output<T> dw(args, 1);
  for (std::int64_t e = 0; e < elems; ++e) {
    double total = 0;
    for (std::int64_t n = 0; n < N; ++n)
      for (std::int64_t i = 0; i < cells; ++i) total += static_cast<double>(dy[(n * elems + e) * cells + i]);
    dw.put(e, total);
  }
}

}  // namespace

std::unique_ptr<Op> make_broadcast(const OpSpec& spec) {
  const auto d = std::get<BroadcastDims>(spec.dims);
  const std::int64_t N = d.shape[0], elems = d.added().elems(), cells = d.cells();
  return with_float(spec.dtype, [&]<class T>(T) {
    if (spec.kind == OpKind::broadcast_add) return loop_op([=](const OpArgs& a) { add<T>(N, elems, cells, a); });
    if (spec.kind != OpKind::sum_samples) not_of_family(spec);
    return loop_op([=](const OpArgs& a) { sum<T>(N, elems, cells, a); });
  });
}

}  // namespace echelon::inline device::reference
