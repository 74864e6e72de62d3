// SPDX-License-Identifier: Apache-2.0
// Puts the rows of one step at their place in sequences.
#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

template <class T>
void place(const PlaceStepDims& d, const OpArgs& args) {
  const T* x = in<T>(args, 0);
  const auto* lengths = d.lengths ? in<std::int32_t>(args, 1) : nullptr;
  const Output<T> y(args, d.lengths ? 2 : 1);
  for (std::int64_t n = 0; n < d.N; ++n) {
    const bool active = !lengths || d.first + d.t < lengths[n];
    for (std::int64_t f = 0; f < d.F; ++f)
      y.put((n * d.T + d.t) * d.F + f, active ? static_cast<double>(x[n * d.F + f]) : 0);
  }
}

}  // namespace

std::unique_ptr<Op> make_place_step(const OpSpec& spec) {
  const auto d = std::get<PlaceStepDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) { return loop_op([d](const OpArgs& a) { place<T>(d, a); }); });
}

}  // namespace echelon::inline device::reference
