// SPDX-License-Identifier: Apache-2.0
#include "device/onednn/step_product.hpp"

#include <omp.h>

#include <algorithm>

#include "device/onednn/panel_kernel.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

std::int64_t even(std::int64_t n) { return n + n % 2; }

}  // namespace

StepProduct::StepProduct(const Context& context, std::int64_t rows, std::int64_t inputs, std::int64_t outputs,
                         bool transposed, std::int64_t x_columns, const Precision& precision, bool rounded)
    : threads_(context.threads),
      avx512_(precision.rounds ? precision.halves() && context.avx512_bf16() : context.avx512()),
      takes_rounded_(rounded),
      form_(avx512_ || precision.rounds ? kPanels512 : kPanels256),
      rows_(rows),
      inputs_(inputs),
      outputs_(outputs),
      x_columns_(x_columns),
      panels_(panel_parts(outputs, form_.columns)),
      panel_elems_(panel_depth(inputs) * form_.columns),
      group_rows_(static_cast<int>(panel_parts(rows, panel_parts(rows, form_.rows)))) {
  if (precision.halves() && context.tiles()) {
    ScratchPlan plan;
    tiles_.emplace(context.device,
                   TileProductForm{.a = {{.halves = rounded, .step = x_columns}, rows, inputs, true, false},
                                   .b = {{.step = transposed ? inputs : outputs}, outputs, inputs, false, !transposed},
                                   .c = {.step = outputs},
                                   .weights = true,
                                   .threads = context.threads},
                   plan);
    packed_ = context.device.allocate(plan.bytes(), "rounded states");
    return;
  }
  if (precision.rounds) {
    halves_.emplace(context, inputs, outputs, transposed);
    rounded_ = context.device.allocate(static_cast<std::size_t>(rows * even(inputs)) * sizeof(BHalf), "rounded states");
    return;
  }
  using Tag = dnnl::memory::format_tag;
  const auto f32 = dnnl::memory::data_type::f32;
  const Factor w{inputs, outputs, transposed ? inputs : outputs, transposed};
  weights_ = PackedWeights(context, w.desc(f32), {{inputs, outputs}, f32, avx512_ ? Tag::BA16a32b : Tag::BA16a16b});
}

std::string StepProduct::implementation() const {
  if (tiles_) return "own tiles";
  if (!halves_) return "own panels";
  return avx512_ ? "own panels of bf16" : "own panels of bf16, plain loop";
}

void StepProduct::share_weights(const StepProduct& other) {
  if (tiles_ && other.tiles_) tiles_->share(*other.tiles_);
  if (halves_ && other.halves_) halves_->share(*other.halves_);
  weights_.share(other.weights_);
}

void StepProduct::run(const void* x, const float* w, std::uint64_t version, float* y) {
  if (tiles_)
    return tiles_->run({.a = x, .b = w, .c = y, .scratch = ScratchPlan::align(packed_.data()), .version = version});
  const auto* single = static_cast<const float*>(x);
  if (!halves_) return run_all(single, x_columns_, static_cast<const float*>(weights_.get(w, version)), y);
  if (takes_rounded_) return run_all(static_cast<const BHalf*>(x), x_columns_, halves_->get(w, version), y);
  auto* rounded = static_cast<BHalf*>(rounded_.data());  // an odd number of inputs is padded with a zero
  for (std::int64_t row = 0; row < rows_; ++row)
    round_halves(single + row * x_columns_, rounded + row * even(inputs_), inputs_, 1);
  run_all<BHalf>(rounded, even(inputs_), halves_->get(w, version), y);
}

template <class T>
void StepProduct::run_all(const T* x, std::int64_t x_columns, const T* w, float* y) {
  backwards_ = !backwards_;
  PanelBlock<T> whole;
  whole.x = x;
  whole.x_row = x_columns;
  whole.w = w;
  whole.y = y;
  whole.y_row = outputs_;
  whole.avx512 = avx512_;
#pragma omp parallel num_threads(threads_) if (threads_ > 1 && inputs_ * outputs_ >= kParallelElems)
  {
    const std::int64_t team = omp_get_num_threads(), member = omp_get_thread_num();
    run_panels(panels_ * member / team, panels_ * (member + 1) / team, whole);
  }
}

template <class T>
void StepProduct::run_panels(std::int64_t begin, std::int64_t end, const PanelBlock<T>& whole) const {
  const std::int64_t first = backwards_ ? end - 1 : begin, step = backwards_ ? -1 : 1;
  for (std::int64_t i = 0, panel = first; i < end - begin; ++i, panel += step)
    run_panel(panel, i + 1 < end - begin ? panel + step : panel, whole);
}

template <class T>
void StepProduct::run_panel(std::int64_t panel, std::int64_t next, const PanelBlock<T>& whole) const {
  const std::int64_t inputs = sizeof(T) == sizeof(float) ? inputs_ : even(inputs_);
  const std::int64_t depth = even(panel_parts(inputs, panel_parts(inputs, form_.depth))),
                     groups = panel_parts(rows_, group_rows_);
  for (std::int64_t k = 0; k < inputs; k += depth) {
    const std::int64_t here = std::min(depth, inputs - k);
    const T* weights = whole.w + panel * panel_elems_ + k * form_.columns;
    const T* ahead = k + depth < inputs ? weights + depth * form_.columns : whole.w + next * panel_elems_;
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t row = g * group_rows_;
      PanelBlock<T> block = whole;
      block.x += row * whole.x_row + k;
      block.w = weights;
      block.y += row * outputs_ + panel * form_.columns;
      block.depth = here;
      block.columns = std::min(form_.columns, outputs_ - panel * form_.columns);
      block.add = k > 0;
      block.ahead = reinterpret_cast<const std::byte*>(ahead + g * here * form_.columns / groups);
      block.ahead_step = form_.columns * static_cast<std::int64_t>(sizeof(float)) / groups;
      multiply_panel(static_cast<int>(std::min<std::int64_t>(group_rows_, rows_ - row)), block);
    }
  }
}

}  // namespace echelon::inline device::onednn
