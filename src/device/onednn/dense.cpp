// Dense layers on plain matrices by the library's matrix product, which adds by itself where a caller accumulates.
#include "base/check.hpp"
#include "device/onednn/ops.hpp"

namespace echelon::onednn {
namespace {

// c (m, n) = a b + beta c, row-major; `ta` 'T' where a is given as its transpose.
void multiply(char ta, char tb, std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b,
              float beta, float* c) {
  const std::int64_t lda = ta == 'N' ? k : m, ldb = tb == 'N' ? n : k;
  dnnl::error::wrap_c_api(dnnl_sgemm(ta, tb, m, n, k, 1.0f, a, lda, b, ldb, beta, c, n),
                          "could not multiply two matrices");
}

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
      case OpKind::dense_forward: {  // y (N, K) = x (N, F) w(K, F)^T + b
        auto* y = static_cast<float*>(args.tensors[d_.bias ? 3 : 2]);
        if (d_.bias) spread(static_cast<const float*>(args.tensors[2]), y);
        return multiply('N', 'T', d_.N, d_.K, d_.F, first, second, d_.bias ? 1.0f : 0.0f, y);
      }
      case OpKind::dense_backward_data:  // dx (N, F) = dy (N, K) w (K, F)
        return multiply('N', 'N', d_.N, d_.F, d_.K, first, second, beta(2), static_cast<float*>(args.tensors[2]));
      default:  // dw (K, F) = dy(N, K)^T x (N, F)
        multiply('T', 'N', d_.K, d_.F, d_.N, second, first, beta(2), static_cast<float*>(args.tensors[2]));
        if (d_.bias) sum_rows(second, beta(3), static_cast<float*>(args.tensors[3]));
    }
  }

 private:
  void spread(const float* b, float* y) const {
    for (std::int64_t n = 0; n < d_.N; ++n) std::copy(b, b + d_.K, y + n * d_.K);
  }
  void sum_rows(const float* dy, float beta, float* db) const {
    if (beta == 0.0f) std::fill(db, db + d_.K, 0.0f);
    for (std::int64_t n = 0; n < d_.N; ++n)
      for (std::int64_t k = 0; k < d_.K; ++k) db[k] += dy[n * d_.K + k];
  }

  OpKind kind_;
  DenseDims d_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_dense(Context& context, const OpSpec& spec) { return std::make_unique<Dense>(context, spec); }

}  // namespace echelon::onednn
