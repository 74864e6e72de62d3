// SPDX-License-Identifier: Apache-2.0
#include "device/onednn/conv_faults.hpp"

#include <algorithm>
#include <string_view>

namespace echelon::inline device::onednn {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

bool is(const char* implementation, std::string_view begins) {
  return std::string_view(implementation).starts_with(begins);
}
bool channels_last(const ConvProblem& problem, const Desc& y) {
  return y == Desc(problem.y, problem.type, problem.volume ? Tag::ndhwc : Tag::nhwc);
}
std::int64_t x_channels(const ConvProblem& problem) { return problem.x[1] / problem.groups; }
bool any_above(const ConvProblem::Extents& values, std::int64_t bound) {
  return std::any_of(values.begin(), values.end(), [&](std::int64_t value) { return value > bound; });
}
// Strided volumes: generated code reads and writes beyond its memory for some extents. Seen for weights in bf16; the
// extents were not isolated, so that all of it is avoided.
bool strides_volume(const ConvProblem& problem, const char* implementation) {
  return problem.volume && any_above(problem.strides, 1) && (is(implementation, "jit") || is(implementation, "brg"));
}
bool odd_y_channels(const ConvProblem& problem) { return (problem.y[1] / problem.groups) % 2 != 0; }

// Whether some cell of the kernel along spatial axis `at` is in padding at every output position.
bool meets_padding_alone(const ConvProblem& problem, std::size_t at) {
  const std::size_t axes = problem.strides.size(), axis = at + 2;
  const std::int64_t cells = problem.w[problem.w.size() - axes + at], extent = problem.x[axis];
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    bool inside = false;
    for (std::int64_t q = 0; q < problem.y[axis] && !inside; ++q) {
      const std::int64_t position = q * problem.strides[at] - problem.pads[at] + cell * (problem.dilates[at] + 1);
      inside = position >= 0 && position < extent;
    }
    if (!inside) return true;
  }
  return false;
}
bool any_meets_padding_alone(const ConvProblem& problem) {
  bool alone = false;
  for (std::size_t at = 0; at < problem.strides.size(); ++at) alone = alone || meets_padding_alone(problem, at);
  return alone;
}

}  // namespace

// A stride along columns. 2.6 writes beyond y with more than 64 channels that are not a multiple of 32, and with
// kernels of fewer rows than the stride of rows; seen from 33 channels on. 3.6 computes wrong values for some extents,
// which were not isolated.
bool errs(const ConvProblem& problem, const dnnl::convolution_forward::primitive_desc& made) {
  if (strides_volume(problem, made.impl_info_str())) return true;
  if (problem.strides.back() > 1 && is(made.impl_info_str(), "brg_conv_fwd:avx10_1_512_amx")) return true;
  const std::int64_t channels = x_channels(problem);
  const bool skips_rows = problem.w.end()[-2] < problem.strides.end()[-2];
  return is(made.impl_info_str(), "brgconv:avx512_core_amx") && problem.strides.back() > 1 &&
         (skips_rows || (channels > 64 && channels % 32 != 0));
}

// An odd number of channels, channels last: the second of the last pair is read from the next position. Seen in blocks
// of 30 positions.
bool errs(const ConvProblem& problem, const dnnl::convolution_backward_data::primitive_desc& made) {
  if (strides_volume(problem, made.impl_info_str())) return true;
  return odd_y_channels(problem) && is(made.impl_info_str(), "jit_bf16_1x1") &&
         channels_last(problem, made.diff_dst_desc());
}

bool errs(const ConvProblem& problem, const dnnl::convolution_backward_weights::primitive_desc& made) {
  const char* name = made.impl_info_str();
  if (strides_volume(problem, name)) return true;
  // Images narrower than the stride: it reads and writes beyond its own copy of them.
  if (is(name, "jit_bf16:") && problem.x.back() < problem.strides.back()) return true;
  // Channels last that do not fill blocks, with a stride: it writes beyond its own copy of x.
  const std::int64_t block = is(name, "jit_bf16_1x1") ? 16 : is(name, "jit_1x1:avx2") ? 8 : 1;
  if (channels_last(problem, made.diff_dst_desc()) && x_channels(problem) % block != 0 && any_above(problem.strides, 1))
    return true;
  // More than 32 channels that do not fill blocks, with a dilated kernel: it computes wrong sums.
  const bool dilated = any_above(problem.dilates, 0);
  return is(name, "jit:avx512_core_amx") && dilated && x_channels(problem) % 16 != 0;
}

bool reads_old_scratch(const ConvProblem& problem) {
  return problem.type != ConvProblem::Type::f32 && (problem.volume || any_meets_padding_alone(problem));
}

}  // namespace echelon::inline device::onednn
