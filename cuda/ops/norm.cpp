// SPDX-License-Identifier: Apache-2.0
// Batch norm: the four ops, the fused local pair, running statistics, inference and renorm's correction.
#include "cuda/kernels/norm.hpp"

#include <memory>

#include "base/check.hpp"
#include "cuda/kernel_op.hpp"
#include "cuda/kernels/channel_sums.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

// A norm op of element type T; each method runs one kind, with arguments in the order of its signature.
template <class T>
struct Norm {
  using P = Wide<T>;  // type of parameters
  NormExtents e;
  double epsilon, r_max, d_max;

  // For ops whose first arguments are x dy stats [gamma [beta]].
  NormGradient<T> gradient(const OpArgs& a, bool gamma) const {
    return {tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<const double>(a, 2),
            gamma || e.relu ? tensor<const P>(a, 3) : nullptr, e.relu ? tensor<const P>(a, 4) : nullptr};
  }
  double count(const OpArgs& a) const {
    return a.count > 0 ? a.count : static_cast<double>(e.N) * static_cast<double>(e.elems);
  }
  std::size_t partial_bytes() const { return channel_scratch_bytes(e, 2); }
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
    norm_apply(e, tensor<const T>(a, 0), tensor<const P>(a, 1), tensor<const P>(a, 2), tensor<const double>(a, 5),
               tensor<T>(a, 4), stream);
  }
  // x dy stats [gamma beta] -> sums dgamma dbeta
  void backward_sums(const OpArgs& a, cudaStream_t stream) const {
    const int out = e.relu ? 5 : 3;
    norm_backward_sums(e, gradient(a, false), tensor<double>(a, out), a.scratch, stream);
    norm_parameter_gradients(e.C, tensor<const double>(a, out), tensor<P>(a, out + 1), adds(a, out + 1),
                             tensor<P>(a, out + 2), adds(a, out + 2), stream);
  }
  // x dy stats gamma [beta] sums -> dx
  void backward_apply(const OpArgs& a, cudaStream_t stream) const {
    const int sums = e.relu ? 5 : 4;
    norm_backward_apply(e, gradient(a, true), tensor<const double>(a, sums), count(a), tensor<T>(a, sums + 1),
                        adds(a, sums + 1), stream);
  }
  // x gamma beta -> y stats
  void local_forward(const OpArgs& a, cudaStream_t stream) const {
    double* sums = local_sums(a);
    norm_moments(e, tensor<const T>(a, 0), sums, a.scratch, stream);
    norm_stats(e.C, sums, count({}), epsilon, tensor<double>(a, 4), stream);
    norm_apply(e, tensor<const T>(a, 0), tensor<const P>(a, 1), tensor<const P>(a, 2), tensor<const double>(a, 4),
               tensor<T>(a, 3), stream);
  }
  // x dy stats gamma [beta] -> dx dgamma dbeta
  void local_backward(const OpArgs& a, cudaStream_t stream) const {
    const int out = e.relu ? 5 : 4;
    double* sums = local_sums(a);
    norm_backward_sums(e, gradient(a, true), sums, a.scratch, stream);
    norm_parameter_gradients<P>(e.C, sums, tensor<P>(a, out + 1), adds(a, out + 1), tensor<P>(a, out + 2),
                                adds(a, out + 2), stream);
    norm_backward_apply<T>(e, gradient(a, true), sums, count({}), tensor<T>(a, out), adds(a, out), stream);
  }
  // stats -> dmean dvar
  void statistics(const OpArgs& a, cudaStream_t stream) const {
    norm_statistics(e.C, tensor<const double>(a, 0), epsilon, a.scale, count(a), tensor<P>(a, 1), adds(a, 1),
                    tensor<P>(a, 2), adds(a, 2), stream);
  }
  // x gamma beta mean var -> y
  void inference(const OpArgs& a, cudaStream_t stream) const {
    norm_inference(e, tensor<const T>(a, 0), tensor<const P>(a, 1), tensor<const P>(a, 2), tensor<const P>(a, 3),
                   tensor<const P>(a, 4), epsilon, tensor<T>(a, 5), stream);
  }
  // sums gamma beta mean var -> gamma2 beta2 correction
  void renorm(const OpArgs& a, cudaStream_t stream) const {
    norm_renorm(e.C, tensor<const double>(a, 0), count(a), epsilon, r_max, d_max, tensor<const P>(a, 1),
                tensor<const P>(a, 2), tensor<const P>(a, 3), tensor<const P>(a, 4), tensor<P>(a, 5), tensor<P>(a, 6),
                tensor<P>(a, 7), stream);
  }
  // dgamma2 dbeta2 correction -> dgamma dbeta
  void renorm_backward(const OpArgs& a, cudaStream_t stream) const {
    norm_renorm_backward(e.C, tensor<const P>(a, 0), tensor<const P>(a, 1), tensor<const P>(a, 2), tensor<P>(a, 3),
                         adds(a, 3), tensor<P>(a, 4), adds(a, 4), stream);
  }
};

template <class T>
std::unique_ptr<Op> make(const Context& context, const OpSpec& spec) {
  const auto& d = std::get<NormDims>(spec.dims);
  const Norm<T> norm{{channel_extents(d.N, d.C, d.H * d.W, spec.layouts[0]), d.relu}, d.epsilon, d.r_max, d.d_max};
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
    case OpKind::norm_renorm: return op(&Norm<T>::renorm, 0);
    case OpKind::norm_renorm_backward: return op(&Norm<T>::renorm_backward, 0);
    default: break;
  }
  ECHELON_CHECK(false, "{} is not an op of batch norm", spec.text());
  return nullptr;
}

}  // namespace

std::unique_ptr<Op> make_norm(const Context& context, const OpSpec& spec) {
  return with_type(spec.dtype, [&]<class T>(T) { return make<T>(context, spec); });
}

}  // namespace echelon::cuda
