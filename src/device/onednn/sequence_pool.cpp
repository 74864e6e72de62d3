// SPDX-License-Identifier: Apache-2.0
// The sum, the mean or the last of a sequence's positions.
#include <algorithm>

#include "base/check.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

// T is the type of activations and their gradients, float or BHalf.
template <class T>
class SequencePoolOp final : public Op {
 public:
  SequencePoolOp(const Context& context, const OpSpec& spec)
      : d_(std::get<SequencePoolDims>(spec.dims)),
        forward_(spec.kind == OpKind::sequence_pool_forward),
        threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const auto* from = static_cast<const T*>(args.tensors[0]);
    auto* to = static_cast<T*>(args.tensors[d_.lengths ? 2 : 1]);
    for (std::int64_t n = 0; d_.lengths && n < d_.N; ++n) {
      const std::int32_t length = static_cast<const std::int32_t*>(args.tensors[1])[n];
      ECHELON_CHECK(length >= 1 && length <= d_.T, "sequence {} has length {}, which is not in [1, {}]", n, length,
                    d_.T);
    }
    const bool add = (args.accumulate >> (d_.lengths ? 2 : 1) & 1U) != 0;
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.N * d_.T * d_.F >= kParallelElems)
    for (std::int64_t n = 0; n < d_.N; ++n) {
      const std::int64_t length = d_.lengths ? static_cast<const std::int32_t*>(args.tensors[1])[n] : d_.T;
      const std::int64_t first = d_.mode == SequencePool::last ? length - 1 : 0;
      const float weight = d_.mode == SequencePool::mean ? 1.0f / static_cast<float>(length) : 1.0f;
      const std::int64_t sequence = n * d_.T * d_.F, row = n * d_.F;
      forward_ ? gather(from + sequence, first, length, weight, to + row)
               : spread(from + row, first, length, weight, add, to + sequence);
    }
  }

 private:
  void gather(const T* x, std::int64_t first, std::int64_t length, float weight, T* y) const {
    constexpr std::int64_t kColumns = 128;
    for (std::int64_t begin = 0; begin < d_.F; begin += kColumns) {
      const std::int64_t columns = std::min(kColumns, d_.F - begin);
      float sums[kColumns] = {};
      for (std::int64_t t = first; t < length; ++t)
#pragma omp simd
        for (std::int64_t f = 0; f < columns; ++f) sums[f] += widened(x[t * d_.F + begin + f]);
#pragma omp simd
      for (std::int64_t f = 0; f < columns; ++f) y[begin + f] = rounded_to<T>(sums[f] * weight);
    }
  }

  void spread(const T* dy, std::int64_t first, std::int64_t length, float weight, bool add, T* dx) const {
    if (!add) std::fill(dx, dx + d_.T * d_.F, T{});
    for (std::int64_t t = first; t < length; ++t) {
      T* to = dx + t * d_.F;
#pragma omp simd
      for (std::int64_t f = 0; f < d_.F; ++f) to[f] = rounded_to<T>(widened(to[f]) + weight * widened(dy[f]));
    }
  }

  SequencePoolDims d_;
  bool forward_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_sequence_pool(Context& context, const OpSpec& spec) {
  return make_stored<SequencePoolOp>(spec.dtype, context, spec);
}

}  // namespace echelon::inline device::onednn
