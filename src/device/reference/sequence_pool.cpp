// SPDX-License-Identifier: Apache-2.0
// The sum, the mean or the last of a sequence's positions.
#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

// The weight of position t of a sequence.
double weight_of(const SequencePoolDims& d, std::int64_t t, std::int64_t length) {
  if (t >= length) return 0;
  switch (d.mode) {
    case SequencePool::sum: return 1;
    case SequencePool::mean: return 1 / static_cast<double>(length);
    case SequencePool::last: return t + 1 == length ? 1 : 0;
  }
  return 0;
}

template <class T>
void run(const SequencePoolDims& d, bool forward, const OpArgs& args) {
  const T* from = in<T>(args, 0);
  const Output<T> to(args, d.lengths ? 2 : 1);
  for (std::int64_t n = 0; n < d.N; ++n) {
    const std::int64_t length = d.lengths ? in<std::int32_t>(args, 1)[n] : d.T;
    for (std::int64_t f = 0; f < d.F; ++f) {
      double sum = 0;
      for (std::int64_t t = 0; t < d.T; ++t) {
        const double weight = weight_of(d, t, length);
        const std::int64_t index = (n * d.T + t) * d.F + f;
        if (forward)
          sum += weight * static_cast<double>(from[index]);
        else
          to.put(index, weight * static_cast<double>(from[n * d.F + f]));
      }
      if (forward) to.put(n * d.F + f, sum);
    }
  }
}

}  // namespace

std::unique_ptr<Op> make_sequence_pool(const OpSpec& spec) {
  const auto d = std::get<SequencePoolDims>(spec.dims);
  const bool forward = spec.kind == OpKind::sequence_pool_forward;
  if (!forward && spec.kind != OpKind::sequence_pool_backward) not_of_family(spec);
  return with_float(spec.dtype,
                    [&]<class T>(T) { return loop_op([d, forward](const OpArgs& a) { run<T>(d, forward, a); }); });
}

}  // namespace echelon::inline device::reference
