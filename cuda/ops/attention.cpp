// Attention through cuBLAS, one strided batch over samples for each head; the probabilities are kept for the way back.
//
// cuBLAS is column-major: a row-major (rows, columns) matrix is to it the transposed one (ops/dense.cpp). Each call
// below says what it computes in row-major terms.
#include <cmath>
#include <memory>

#include "cuda/check.hpp"
#include "cuda/kernel_op.hpp"
#include "cuda/kernels/sequence.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

// A head's rows in every sample: (rows, columns) of each, `row` values from a row to the next, `sample` from a sample
// to the next.
template <class T>
struct Rows {
  T* data;
  std::int64_t row, sample;
};

void batched(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m, std::int64_t n,
             std::int64_t k, float alpha, Rows<const float> a, Rows<const float> b, float beta, Rows<float> c,
             std::int64_t batch) {
  ECHELON_CUDA(cublasSgemmStridedBatched_64(blas, op_a, op_b, m, n, k, &alpha, a.data, a.row, a.sample, b.data, b.row,
                                            b.sample, &beta, c.data, c.row, c.sample, batch));
}
void batched(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m, std::int64_t n,
             std::int64_t k, double alpha, Rows<const double> a, Rows<const double> b, double beta, Rows<double> c,
             std::int64_t batch) {
  ECHELON_CUDA(cublasDgemmStridedBatched_64(blas, op_a, op_b, m, n, k, &alpha, a.data, a.row, a.sample, b.data, b.row,
                                            b.sample, &beta, c.data, c.row, c.sample, batch));
}

template <class T>
class Attention final : public Op {
 public:
  Attention(const Context& context, const OpSpec& spec)
      : context_(context),
        d_(std::get<AttentionDims>(spec.dims)),
        forward_(spec.kind == OpKind::attention_forward),
        text_(spec.text()) {}

  std::size_t saved_bytes() const override {
    return static_cast<std::size_t>(d_.N * d_.heads * d_.T * d_.S) * sizeof(T);
  }
  std::size_t scratch_bytes() const override { return forward_ ? 0 : saved_bytes(); }
  std::string implementation() const override { return "cublas gemm and kernels"; }

  void run(const OpArgs& args) override {
    context_.use();
    forward_ ? forward(args) : backward(args);
    check_launch(text_);
  }

 private:
  double scale() const { return 1 / std::sqrt(static_cast<double>(d_.head())); }
  template <class U>
  Rows<U> queries(U* data, std::int64_t h) const {
    return {data + h * d_.head(), d_.D, d_.T * d_.D};
  }
  template <class U>
  Rows<U> keys(U* data, std::int64_t h) const {
    return {data + h * d_.head(), d_.D, d_.S * d_.D};
  }
  template <class U>
  Rows<U> square(U* data, std::int64_t h) const {
    return {data + h * d_.T * d_.S, d_.S, d_.heads * d_.T * d_.S};
  }

  // c (T, S) = alpha a (T, head) b (S, head)^T
  void outer(double alpha, Rows<const T> a, Rows<const T> b, Rows<T> c) const {
    batched(context_.blas(), CUBLAS_OP_T, CUBLAS_OP_N, d_.S, d_.T, d_.head(), static_cast<T>(alpha), b, a, T(0), c,
            d_.N);
  }
  // c (T, head) = p (T, S) b (S, head)
  void along(Rows<const T> p, Rows<const T> b, bool add, Rows<T> c) const {
    batched(context_.blas(), CUBLAS_OP_N, CUBLAS_OP_N, d_.head(), d_.T, d_.S, T(1), b, p, add ? T(1) : T(0), c, d_.N);
  }
  // c (S, head) = p (T, S)^T b (T, head)
  void across(Rows<const T> p, Rows<const T> b, bool add, Rows<T> c) const {
    batched(context_.blas(), CUBLAS_OP_N, CUBLAS_OP_T, d_.head(), d_.S, d_.T, T(1), b, p, add ? T(1) : T(0), c, d_.N);
  }

  void forward(const OpArgs& a) const {
    const T *q = tensor<const T>(a, 0), *k = tensor<const T>(a, 1), *v = tensor<const T>(a, 2);
    auto* p = static_cast<T*>(a.saved);
    for (std::int64_t h = 0; h < d_.heads; ++h) outer(scale(), queries(q, h), keys(k, h), square(p, h));
    attention_softmax(d_, d_.lengths ? tensor<const std::int32_t>(a, 3) : nullptr, p, context_.stream());
    T* y = tensor<T>(a, d_.lengths ? 4 : 3);
    for (std::int64_t h = 0; h < d_.heads; ++h)
      along(square(static_cast<const T*>(p), h), keys(v, h), false, queries(y, h));
  }

  void backward(const OpArgs& a) const {
    const int first = d_.lengths ? 4 : 3;
    const T *q = tensor<const T>(a, 0), *k = tensor<const T>(a, 1), *v = tensor<const T>(a, 2);
    const T *dy = tensor<const T>(a, first), *p = static_cast<const T*>(a.saved);
    auto* da = static_cast<T*>(a.scratch);
    for (std::int64_t h = 0; h < d_.heads; ++h) {
      across(square(p, h), queries(dy, h), adds(a, first + 3), keys(tensor<T>(a, first + 3), h));
      outer(1, queries(dy, h), keys(v, h), square(da, h));
    }
    attention_softmax_backward(d_, p, scale(), da, context_.stream());
    for (std::int64_t h = 0; h < d_.heads; ++h) {
      const Rows<const T> pull = square(static_cast<const T*>(da), h);
      along(pull, keys(k, h), adds(a, first + 1), queries(tensor<T>(a, first + 1), h));
      across(pull, queries(q, h), adds(a, first + 2), keys(tensor<T>(a, first + 2), h));
    }
  }

  const Context& context_;
  AttentionDims d_;
  bool forward_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Op> make_attention(const Context& context, const OpSpec& spec) {
  return with_float(spec.dtype,
                    [&]<class T>(T) -> std::unique_ptr<Op> { return std::make_unique<Attention<T>>(context, spec); });
}

}  // namespace echelon::cuda
