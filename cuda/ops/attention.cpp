// SPDX-License-Identifier: Apache-2.0
// Attention through cuBLAS, one batch over samples and heads for each product; the probabilities are kept for the
// backward pass.
//
// The matrices of heads have no constant distance over samples and heads at once, so the batch uses arrays of pointers
// (cublasGemmBatchedEx), which a kernel writes to scratch. The comment of each call is in row-major terms
// (cuda/blas.hpp). Halves: products are summed and left in f32, probabilities and their gradients are rounded as
// factors of the next product.
#include <cmath>
#include <memory>

#include "cuda/blas.hpp"
#include "cuda/check.hpp"
#include "cuda/kernel_op.hpp"
#include "cuda/kernels/head_pointers.hpp"
#include "cuda/kernels/sequence.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

// The matrices of all samples and heads of a tensor; row, head and sample are distances in elements.
template <class T>
struct Heads {
  T* data;
  std::int64_t row, head, sample;
  int slot;  // index of its array of pointers
};

// Products over N samples and `heads` heads. All tensors must be added before point(), and products follow it.
class HeadBatch {
 public:
  HeadBatch(const Context& context, const AttentionDims& d, bool halves, void* pointers)
      : context_(context),
        d_(d),
        as_one_(d.heads > 1),
        halves_(halves),
        pointers_(static_cast<const void**>(pointers)) {}

  static std::size_t pointer_bytes(const AttentionDims& d, int tensors) {
    return static_cast<std::size_t>(tensors * d.N * d.heads) * sizeof(void*);
  }

  // (positions, head) of a tensor (N, positions, D)
  template <class T>
  Heads<T> rows(T* data, std::int64_t positions) {
    return added(Heads<T>{data, d_.D, d_.head(), positions * d_.D, 0});
  }
  // (T, S) of a tensor (N, heads, T, S)
  template <class T>
  Heads<T> squares(T* data) {
    return added(Heads<T>{data, d_.S, d_.T * d_.S, d_.heads * d_.T * d_.S, 0});
  }
  void point() const {
    if (as_one_) write_head_pointers(tensors_, d_.N, d_.heads, pointers_, context_.stream());
  }

  // Column-major c (m, n) = alpha op(a) op(b) + beta * c, k the inner extent, for each sample and head.
  template <class T, class Out>
  void multiply(cublasOperation_t op_a, cublasOperation_t op_b, const GemmExtents& e, Wide<T> alpha,
                const Heads<const T>& a, const Heads<const T>& b, bool add, const Heads<Out>& c) const {
    const Wide<T> beta = add ? 1 : 0;
    constexpr cudaDataType kIn = kBlasType<T>, kOut = kBlasType<Out>;
    constexpr cublasComputeType_t kSums = blas_compute<T>(false);
    if (as_one_) {
      ECHELON_CUDA(cublasGemmBatchedEx_64(context_.blas(), op_a, op_b, e.m, e.n, e.k, &alpha, pointers(a), kIn, a.row,
                                          pointers(b), kIn, b.row, &beta, const_cast<void* const*>(pointers(c)), kOut,
                                          c.row, d_.N * d_.heads, kSums, CUBLAS_GEMM_DEFAULT));
      return;
    }
    for (std::int64_t h = 0; h < d_.heads; ++h)
      ECHELON_CUDA(cublasGemmStridedBatchedEx_64(context_.blas(), op_a, op_b, e.m, e.n, e.k, &alpha,
                                                 a.data + h * a.head, kIn, a.row, a.sample, b.data + h * b.head, kIn,
                                                 b.row, b.sample, &beta, c.data + h * c.head, kOut, c.row, c.sample,
                                                 d_.N, kSums, CUBLAS_GEMM_DEFAULT));
  }

 private:
  // cuBLAS selects its kernels before it sees pointers in arrays, and those of halves may load 16 bytes at once: if a
  // matrix does not begin at a multiple of 16 bytes, the heads are processed one by one.
  template <class T>
  Heads<T> added(Heads<T> heads) {
    heads.slot = tensors_.count++;
    const auto bytes = [](std::int64_t elems) { return elems * static_cast<std::int64_t>(sizeof(T)); };
    tensors_.of[heads.slot] = {heads.data, bytes(heads.sample), bytes(heads.head)};
    if (halves_ && !(aligned(heads.data) && bytes(heads.sample) % 16 == 0 && bytes(heads.head) % 16 == 0))
      as_one_ = false;
    return heads;
  }
  template <class T>
  const void* const* pointers(const Heads<T>& heads) const {
    return pointers_ + heads.slot * d_.N * d_.heads;
  }

  const Context& context_;
  const AttentionDims& d_;
  bool as_one_, halves_;
  const void** pointers_;
  HeadTensors tensors_{};
};

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
  // Pointers; products if halves are not wide enough for them; the gradient of the probabilities.
  std::size_t scratch_bytes() const override {
    return pointer_bytes() + (kHalf<T> ? squares_ * sizeof(P) : 0) + (forward_ ? 0 : squares_ * sizeof(T));
  }
  std::string implementation() const override { return "cublas gemm and kernels"; }

  void run(const OpArgs& args) override {
    context_.use();
    forward_ ? forward(args) : backward(args);
    check_launch(text_);
  }

 private:
  using P = Wide<T>;  // type of products
  using In = Heads<const T>;

  double scale() const { return 1 / std::sqrt(static_cast<double>(d_.head())); }
  HeadBatch batch(const OpArgs& a) const { return {context_, d_, kHalf<T>, a.scratch}; }
  // A multiple of 16 bytes, because the memory behind it requires that alignment.
  std::size_t pointer_bytes() const { return HeadBatch::pointer_bytes(d_, forward_ ? 6 : 10); }
  std::byte* behind_pointers(const OpArgs& a) const { return static_cast<std::byte*>(a.scratch) + pointer_bytes(); }

  // c (T, S) = alpha a (T, head) b (S, head)^T
  void outer(const HeadBatch& batch, double alpha, const In& a, const In& b, const Heads<P>& c) const {
    batch.multiply<T, P>(CUBLAS_OP_T, CUBLAS_OP_N, {d_.S, d_.T, d_.head()}, static_cast<P>(alpha), b, a, false, c);
  }
  // c (T, head) = p (T, S) b (S, head)
  void along(const HeadBatch& batch, const In& p, const In& b, bool add, const Heads<T>& c) const {
    batch.multiply<T, T>(CUBLAS_OP_N, CUBLAS_OP_N, {d_.head(), d_.T, d_.S}, 1, b, p, add, c);
  }
  // c (S, head) = p (T, S)^T b (T, head)
  void across(const HeadBatch& batch, const In& p, const In& b, bool add, const Heads<T>& c) const {
    batch.multiply<T, T>(CUBLAS_OP_N, CUBLAS_OP_T, {d_.head(), d_.S, d_.T}, 1, b, p, add, c);
  }

  // Memory for products: scratch for halves, else already the memory of the rounded ones.
  P* products(const OpArgs& a, T* rounded) const {
    if constexpr (kHalf<T>)
      return reinterpret_cast<P*>(behind_pointers(a));
    else
      return rounded;
  }

  void forward(const OpArgs& a) const {
    auto* p = static_cast<T*>(a.saved);
    P* scores = products(a, p);
    HeadBatch b = batch(a);
    const In q = b.rows(tensor<const T>(a, 0), d_.T), k = b.rows(tensor<const T>(a, 1), d_.S);
    const In v = b.rows(tensor<const T>(a, 2), d_.S), weights = b.squares(static_cast<const T*>(p));
    const Heads<P> square = b.squares(scores);
    const Heads<T> y = b.rows(tensor<T>(a, d_.lengths ? 4 : 3), d_.T);
    b.point();
    outer(b, scale(), q, k, square);
    attention_softmax(d_, d_.lengths ? tensor<const std::int32_t>(a, 3) : nullptr, scores, p, context_.stream());
    along(b, weights, v, false, y);
  }

  void backward(const OpArgs& a) const {
    const int first = d_.lengths ? 4 : 3;
    const T* p = static_cast<const T*>(a.saved);
    T* ds = reinterpret_cast<T*>(behind_pointers(a) + (kHalf<T> ? squares_ * sizeof(P) : 0));
    P* da = products(a, ds);
    HeadBatch b = batch(a);
    const In q = b.rows(tensor<const T>(a, 0), d_.T), k = b.rows(tensor<const T>(a, 1), d_.S);
    const In v = b.rows(tensor<const T>(a, 2), d_.S), dy = b.rows(tensor<const T>(a, first), d_.T);
    const In weights = b.squares(p), pull = b.squares(static_cast<const T*>(ds));
    const Heads<P> square = b.squares(da);
    const Heads<T> dq = b.rows(tensor<T>(a, first + 1), d_.T), dk = b.rows(tensor<T>(a, first + 2), d_.S);
    const Heads<T> dv = b.rows(tensor<T>(a, first + 3), d_.S);
    b.point();
    across(b, weights, dy, adds(a, first + 3), dv);
    outer(b, 1, dy, v, square);
    attention_softmax_backward(d_, p, scale(), da, ds, context_.stream());
    along(b, pull, k, adds(a, first + 1), dq);
    across(b, pull, q, adds(a, first + 2), dk);
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
