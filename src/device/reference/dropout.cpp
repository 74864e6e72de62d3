// SPDX-License-Identifier: Apache-2.0
// Dropout by hashes of (key, sample, element).
#include "base/hash_rng.hpp"
#include "device/reference/ops.hpp"

namespace echelon::inline device::reference {
namespace {

template <class T>
void run(const DropoutDims& d, const OpArgs& args) {
  const T* x = in<T>(args, 0);
  const auto* ids = in<std::int32_t>(args, 1);
  const Output<T> y(args, 2);
  const std::int64_t elems = d.shape.row_elems(), run = d.run();
  for (std::int64_t n = 0; n < d.shape[0]; ++n) {
    const HashRng rng = HashRng(args.key).at(static_cast<std::uint32_t>(ids[n]));
    for (std::int64_t i = 0; i < elems; ++i) {
      const std::int64_t at = d.first + i / run * d.plane + i % run;
      const bool stays = rng.uniform(static_cast<std::uint64_t>(at)) >= d.rate;
      y.put(n * elems + i, stays ? static_cast<double>(x[n * elems + i]) / (1 - d.rate) : 0.0);
    }
  }
}

}  // namespace

std::unique_ptr<Op> make_dropout(const OpSpec& spec) {
  const auto d = std::get<DropoutDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) { return loop_op([d](const OpArgs& a) { run<T>(d, a); }); });
}

}  // namespace echelon::inline device::reference
