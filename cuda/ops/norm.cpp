// Batch norm: the four ops, the fused local pair, running statistics and inference.
#include "cuda/kernels/norm.hpp"

#include <memory>

#include "base/check.hpp"
#include "cuda/kernel_op.hpp"
#include "cuda/kernels/channel_sums.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

// One norm op of element type T; its methods are the bodies, arguments by the signature's order.
template <class T>
struct Norm {
  NormExtents e;
  double epsilon;

  double count(const OpArgs& a) const {
    return a.count > 0 ? a.count : static_cast<double>(e.N) * static_cast<double>(e.elems);
  }
  std::size_t partial_bytes() const { return channel_scratch_bytes(e.N, e.C, 2); }
  // The local pair keeps its sums (2, C) behind the partial ones.
  double* local_sums(const OpArgs& a) const {
    return static_cast<double*>(a.scratch) + partial_bytes() / sizeof(double);
  }
  std::size_t local_bytes() const { return partial_bytes() + static_cast<std::size_t>(2 * e.C) * sizeof(double); }

  void moments(const OpArgs& a, cudaStream_t stream) const {
    norm_moments(e, tensor<const T>(a, 0), tensor<double>(a, 1), a.scratch, stream);
  }
  // x gamma beta sums -> y stats
  void normalise(const OpArgs& a, cudaStream_t stream) const {
    norm_stats(e.C, tensor<const double>(a, 3), count(a), epsilon, tensor<double>(a, 5), stream);
    norm_apply(e, tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<const T>(a, 2), tensor<const double>(a, 5),
               tensor<T>(a, 4), stream);
  }
  // x dy stats -> sums dgamma dbeta
  void backward_sums(const OpArgs& a, cudaStream_t stream) const {
    norm_backward_sums(e, tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<const double>(a, 2),
                       tensor<double>(a, 3), a.scratch, stream);
    norm_parameter_gradients(e.C, tensor<const double>(a, 3), tensor<T>(a, 4), adds(a, 4), tensor<T>(a, 5), adds(a, 5),
                             stream);
  }
  // x dy stats gamma sums -> dx
  void backward_apply(const OpArgs& a, cudaStream_t stream) const {
    norm_backward_apply(e, tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<const double>(a, 2),
                        tensor<const T>(a, 3), tensor<const double>(a, 4), count(a), tensor<T>(a, 5), adds(a, 5),
                        stream);
  }
  // x gamma beta -> y stats
  void local_forward(const OpArgs& a, cudaStream_t stream) const {
    double* sums = local_sums(a);
    norm_moments(e, tensor<const T>(a, 0), sums, a.scratch, stream);
    norm_stats(e.C, sums, count({}), epsilon, tensor<double>(a, 4), stream);
    norm_apply(e, tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<const T>(a, 2), tensor<const double>(a, 4),
               tensor<T>(a, 3), stream);
  }
  // x dy stats gamma -> dx dgamma dbeta
  void local_backward(const OpArgs& a, cudaStream_t stream) const {
    double* sums = local_sums(a);
    norm_backward_sums(e, tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<const double>(a, 2), sums, a.scratch,
                       stream);
    norm_parameter_gradients<T>(e.C, sums, tensor<T>(a, 5), adds(a, 5), tensor<T>(a, 6), adds(a, 6), stream);
    norm_backward_apply<T>(e, tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<const double>(a, 2),
                           tensor<const T>(a, 3), sums, count({}), tensor<T>(a, 4), adds(a, 4), stream);
  }
  // stats -> dmean dvar
  void statistics(const OpArgs& a, cudaStream_t stream) const {
    norm_statistics(e.C, tensor<const double>(a, 0), epsilon, a.scale, count(a), tensor<T>(a, 1), adds(a, 1),
                    tensor<T>(a, 2), adds(a, 2), stream);
  }
  // x gamma beta mean var -> y
  void inference(const OpArgs& a, cudaStream_t stream) const {
    norm_inference(e, tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<const T>(a, 2), tensor<const T>(a, 3),
                   tensor<const T>(a, 4), epsilon, tensor<T>(a, 5), stream);
  }
};

template <class T>
std::unique_ptr<Op> make(const Context& context, const OpSpec& spec) {
  const auto& d = std::get<NormDims>(spec.dims);
  const Norm<T> norm{{d.N, d.C, d.H * d.W}, d.epsilon};
  const auto op = [&](void (Norm<T>::*body)(const OpArgs&, cudaStream_t) const, std::size_t scratch) {
    return std::make_unique<KernelOp>(
        context, spec, [norm, body](const OpArgs& args, cudaStream_t stream) { (norm.*body)(args, stream); }, scratch);
  };
  switch (spec.kind) {
    case OpKind::norm_moments: return op(&Norm<T>::moments, norm.partial_bytes());
    case OpKind::norm_normalise: return op(&Norm<T>::normalise, 0);
    case OpKind::norm_backward_sums: return op(&Norm<T>::backward_sums, norm.partial_bytes());
    case OpKind::norm_backward_apply: return op(&Norm<T>::backward_apply, 0);
    case OpKind::norm_local_forward: return op(&Norm<T>::local_forward, norm.local_bytes());
    case OpKind::norm_local_backward: return op(&Norm<T>::local_backward, norm.local_bytes());
    case OpKind::norm_statistics: return op(&Norm<T>::statistics, 0);
    case OpKind::norm_inference: return op(&Norm<T>::inference, 0);
    default: break;
  }
  ECHELON_CHECK(false, "no norm op: {}", spec.text());
  return nullptr;
}

}  // namespace

std::unique_ptr<Op> make_norm(const Context& context, const OpSpec& spec) {
  return with_float(spec.dtype, [&]<class T>(T) { return make<T>(context, spec); });
}

}  // namespace echelon::cuda
