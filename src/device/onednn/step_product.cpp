#include "device/onednn/step_product.hpp"

#include <omp.h>

#include <algorithm>

#include "device/onednn/panel_kernel.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

// Weights of so many inputs, and those fetched ahead, stay in the first-level cache while all rows pass.
constexpr std::int64_t kDepth = 160;
// The library's format of panels: their inputs are filled up to a multiple of this.
constexpr std::int64_t kInputs = 16;

std::int64_t parts(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }

}  // namespace

StepProduct::StepProduct(const Context& context, std::int64_t rows, std::int64_t inputs, std::int64_t outputs,
                         bool transposed, std::int64_t x_columns)
    : threads_(context.threads),
      rows_(rows),
      inputs_(inputs),
      outputs_(outputs),
      x_columns_(x_columns),
      panels_(parts(outputs, kPanelColumns)),
      panel_floats_(parts(inputs, kInputs) * kInputs * kPanelColumns),
      group_rows_(static_cast<int>(parts(rows, parts(rows, kPanelRows)))) {
  if (!context.avx512()) {
    library_.emplace(context, rows, inputs, outputs, transposed, x_columns);
    return;
  }
  const auto f32 = dnnl::memory::data_type::f32;
  const dnnl::memory::dims extents{inputs, outputs};
  weights_ = PackedWeights(context,
                           {extents, f32, transposed ? dnnl::memory::dims{1, inputs} : dnnl::memory::dims{outputs, 1}},
                           {extents, f32, dnnl::memory::format_tag::BA16a32b});
}

void StepProduct::share_weights(const StepProduct& other) {
  if (library_ && other.library_) library_->share_weights(*other.library_);
  weights_.share(other.weights_);
}

void StepProduct::run(const float* x, const float* w, std::uint64_t version, float* y) {
  if (library_) return library_->run(x, w, version, y);
  const auto* packed = static_cast<const float*>(weights_.get(w, version));
  backwards_ = !backwards_;
#pragma omp parallel num_threads(threads_) if (threads_ > 1 && inputs_ * outputs_ >= kParallelElems)
  {
    const std::int64_t team = omp_get_num_threads(), member = omp_get_thread_num();
    run_panels(panels_ * member / team, panels_ * (member + 1) / team, x, packed, y);
  }
}

void StepProduct::run_panels(std::int64_t begin, std::int64_t end, const float* x, const float* w, float* y) const {
  const std::int64_t first = backwards_ ? end - 1 : begin, step = backwards_ ? -1 : 1;
  for (std::int64_t i = 0, panel = first; i < end - begin; ++i, panel += step)
    run_panel(panel, i + 1 < end - begin ? panel + step : panel, x, w, y);
}

void StepProduct::run_panel(std::int64_t panel, std::int64_t next, const float* x, const float* w, float* y) const {
  const std::int64_t depth = parts(inputs_, parts(inputs_, kDepth)), groups = parts(rows_, group_rows_);
  for (std::int64_t k = 0; k < inputs_; k += depth) {
    const std::int64_t here = std::min(depth, inputs_ - k);
    const float* weights = w + panel * panel_floats_ + k * kPanelColumns;
    const float* ahead = k + depth < inputs_ ? weights + depth * kPanelColumns : w + next * panel_floats_;
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t row = g * group_rows_;
      multiply_panel(static_cast<int>(std::min<std::int64_t>(group_rows_, rows_ - row)),
                     {.x = x + row * x_columns_ + k,
                      .x_row = x_columns_,
                      .w = weights,
                      .y = y + row * outputs_ + panel * kPanelColumns,
                      .y_row = outputs_,
                      .depth = here,
                      .columns = std::min(kPanelColumns, outputs_ - panel * kPanelColumns),
                      .add = k > 0,
                      .ahead = reinterpret_cast<const std::byte*>(ahead + g * here * kPanelColumns / groups),
                      .ahead_step = kPanelColumns * static_cast<std::int64_t>(sizeof(float)) / groups});
    }
  }
}

}  // namespace echelon::inline device::onednn
