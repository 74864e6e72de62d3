// SPDX-License-Identifier: Apache-2.0
// The layouts in which convolutions compute: those that were measured, or a rule that prefers what the library's
// generated code takes.
#include <string_view>

#include "device/onednn/conv_faults.hpp"

namespace echelon::inline device::onednn {
namespace {

bool starts_with(const char* implementation, std::string_view name) {
  return std::string_view(implementation).starts_with(name);
}

// Whether all three directions run optimised code in exactly these layouts. The gradient of the weights of a dilated or
// depthwise volume has no better code than matrix products.
bool runs_fast(const Context& context, const ConvDims& d, const Precision& precision, const ConvLayouts& layouts) {
  const ConvProblem problem(d, precision);
  const auto x = ConvProblem::activation(problem.x, layouts.x, precision.type);
  const auto y = ConvProblem::activation(problem.y, layouts.y, precision.type);
  const auto fast = [&](const auto& made) {
    const char* name = made.impl_info_str();
    return (starts_with(name, "jit") || starts_with(name, "brg")) && !errs(problem, made);
  };
  const auto fast_weights = [&](const auto& made) {
    return fast(made) || (problem.volume && !falls_back(made.impl_info_str()) && !errs(problem, made));
  };
  try {
    return fast(problem.forward(context, x, y)) && (d.C < 8 || fast(problem.backward_data(context, x, y))) &&
           fast_weights(problem.backward_weights(context, x, y));
  } catch (const dnnl::error&) {
    return false;
  }
}

// Blocks of zero channels cost as much as others, so a quarter of the computed channels at most may be zero.
bool fills(std::int64_t channels, Layout layout) {
  const std::int64_t block = layout == Layout::blocked16 ? 16 : layout == Layout::blocked8 ? 8 : 1;
  return (channels + block - 1) / block * block * 3 <= channels * 4;
}

}  // namespace

ConvLayouts best_conv_layouts(const Context& context, const ConvDims& d, const Precision& precision, Layout given) {
  if (d.in.rank == 1) return {Layout::plain, Layout::plain};  // series have no other layout
  const Layout wide = context.blocked();
  constexpr Layout plain = Layout::plain, last = Layout::channels_last, eight = Layout::blocked8;
  const bool windows = computes_windows(d, precision);
  if (windows && given != plain && fills(d.C, given) && fills(d.K, given)) return {given, given};
  // The library uses matrix units in channels-last only, where they are 4 to 20 times as fast as blocks.
  const ConvLayout chosen = context.convs.of(d).layout;
  const bool prefers_last =
      chosen == ConvLayout::channels_last || (chosen == ConvLayout::rule && precision.halves() && context.amx());
  if (prefers_last && (windows || runs_fast(context, d, precision, {last, last}))) return {last, last};
  for (const ConvLayouts& pair : {ConvLayouts{plain, wide}, ConvLayouts{wide, wide}, ConvLayouts{plain, eight},
                                  ConvLayouts{eight, eight}, ConvLayouts{last, last}}) {
    const bool few = pair.x == plain;  // an image of up to 4 channels is read without a reorder
    if (few ? d.C > 4 : !fills(d.C, pair.x)) continue;
    if (fills(d.K, pair.y) && (windows || runs_fast(context, d, precision, pair))) return pair;
  }
  return {plain, plain};
}

}  // namespace echelon::inline device::onednn
