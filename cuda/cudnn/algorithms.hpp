// Which of cuDNN's convolution algorithms may run: deterministic ones, exact to a few roundings of the dtype, with a
// capped workspace; best first by the library's own heuristics.
//
// FFT algorithms and the non-fused Winograd are left out: in f32 they lose two or three digits against plain sums, more
// than the bounds that replicas are held to. In halves every Winograd is.
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

// kind: one of the three conv kinds, of the descriptors' dtype. Empty where the library has none that will do.
std::vector<Algorithm> conv_algorithms(const Context& context, OpKind kind, DType dtype, const ConvDescriptors& of);

// The layout in which a convolution of halves runs fastest: channels_last, as tensor cores read, where the library has
// an algorithm for it, else plain.
Layout half_conv_layout(const Context& context, const OpSpec& spec);

// Extents are ints to cuDNN, and no tensor may have 2^31 elements or more.
bool fits_cudnn(const OpSpec& spec);

}  // namespace echelon::cuda
