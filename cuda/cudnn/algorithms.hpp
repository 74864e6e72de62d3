// Which of cuDNN's convolution algorithms may run: deterministic ones, exact to a few roundings of the dtype, with a
// capped workspace; best first by the library's own heuristics.
//
// FFT algorithms and the non-fused Winograd are left out: in f32 they lose two or three digits against plain sums, more
// than the bounds that replicas are held to.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda/context.hpp"
#include "cuda/cudnn/descriptors.hpp"
#include "device/op_spec.hpp"

namespace echelon::cuda {

inline constexpr std::size_t kWorkspaceCapBytes = std::size_t{256} << 20;

struct Algorithm {
  int id = 0;  // cudnnConvolution{Fwd,BwdData,BwdFilter}Algo_t
  std::size_t workspace_bytes = 0;
};

// kind: one of the three conv kinds. Empty where the library has none that will do.
std::vector<Algorithm> conv_algorithms(const Context& context, OpKind kind, const ConvDescriptors& of);

}  // namespace echelon::cuda
