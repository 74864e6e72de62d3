// SPDX-License-Identifier: Apache-2.0
// Attention by the library's matrix product, head by head; the probabilities are kept for the backward pass.
#include <algorithm>
#include <cmath>

#include "device/onednn/ops.hpp"

namespace echelon::inline device::onednn {
namespace {

// c (m, n) = alpha a b + beta c, row-major with row strides; 'T' if a factor is given as its transpose.
struct Factor {
  char transposed;
  const float* data;
  std::int64_t stride;
};
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Factor a, Factor b, float beta, float* c,
              std::int64_t stride) {
  dnnl::error::wrap_c_api(
      dnnl_sgemm(a.transposed, b.transposed, m, n, k, alpha, a.data, a.stride, b.data, b.stride, beta, c, stride),
      "oneDNN could not multiply two matrices");
}

class Attention final : public Op {
 public:
  Attention(const Context& context, const OpSpec& spec)
      : d_(std::get<AttentionDims>(spec.dims)),
        forward_(spec.kind == OpKind::attention_forward),
        threads_(context.threads),
        scale_(1.0f / std::sqrt(static_cast<float>(d_.head()))) {}

  std::size_t saved_bytes() const override { return bytes(d_.N * d_.heads * d_.T * d_.S); }
  std::size_t scratch_bytes() const override { return forward_ ? 0 : bytes(d_.T * d_.S); }
  std::string implementation() const override { return "sgemm and own loop"; }

  void run(const OpArgs& args) override {
    claim_threads(threads_);
    for (std::int64_t n = 0; n < d_.N; ++n)
      for (std::int64_t h = 0; h < d_.heads; ++h) forward_ ? forward(args, n, h) : backward(args, n, h);
  }

 private:
  static std::size_t bytes(std::int64_t elems) { return static_cast<std::size_t>(elems) * sizeof(float); }
  std::int64_t q(std::int64_t n, std::int64_t h) const { return n * d_.T * d_.D + h * d_.head(); }
  std::int64_t k(std::int64_t n, std::int64_t h) const { return n * d_.S * d_.D + h * d_.head(); }
  float* probabilities(const OpArgs& args, std::int64_t n, std::int64_t h) const {
    return static_cast<float*>(args.saved) + (n * d_.heads + h) * d_.T * d_.S;
  }
  static float* at(const OpArgs& args, int a, std::int64_t offset) {
    return static_cast<float*>(args.tensors[a]) + offset;
  }

  void forward(const OpArgs& args, std::int64_t n, std::int64_t h) const {
    float* p = probabilities(args, n, h);
    multiply(d_.T, d_.S, d_.head(), scale_, {'N', at(args, 0, q(n, h)), d_.D}, {'T', at(args, 1, k(n, h)), d_.D}, 0, p,
             d_.S);
    const std::int64_t length = d_.lengths ? static_cast<const std::int32_t*>(args.tensors[3])[n] : d_.S;
    for (std::int64_t t = 0; t < d_.T; ++t) softmax(p + t * d_.S, d_.causal ? std::min(length, t + 1) : length);
    multiply(d_.T, d_.head(), d_.S, 1, {'N', p, d_.S}, {'N', at(args, 2, k(n, h)), d_.D}, 0,
             at(args, d_.lengths ? 4 : 3, q(n, h)), d_.D);
  }

  // Softmax over the positions that are seen; the others become 0.
  void softmax(float* row, std::int64_t seen) const {
    const float most = *std::max_element(row, row + seen);
    double total = 0;
    for (std::int64_t s = 0; s < seen; ++s) {
      row[s] = std::exp(row[s] - most);
      total += static_cast<double>(row[s]);
    }
    const auto factor = static_cast<float>(1 / total);
    for (std::int64_t s = 0; s < seen; ++s) row[s] *= factor;
    std::fill(row + seen, row + d_.S, 0.0f);
  }

  void backward(const OpArgs& args, std::int64_t n, std::int64_t h) const {
    const int first = d_.lengths ? 4 : 3;
    const float* p = probabilities(args, n, h);
    const float* dy = at(args, first, q(n, h));
    auto* da = static_cast<float*>(args.scratch);
    const auto beta = [&](int a) { return (args.accumulate >> a & 1U) != 0 ? 1.0f : 0.0f; };
    multiply(d_.S, d_.head(), d_.T, 1, {'T', p, d_.S}, {'N', dy, d_.D}, beta(first + 3), at(args, first + 3, k(n, h)),
             d_.D);
    multiply(d_.T, d_.S, d_.head(), 1, {'N', dy, d_.D}, {'T', at(args, 2, k(n, h)), d_.D}, 0, da, d_.S);
    for (std::int64_t t = 0; t < d_.T; ++t) softmax_backward(p + t * d_.S, da + t * d_.S);
    multiply(d_.T, d_.head(), d_.S, 1, {'N', da, d_.S}, {'N', at(args, 1, k(n, h)), d_.D}, beta(first + 1),
             at(args, first + 1, q(n, h)), d_.D);
    multiply(d_.S, d_.head(), d_.T, 1, {'T', da, d_.S}, {'N', at(args, 0, q(n, h)), d_.D}, beta(first + 2),
             at(args, first + 2, k(n, h)), d_.D);
  }

  // Computes the gradient of the products, including the scale, from that of the probabilities.
  void softmax_backward(const float* p, float* row) const {
    double mean = 0;
    for (std::int64_t s = 0; s < d_.S; ++s) mean += static_cast<double>(p[s]) * static_cast<double>(row[s]);
    const auto centre = static_cast<float>(mean);
    for (std::int64_t s = 0; s < d_.S; ++s) row[s] = scale_ * p[s] * (row[s] - centre);
  }

  AttentionDims d_;
  bool forward_;
  int threads_;
  float scale_;
};

}  // namespace

std::unique_ptr<Op> make_attention(Context& context, const OpSpec& spec) {
  return std::make_unique<Attention>(context, spec);
}

}  // namespace echelon::inline device::onednn
