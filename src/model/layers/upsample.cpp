// SPDX-License-Identifier: Apache-2.0
// Upsampling by whole factors over 1 to 3 spatial axes: (C, H, W) -> (C, factor * H, factor * W). `nearest` repeats
// cells, `linear` interpolates between their centres (device/ops/upsample.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "model/layers/list.hpp"
#include "model/layers/window.hpp"
#include "model/lowering.hpp"
#include "model/splits/taken_rows.hpp"
#include "model/splits/window_pieces.hpp"

namespace echelon::inline model {
namespace {

class Upsample final : public SplittableLayer {
 public:
  explicit Upsample(const LayerConfig& config)
      : factor_("factor", config.factor, 1, 1), linear_(config.mode == "linear") {
    const std::vector<std::string> known = {"nearest", "linear"};
    if (!linear_ && config.mode != known[0]) throw ConfigError(unknown_name("mode", config.mode, known));
  }

  std::string_view kind() const override { return "upsample"; }
  std::string attributes(std::span<const Shape> inputs) const override {
    return fmt::format("{} {}", factor_.text(inputs[0].rank() - 1), linear_ ? "linear" : "nearest");
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    spatial_axes(inputs[0], "upsampling");
    const UpsampleDims all = dims(inputs[0].prepended(1));
    const Shape out = with_axes(1, all.C, all.out(), all.in.rank).without_front();
    return {rows_ ? out.with(1, rows_->count()) : out};
  }

  void forward(Lowering& lowering) const override {
    const TakenRows rows = taken(lowering);
    const TensorRef y = lowering.output(0), all = rows.room(y);
    lowering.op(spec(OpKind::upsample_forward, lowering), {lowering.input(0), all}, ScaleSource::one, 0);
    rows.take(all, y);
  }
  void backward(Lowering& lowering) const override {
    if (!lowering.wants_grad_input(0)) return;
    const TensorRef dy = taken(lowering).gradient();
    lowering.op(spec(OpKind::upsample_backward, lowering), {dy, lowering.grad_input(0)}, ScaleSource::one, 0);
  }

  LayerPtr on_channels(const Units&) const override { return std::make_shared<Upsample>(*this); }
  // Rows before and behind row p whose centres are less than a row of the input away (upsample_taps).
  std::optional<RowWindow> row_window() const override {
    const std::int64_t factor = factor_.first(), before = linear_ ? 3 * factor / 2 - 1 : factor - 1;
    return RowWindow{.reach = before + 1 + (linear_ ? factor / 2 : 0), .padding = before, .up = factor, .pads = true};
  }
  LayerPtr on_rows(const Units& rows, int) const override {
    auto part = std::make_shared<Upsample>(*this);
    part->rows_ = rows;
    return part;
  }

 private:
  TakenRows taken(Lowering& lowering) const {
    const std::int64_t factor = factor_.first(), all = factor * lowering.input_shape(0)[2];
    if (!rows_) return {lowering, 0, lowering.output_shape(0)[2]};
    const std::int64_t first = std::max<std::int64_t>(0, rows_seen(*row_window(), {rows_->begin, rows_->end}).begin);
    return {lowering, rows_->begin - factor * first, all};
  }
  UpsampleDims dims(const Shape& x) const {  // (N, C, spatial axes)
    return {.N = x[0], .C = x[1], .in = extents_of(x, 2), .factor = factor_.on<1>(x.rank() - 2), .linear = linear_};
  }
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    return {.kind = kind, .dtype = lowering.dtype(), .dims = dims(lowering.input_shape(0))};
  }

  AxesKey factor_;
  bool linear_;
  std::optional<Units> rows_;  // the rows of a spatial shard; none: all
};

}  // namespace

LayerPtr make_upsample(const LayerConfig& config) { return std::make_shared<Upsample>(config); }

}  // namespace echelon::inline model
