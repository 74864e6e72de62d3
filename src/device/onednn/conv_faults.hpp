// SPDX-License-Identifier: Apache-2.0
// Implementations of oneDNN 2.6 and 3.6 that compute wrong values for some shapes, found by tests with random shapes:
// some are not used, others get zeroed scratch memory.
#pragma once

#include "device/onednn/conv_problem.hpp"

namespace echelon::inline device::onednn {

// Whether an implementation computes wrong values, or writes beyond its memory, for these shapes.
bool errs(const ConvProblem& problem, const dnnl::convolution_forward::primitive_desc& made);
bool errs(const ConvProblem& problem, const dnnl::convolution_backward_data::primitive_desc& made);
bool errs(const ConvProblem& problem, const dnnl::convolution_backward_weights::primitive_desc& made);

// Whether backward weights read scratch memory that they have not written: if a row or column of the kernel meets
// only padding, or images are volumes, bf16 implementations multiply the old content of the scratch by zeros, and
// NaN or infinity survives that.
bool reads_old_scratch(const ConvProblem& problem);

}  // namespace echelon::inline device::onednn
