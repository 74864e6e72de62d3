// SPDX-License-Identifier: Apache-2.0
// The sum, the mean or the last of a sequence's positions.
#include <algorithm>

#include "base/check.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

class SequencePoolOp final : public Op {
 public:
  SequencePoolOp(const Context& context, const OpSpec& spec)
      : d_(std::get<SequencePoolDims>(spec.dims)),
        forward_(spec.kind == OpKind::sequence_pool_forward),
        threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const auto* from = static_cast<const float*>(args.tensors[0]);
    auto* to = static_cast<float*>(args.tensors[d_.lengths ? 2 : 1]);
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
  void gather(const float* x, std::int64_t first, std::int64_t length, float weight, float* y) const {
    std::fill(y, y + d_.F, 0.0f);
    for (std::int64_t t = first; t < length; ++t)
      for (std::int64_t f = 0; f < d_.F; ++f) y[f] += x[t * d_.F + f];
    if (weight != 1.0f)
      for (std::int64_t f = 0; f < d_.F; ++f) y[f] *= weight;
  }

  void spread(const float* dy, std::int64_t first, std::int64_t length, float weight, bool add, float* dx) const {
    if (!add) std::fill(dx, dx + d_.T * d_.F, 0.0f);
    for (std::int64_t t = first; t < length; ++t)
      for (std::int64_t f = 0; f < d_.F; ++f) dx[t * d_.F + f] += weight * dy[f];
  }

  SequencePoolDims d_;
  bool forward_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_sequence_pool(Context& context, const OpSpec& spec) {
  return std::make_unique<SequencePoolOp>(context, spec);
}

}  // namespace echelon::inline device::onednn
