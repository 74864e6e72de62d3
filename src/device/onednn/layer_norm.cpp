// SPDX-License-Identifier: Apache-2.0
// Layer normalisation of rows; sums are in double, in an order that depends only on the extents.
#include <algorithm>
#include <cmath>

#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

constexpr std::int64_t kColumns = 64;  // columns whose gamma and beta gradients one thread sums at a time

// T is the type of activations and their gradients, float or BHalf.
template <class T>
class LayerNorm final : public Op {
 public:
  LayerNorm(const Context& context, const OpSpec& spec)
      : F_(std::get<LayerNormDims>(spec.dims).F),
        rows_(std::get<LayerNormDims>(spec.dims).rows()),
        epsilon_(std::get<LayerNormDims>(spec.dims).epsilon),
        backward_(spec.kind == OpKind::layer_norm_backward),
        threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    if (!backward_) return forward(args);
    (args.accumulate >> 4 & 1U) != 0 ? backward_rows<true>(args) : backward_rows<false>(args);
    backward_columns(args);
  }

 private:
  static const T* in(const OpArgs& args, int a) { return static_cast<const T*>(args.tensors[a]); }
  static const float* parameter(const OpArgs& args, int a) { return static_cast<const float*>(args.tensors[a]); }
  bool worth_a_team() const { return threads_ > 1 && rows_ * F_ >= kParallelElems; }

  void forward(const OpArgs& args) const {
    const float *gamma = parameter(args, 1), *beta = parameter(args, 2);
    auto* stats = static_cast<double*>(args.tensors[4]);
#pragma omp parallel for num_threads(threads_) if (worth_a_team())
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T* x = in(args, 0) + r * F_;
      T* y = static_cast<T*>(args.tensors[3]) + r * F_;
      double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t f = 0; f < F_; ++f) sum += static_cast<double>(widened(x[f]));
      const double mean = sum / static_cast<double>(F_);
#pragma omp simd reduction(+ : squares)
      for (std::int64_t f = 0; f < F_; ++f) {
        const double centred = static_cast<double>(widened(x[f])) - mean;
        squares += centred * centred;
      }
      const double istd = 1 / std::sqrt(squares / static_cast<double>(F_) + epsilon_);
      stats[r] = mean;
      stats[rows_ + r] = istd;
      const auto scale = static_cast<float>(istd);
#pragma omp simd
      for (std::int64_t f = 0; f < F_; ++f)
        y[f] =
            rounded_to<T>(gamma[f] * (static_cast<float>(static_cast<double>(widened(x[f])) - mean) * scale) + beta[f]);
    }
  }

  template <bool kAdd>
  void backward_rows(const OpArgs& args) const {
    const float* gamma = parameter(args, 3);
    const auto* stats = static_cast<const double*>(args.tensors[2]);
#pragma omp parallel for num_threads(threads_) if (worth_a_team())
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T *x = in(args, 0) + r * F_, *dy = in(args, 1) + r * F_;
      T* dx = static_cast<T*>(args.tensors[4]) + r * F_;
      const double mean = stats[r], istd = stats[rows_ + r];
      double sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
      for (std::int64_t f = 0; f < F_; ++f) {
        const double g = static_cast<double>(gamma[f]) * static_cast<double>(widened(dy[f]));
        sum += g;
        product += g * ((static_cast<double>(widened(x[f])) - mean) * istd);
      }
      sum /= static_cast<double>(F_);
      product /= static_cast<double>(F_);
#pragma omp simd
      for (std::int64_t f = 0; f < F_; ++f) {
        const double g = static_cast<double>(gamma[f]) * static_cast<double>(widened(dy[f]));
        const double xhat = (static_cast<double>(widened(x[f])) - mean) * istd;
        const auto value = static_cast<float>(istd * (g - sum - xhat * product));
        dx[f] = rounded_to<T>(kAdd ? widened(dx[f]) + value : value);
      }
    }
  }

  void backward_columns(const OpArgs& args) const {
    const auto* stats = static_cast<const double*>(args.tensors[2]);
    auto *dgamma = static_cast<float*>(args.tensors[5]), *dbeta = static_cast<float*>(args.tensors[6]);
    const bool add_gamma = (args.accumulate >> 5 & 1U) != 0, add_beta = (args.accumulate >> 6 & 1U) != 0;
#pragma omp parallel for num_threads(threads_) if (worth_a_team())
    for (std::int64_t first = 0; first < F_; first += kColumns) {
      const std::int64_t columns = std::min(kColumns, F_ - first);
      double products[kColumns] = {}, sums[kColumns] = {};
      for (std::int64_t r = 0; r < rows_; ++r) {
        const T *x = in(args, 0) + r * F_ + first, *dy = in(args, 1) + r * F_ + first;
        const double mean = stats[r], istd = stats[rows_ + r];
#pragma omp simd
        for (std::int64_t f = 0; f < columns; ++f) {
          products[f] += static_cast<double>(widened(dy[f])) * ((static_cast<double>(widened(x[f])) - mean) * istd);
          sums[f] += static_cast<double>(widened(dy[f]));
        }
      }
      for (std::int64_t f = 0; f < columns; ++f) {
        dgamma[first + f] = (add_gamma ? dgamma[first + f] : 0.0f) + static_cast<float>(products[f]);
        dbeta[first + f] = (add_beta ? dbeta[first + f] : 0.0f) + static_cast<float>(sums[f]);
      }
    }
  }

  std::int64_t F_, rows_;
  double epsilon_;
  bool backward_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_layer_norm(Context& context, const OpSpec& spec) {
  return make_stored<LayerNorm>(spec.dtype, context, spec);
}

}  // namespace echelon::inline device::onednn
