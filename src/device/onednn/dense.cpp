// SPDX-License-Identifier: Apache-2.0
// Dense layers on plain matrices by the library's matrix product, which can add to its output.
#include <algorithm>

#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"
#include "device/onednn/product.hpp"

namespace echelon::inline device::onednn {
namespace {

class Dense final : public Op {
 public:
  Dense(const Context& context, const OpSpec& spec)
      : kind_(spec.kind), d_(std::get<DenseDims>(spec.dims)), threads_(context.threads) {}

  std::string implementation() const override { return "sgemm"; }

  void run(const OpArgs& args) override {
    claim_threads(threads_);
    const auto* first = static_cast<const float*>(args.tensors[0]);
    const auto* second = static_cast<const float*>(args.tensors[1]);
    const auto beta = [&](unsigned output) { return (args.accumulate >> output & 1U) != 0 ? 1.0f : 0.0f; };
    switch (kind_) {
      case OpKind::dense_forward: return forward(first, second, args);
      case OpKind::dense_backward_data:  // dx (N, F) = dy (N, K) w (K, F)
        return multiply(d_.N, d_.F, d_.K, {first, d_.K}, {second, d_.F}, beta(2), output(args, 2), d_.F);
      default:  // dw (K, F) = dy(N, K)^T x (N, F)
        multiply(d_.K, d_.F, d_.N, {second, d_.K, true}, {first, d_.F}, beta(2), output(args, 2), d_.F);
        if (d_.bias) sum_rows(second, beta(3), output(args, 3));
    }
  }

 private:
  static float* output(const OpArgs& args, int a) { return static_cast<float*>(args.tensors[a]); }
  bool worth_a_team() const { return threads_ > 1 && d_.N * d_.K >= kParallelElems; }

  // y (N, K) = x (N, F) w(K, F)^T + b
  void forward(const float* x, const float* w, const OpArgs& args) const {
    float* y = output(args, d_.bias ? 3 : 2);
    if (d_.bias) spread(static_cast<const float*>(args.tensors[2]), y);
    multiply(d_.N, d_.K, d_.F, {x, d_.F}, {w, d_.F, true}, d_.bias ? 1.0f : 0.0f, y, d_.K);
  }

  void spread(const float* b, float* y) const {
#pragma omp parallel for num_threads(threads_) if (worth_a_team())
    for (std::int64_t n = 0; n < d_.N; ++n) std::copy(b, b + d_.K, y + n * d_.K);
  }

  // Each thread takes some columns and sums over all rows, so that the order of the sum does not depend on threads.
  void sum_rows(const float* dy, float beta, float* db) const {
    constexpr std::int64_t kColumns = 512;
#pragma omp parallel for num_threads(threads_) if (worth_a_team())
    for (std::int64_t begin = 0; begin < d_.K; begin += kColumns) {
      const std::int64_t end = std::min(begin + kColumns, d_.K);
      if (beta == 0.0f) std::fill(db + begin, db + end, 0.0f);
      for (std::int64_t n = 0; n < d_.N; ++n)
        for (std::int64_t k = begin; k < end; ++k) db[k] += dy[n * d_.K + k];
    }
  }

  OpKind kind_;
  DenseDims d_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_dense(Context& context, const OpSpec& spec) { return std::make_unique<Dense>(context, spec); }

}  // namespace echelon::inline device::onednn
