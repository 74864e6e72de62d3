// Attention through cuBLAS, one strided batch over samples for each head; the probabilities are kept for the way back.
//
// The comment of each call is in row-major terms (cuda/blas.hpp). Halves: products are summed and left in
// f32, probabilities and their gradients are rounded as factors of the next product.
#include <cmath>
#include <memory>

#include "cuda/blas.hpp"
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

// Column-major c (m, n) = alpha op(a) op(b) + beta * c, k the inner extent, for each of `batch` samples.
template <class T, class Out>
void batched(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m, std::int64_t n,
             std::int64_t k, Wide<T> alpha, Rows<const T> a, Rows<const T> b, bool add, Rows<Out> c,
             std::int64_t batch) {
  const Wide<T> beta = add ? 1 : 0;
  ECHELON_CUDA(cublasGemmStridedBatchedEx_64(blas, op_a, op_b, m, n, k, &alpha, a.data, kBlasType<T>, a.row, a.sample,
                                             b.data, kBlasType<T>, b.row, b.sample, &beta, c.data, kBlasType<Out>,
                                             c.row, c.sample, batch, blas_compute<T>(false), CUBLAS_GEMM_DEFAULT));
}

template <class T>
class Attention final : public Op {
 public:
  Attention(const Context& context, const OpSpec& spec)
      : context_(context),
        d_(std::get<AttentionDims>(spec.dims)),
        forward_(spec.kind == OpKind::attention_forward),
        text_(spec.text()),
        squares_(static_cast<std::size_t>(d_.N * d_.heads * d_.T * d_.S)) {}

  std::size_t saved_bytes() const override { return squares_ * sizeof(T); }
  // What products are left in where halves are not wide enough for them, and the gradient of the probabilities.
  std::size_t scratch_bytes() const override {
    return (kHalf<T> ? squares_ * sizeof(P) : 0) + (forward_ ? 0 : squares_ * sizeof(T));
  }
  std::string implementation() const override { return "cublas gemm and kernels"; }

  void run(const OpArgs& args) override {
    context_.use();
    forward_ ? forward(args) : backward(args);
    check_launch(text_);
  }

 private:
  using P = Wide<T>;  // of products

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
  void outer(double alpha, Rows<const T> a, Rows<const T> b, Rows<P> c) const {
    batched<T>(context_.blas(), CUBLAS_OP_T, CUBLAS_OP_N, d_.S, d_.T, d_.head(), static_cast<P>(alpha), b, a, false, c,
               d_.N);
  }
  // c (T, head) = p (T, S) b (S, head)
  void along(Rows<const T> p, Rows<const T> b, bool add, Rows<T> c) const {
    batched<T>(context_.blas(), CUBLAS_OP_N, CUBLAS_OP_N, d_.head(), d_.T, d_.S, 1, b, p, add, c, d_.N);
  }
  // c (S, head) = p (T, S)^T b (T, head)
  void across(Rows<const T> p, Rows<const T> b, bool add, Rows<T> c) const {
    batched<T>(context_.blas(), CUBLAS_OP_N, CUBLAS_OP_T, d_.head(), d_.S, d_.T, 1, b, p, add, c, d_.N);
  }

  // Where products lie: in scratch, or, but for halves, already where the rounded ones will.
  P* products(const OpArgs& a, T* rounded) const {
    if constexpr (kHalf<T>)
      return static_cast<P*>(a.scratch);
    else
      return rounded;
  }

  void forward(const OpArgs& a) const {
    const T *q = tensor<const T>(a, 0), *k = tensor<const T>(a, 1), *v = tensor<const T>(a, 2);
    auto* p = static_cast<T*>(a.saved);
    P* scores = products(a, p);
    for (std::int64_t h = 0; h < d_.heads; ++h) outer(scale(), queries(q, h), keys(k, h), square(scores, h));
    attention_softmax(d_, d_.lengths ? tensor<const std::int32_t>(a, 3) : nullptr, scores, p, context_.stream());
    T* y = tensor<T>(a, d_.lengths ? 4 : 3);
    for (std::int64_t h = 0; h < d_.heads; ++h)
      along(square(static_cast<const T*>(p), h), keys(v, h), false, queries(y, h));
  }

  void backward(const OpArgs& a) const {
    const int first = d_.lengths ? 4 : 3;
    const T *q = tensor<const T>(a, 0), *k = tensor<const T>(a, 1), *v = tensor<const T>(a, 2);
    const T *dy = tensor<const T>(a, first), *p = static_cast<const T*>(a.saved);
    T* ds = static_cast<T*>(a.scratch) + (kHalf<T> ? squares_ * sizeof(P) / sizeof(T) : 0);
    P* da = products(a, ds);
    for (std::int64_t h = 0; h < d_.heads; ++h) {
      across(square(p, h), queries(dy, h), adds(a, first + 3), keys(tensor<T>(a, first + 3), h));
      outer(1, queries(dy, h), keys(v, h), square(da, h));
    }
    attention_softmax_backward(d_, p, scale(), da, ds, context_.stream());
    for (std::int64_t h = 0; h < d_.heads; ++h) {
      const Rows<const T> pull = square(static_cast<const T*>(ds), h);
      along(pull, keys(k, h), adds(a, first + 1), queries(tensor<T>(a, first + 1), h));
      across(pull, queries(q, h), adds(a, first + 2), keys(tensor<T>(a, first + 2), h));
    }
  }

  const Context& context_;
  AttentionDims d_;
  bool forward_;
  std::string text_;
  std::size_t squares_;  // elements of the probabilities
};

}  // namespace

std::unique_ptr<Op> make_attention(const Context& context, const OpSpec& spec) {
  return with_type(spec.dtype,
                   [&]<class T>(T) -> std::unique_ptr<Op> { return std::make_unique<Attention<T>>(context, spec); });
}

}  // namespace echelon::cuda
