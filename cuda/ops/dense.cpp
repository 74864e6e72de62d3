// Dense layers through cuBLAS.
//
// cuBLAS is column-major: a row-major (rows, columns) matrix is to it the transposed one, with leading dimension
// `columns`. So y = x w^T (N, K) is asked for as y^T = w x^T, and so on; each call below says what it computes in
// row-major terms. One handle on one stream with atomics off gives the same bits at every run.
#include <memory>

#include "cuda/check.hpp"
#include "cuda/kernel_op.hpp"
#include "cuda/kernels/channel_sums.hpp"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

// Column-major c (m, n) = op(a) op(b) + beta * c, k the inner extent.
void gemm(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m, std::int64_t n,
          std::int64_t k, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, bool add, float* c,
          std::int64_t ldc) {
  const float one = 1;
  const float beta = add ? 1 : 0;
  ECHELON_CUDA(cublasSgemm_64(blas, op_a, op_b, m, n, k, &one, a, lda, b, ldb, &beta, c, ldc));
}
void gemm(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m, std::int64_t n,
          std::int64_t k, const double* a, std::int64_t lda, const double* b, std::int64_t ldb, bool add, double* c,
          std::int64_t ldc) {
  const double one = 1;
  const double beta = add ? 1 : 0;
  ECHELON_CUDA(cublasDgemm_64(blas, op_a, op_b, m, n, k, &one, a, lda, b, ldb, &beta, c, ldc));
}

template <class T>
class Dense final : public Op {
 public:
  Dense(const Context& context, const OpSpec& spec)
      : context_(context), kind_(spec.kind), d_(std::get<DenseDims>(spec.dims)), text_(spec.text()) {}

  std::size_t scratch_bytes() const override {
    const bool sums = kind_ == OpKind::dense_backward_weights && d_.bias;
    return sums ? channel_scratch_bytes(d_.N, d_.K, 1) : 0;
  }
  std::string implementation() const override { return "cublas gemm"; }
  void run(const OpArgs& args) override {
    context_.use();
    if (kind_ == OpKind::dense_forward) forward(args);
    if (kind_ == OpKind::dense_backward_data) backward_data(args);
    if (kind_ == OpKind::dense_backward_weights) backward_weights(args);
    check_launch(text_);
  }

 private:
  // y (N, K) = x (N, F) w (K, F)^T + b
  void forward(const OpArgs& a) const {
    T* y = tensor<T>(a, d_.bias ? 3 : 2);
    gemm(context_.blas(), CUBLAS_OP_T, CUBLAS_OP_N, d_.K, d_.N, d_.F, tensor<const T>(a, 1), d_.F,
         tensor<const T>(a, 0), d_.F, false, y, d_.K);
    if (d_.bias) add_bias(y, tensor<const T>(a, 2), d_.N, d_.K, 1, context_.stream());
  }
  // dx (N, F) = dy (N, K) w (K, F)
  void backward_data(const OpArgs& a) const {
    gemm(context_.blas(), CUBLAS_OP_N, CUBLAS_OP_N, d_.F, d_.N, d_.K, tensor<const T>(a, 1), d_.F,
         tensor<const T>(a, 0), d_.K, adds(a, 2), tensor<T>(a, 2), d_.F);
  }
  // dw (K, F) = dy (N, K)^T x (N, F); db (K) = sum of dy over N
  void backward_weights(const OpArgs& a) const {
    gemm(context_.blas(), CUBLAS_OP_N, CUBLAS_OP_T, d_.F, d_.K, d_.N, tensor<const T>(a, 0), d_.F,
         tensor<const T>(a, 1), d_.K, adds(a, 2), tensor<T>(a, 2), d_.F);
    if (d_.bias)
      bias_gradient(tensor<const T>(a, 1), tensor<T>(a, 3), d_.N, d_.K, 1, adds(a, 3), a.scratch, context_.stream());
  }

  const Context& context_;
  OpKind kind_;
  DenseDims d_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Op> make_dense(const Context& context, const OpSpec& spec) {
  return with_float(spec.dtype,
                    [&]<class T>(T) -> std::unique_ptr<Op> { return std::make_unique<Dense<T>>(context, spec); });
}

}  // namespace echelon::cuda
