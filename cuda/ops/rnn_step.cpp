// SPDX-License-Identifier: Apache-2.0
// One step of some units of a recurrent layer: a cuBLAS product and a kernel over the gates. Products are exact (no
// TF32), as are those of whole recurrent layers.
#include "cuda/kernels/rnn_step.hpp"

#include <memory>

#include "cuda/blas.hpp"
#include "cuda/kernel_op.hpp"
#include "cuda/make.hpp"
#include "device/ops/rnn_args.hpp"

namespace echelon::cuda {
namespace {

template <class T>
T* optional(const OpArgs& args, int index) {
  return index < 0 ? nullptr : tensor<T>(args, index);
}

// product (N, G*U) = h (N, H) weight_h (G*U, H)^T, then gates and states
template <class T>
std::unique_ptr<Op> forward(const Context& context, const OpSpec& spec) {
  const auto d = std::get<RnnStepDims>(spec.dims);
  const std::int64_t gates = d.G() * d.U;
  const auto run = [d, gates, &context, at = RnnStepArgs(spec)](const OpArgs& a, cudaStream_t stream) {
    T* product = static_cast<T*>(a.scratch);
    gemm(context, false, CUBLAS_OP_T, CUBLAS_OP_N, {gates, d.N, d.H}, tensor<const T>(a, at.weight_h), d.H,
         tensor<const T>(a, at.h), d.H, false, product, gates);
    rnn_step_forward<T>(d,
                        {.a = tensor<const T>(a, at.a),
                         .product = product,
                         .bias = tensor<const T>(a, at.bias_h),
                         .h = tensor<const T>(a, at.h),
                         .c = optional<const T>(a, at.c),
                         .lengths = optional<const std::int32_t>(a, at.lengths),
                         .h_next = tensor<T>(a, at.h_next),
                         .c_next = optional<T>(a, at.c_next),
                         .gates = tensor<T>(a, at.gates)},
                        stream);
  };
  return std::make_unique<KernelOp>(context, spec, run, static_cast<std::size_t>(d.N * gates) * sizeof(T));
}

// Gates' gradients, then dh (N, H) += db (N, G*U) of this step weight_h (G*U, H)
template <class T>
std::unique_ptr<Op> backward(const Context& context, const OpSpec& spec) {
  const auto d = std::get<RnnStepDims>(spec.dims);
  return std::make_unique<KernelOp>(
      context, spec, [d, &context, at = RnnStepArgs(spec)](const OpArgs& a, cudaStream_t stream) {
        T *da = tensor<T>(a, at.da), *db = optional<T>(a, at.db), *dh = tensor<T>(a, at.dh);
        rnn_step_backward<T>(d,
                             {.gates = tensor<const T>(a, at.gates),
                              .hs = optional<const T>(a, at.hs),
                              .c = optional<const T>(a, at.c),
                              .c_next = optional<const T>(a, at.c_next),
                              .dc_next = optional<const T>(a, at.dc_next),
                              .lengths = optional<const std::int32_t>(a, at.lengths),
                              .dy = optional<const T>(a, at.dy),
                              .dh_next = tensor<const T>(a, at.dh_next),
                              .da = da,
                              .db = db,
                              .dh = dh,
                              .dc = optional<T>(a, at.dc)},
                             stream);
        const std::int64_t gates = d.G() * d.U;
        const T* here = (db ? db : da) + d.t * gates;
        gemm(context, false, CUBLAS_OP_N, CUBLAS_OP_N, {d.H, d.N, gates}, tensor<const T>(a, at.weight_h), d.H, here,
             d.T * gates, true, dh, d.H);
      });
}

}  // namespace

std::unique_ptr<Op> make_rnn_step(const Context& context, const OpSpec& spec) {
  return with_float(spec.dtype, [&]<class T>(T) {
    return spec.kind == OpKind::rnn_step_forward ? forward<T>(context, spec) : backward<T>(context, spec);
  });
}

}  // namespace echelon::cuda
