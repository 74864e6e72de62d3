// Bodies of oneDNN 2.6 that compute wrong values at some shapes, found by random shapes: which are not taken, and which
// are given scratch of zeros.
#pragma once

#include "device/onednn/conv_problem.hpp"

namespace echelon::inline device::onednn {

// Whether a body computes wrong values, or writes beyond its memory, at these shapes.
bool errs(const ConvProblem& problem, const dnnl::convolution_forward::primitive_desc& made);
bool errs(const ConvProblem& problem, const dnnl::convolution_backward_data::primitive_desc& made);
bool errs(const ConvProblem& problem, const dnnl::convolution_backward_weights::primitive_desc& made);

// Whether backward weights read scratch that they did not write: where some row or column of the kernel meets padding
// alone, bodies in bf16 multiply what the scratch held by zeros, and NaN or infinity survives that.
bool reads_old_scratch(const ConvProblem& problem);

}  // namespace echelon::inline device::onednn
