// SPDX-License-Identifier: Apache-2.0
// Selects the cuDNN convolution algorithms that may run: all deterministic ones whose workspace stays below
// device.workspace_mb. Those that are exact to a few roundings of the dtype come first, ordered by the library's own
// heuristics.
//
// FFT algorithms and the non-fused Winograd come last: in f32 they lose two or three digits compared with plain sums,
// which exceeds the bounds that replicas are held to. In halves every Winograd does. If one of them is chosen, a
// warning names it. ALGO_0 of backward data and ALGO_0 and ALGO_3 of backward filter add up with atomics and are never
// used.
#pragma once

#include <string>

#include "cuda/context.hpp"
#include "cuda/cudnn/descriptors.hpp"
#include "cuda/cudnn/ranked.hpp"
#include "device/op_spec.hpp"

namespace echelon::cuda {

// kind: one of the three conv kinds, of the descriptors' dtype. `usable` is empty if the library has no suitable one.
Ranked conv_algorithms(const Context& context, OpKind kind, DType dtype, const ConvDescriptors& of);

// Returns "cuDNN has no deterministic algorithm", or the algorithms that would need more workspace, and how much.
std::string nothing_usable_text(const Context& context, const Ranked& ranked);

// The layout in which a convolution of halves runs fastest: channels_last, which tensor cores read, if the library has
// an algorithm for it, else plain, with a warning.
Layout half_conv_layout(const Context& context, const OpSpec& spec);

// Whether cuDNN can run the spec: its extents are ints, and no tensor may have 2^31 elements or more.
bool fits_cudnn(const OpSpec& spec);

}  // namespace echelon::cuda
