// SPDX-License-Identifier: Apache-2.0
// One step of some units of a recurrent layer: a product with packed weights and one pass over the gates
// (rnn_cells.hpp), as in rnn_layer.hpp for all units and steps.
#include <algorithm>

#include "device/onednn/planes.hpp"
#include "device/onednn/rnn_cells.hpp"
#include "device/onednn/step_product.hpp"
#include "device/ops/rnn_args.hpp"
#include "device/packs_weights.hpp"

namespace echelon::inline device::onednn {
namespace {

class RnnStepOp : public Op, public PacksWeights {
 public:
  // `x_columns`: distance between rows of the left factor, in floats.
  RnnStepOp(const Context& context, const OpSpec& spec, bool forward, std::int64_t x_columns)
      : d_(std::get<RnnStepDims>(spec.dims)),
        at_(spec),
        threads_(context.threads),
        avx512_(context.avx512()),
        gates_(d_.G() * d_.U),
        parts_(d_.P() * d_.U),
        product_(context, d_.N, forward ? d_.H : gates_, forward ? gates_ : d_.H, forward, x_columns) {}

  std::size_t scratch_bytes() const override { return scratch_.bytes(); }
  std::string implementation() const override { return "own gates, " + product_.implementation(); }
  void share_weights(Op& other) override {
    if (auto* step = dynamic_cast<RnnStepOp*>(&other)) product_.share_weights(step->product_);
  }

 protected:
  static std::size_t floats(std::int64_t n) { return static_cast<std::size_t>(n) * sizeof(float); }
  static const float* in(const OpArgs& args, int index) {
    return index < 0 ? nullptr : static_cast<const float*>(args.tensors[index]);
  }
  static float* out(const OpArgs& args, int index) {
    return index < 0 ? nullptr : static_cast<float*>(args.tensors[index]);
  }
  float* scratch(const OpArgs& args, std::size_t at) const {
    return reinterpret_cast<float*>(ScratchPlan::align(args.scratch) + at);
  }
  RnnStep step(const OpArgs& args, std::int64_t h_row) const {
    return {.cell = d_.cell,
            .N = d_.N,
            .H = d_.U,
            .h_row = h_row,
            .parts_row = d_.T * parts_,
            .dparts_row = d_.T * parts_,
            .threads = threads_,
            .t = d_.first + d_.t,
            .lengths = at_.lengths < 0 ? nullptr : static_cast<const std::int32_t*>(args.tensors[at_.lengths]),
            .avx512 = avx512_};
  }

  RnnStepDims d_;
  RnnStepArgs at_;
  int threads_;
  bool avx512_;
  std::int64_t gates_, parts_;  // floats per row
  StepProduct product_;
  ScratchPlan scratch_;
};

class RnnStepForwardOp final : public RnnStepOp {
 public:
  RnnStepForwardOp(const Context& context, const OpSpec& spec)
      : RnnStepOp(context, spec, true, std::get<RnnStepDims>(spec.dims).H) {
    product_at_ = scratch_.take(floats(d_.N * gates_));
    bias_at_ = scratch_.take(floats(parts_));
  }

  void run(const OpArgs& args) override {
    claim_threads(threads_);
    float *product = scratch(args, product_at_), *bias = scratch(args, bias_at_);
    const float* a = in(args, at_.a) + d_.t * gates_;
    float* parts = out(args, at_.gates) + d_.t * parts_;
    for (std::int64_t n = 0; n < d_.N; ++n) std::copy_n(a + n * d_.T * gates_, gates_, parts + n * d_.T * parts_);
    rnn_bias(d_.cell, d_.U, nullptr, in(args, at_.bias_h), bias);
    product_.run(in(args, at_.h), in(args, at_.weight_h), args.parameter_version, product);
    const RnnStep here = step(args, d_.H);
    rnn_step_forward(here, {.parts = parts,
                            .product = product,
                            .bias = bias,
                            .h = in(args, at_.h) + d_.begin,
                            .c = in(args, at_.c),
                            .h_next = out(args, at_.h_next),
                            .c_next = out(args, at_.c_next),
                            .y = d_.P() == 1 ? parts : nullptr,
                            .y_stride = d_.T * parts_});
    for (std::int64_t n = 0; n < d_.N; ++n)
      if (!here.active(n)) std::fill_n(parts + n * d_.T * parts_, parts_, 0.0f);
  }

 private:
  std::size_t product_at_, bias_at_;
};

// gru: rnn_cells.hpp has four parts where a has three gates, so its gradients are written through scratch.
class RnnStepBackwardOp final : public RnnStepOp {
 public:
  RnnStepBackwardOp(const Context& context, const OpSpec& spec)
      : RnnStepOp(context, spec, false, columns(std::get<RnnStepDims>(spec.dims))) {
    passed_at_ = scratch_.take(floats(d_.N * d_.U));
    given_at_ = scratch_.take(floats(d_.N * d_.U));
    if (is_gru()) dparts_at_ = scratch_.take(floats(d_.N * parts_));
    if (is_gru()) dproduct_at_ = scratch_.take(floats(d_.N * gates_));
  }

  void run(const OpArgs& args) override {
    claim_threads(threads_);
    float *passed = scratch(args, passed_at_), *given = scratch(args, given_at_);
    const float* dh_next = in(args, at_.dh_next) + d_.begin;
    for (std::int64_t n = 0; n < d_.N; ++n) std::copy_n(dh_next + n * d_.H, d_.U, given + n * d_.U);
    std::fill_n(passed, d_.N * d_.U, 0.0f);
    if (d_.has_c()) std::copy_n(in(args, at_.dc_next), d_.N * d_.U, out(args, at_.dc));
    float* da = out(args, at_.da) + d_.t * gates_;
    float* dproduct = is_gru() ? scratch(args, dproduct_at_) : da;
    float* dparts = is_gru() ? scratch(args, dparts_at_) : da;
    RnnStep here = step(args, d_.T * d_.H);
    if (is_gru()) here.dparts_row = parts_;
    rnn_step_backward(here, {.parts = in(args, at_.gates) + d_.t * parts_,
                             .h = at_.hs < 0 ? nullptr : in(args, at_.hs) + d_.t * d_.H + d_.begin,
                             .c = in(args, at_.c),
                             .c_next = in(args, at_.c_next),
                             .dy = at_.dy < 0 ? nullptr : in(args, at_.dy) + d_.t * d_.H + d_.begin,
                             .dy_stride = d_.T * d_.H,
                             .product = given,
                             .passed = passed,
                             .dc = out(args, at_.dc),
                             .dparts = dparts,
                             .dproduct = dproduct});
    product_.run(dproduct, in(args, at_.weight_h), args.parameter_version, out(args, at_.dh));
    add_passed(args, passed);
    if (is_gru()) place(args, dparts, dproduct);
  }

 private:
  static std::int64_t columns(const RnnStepDims& d) { return d.G() * d.U * (d.cell == Cell::gru ? 1 : d.T); }
  bool is_gru() const { return d_.cell == Cell::gru; }

  void add_passed(const OpArgs& args, const float* passed) const {
    float* dh = out(args, at_.dh) + d_.begin;
    for (std::int64_t n = 0; n < d_.N; ++n)
      for (std::int64_t u = 0; u < d_.U; ++u) dh[n * d_.H + u] += passed[n * d_.U + u];
  }
  void place(const OpArgs& args, const float* dparts, const float* dproduct) const {
    float *da = out(args, at_.da) + d_.t * gates_, *db = out(args, at_.db) + d_.t * gates_;
    for (std::int64_t n = 0; n < d_.N; ++n) {
      std::copy_n(dparts + n * parts_, gates_, da + n * d_.T * gates_);
      std::copy_n(dproduct + n * gates_, gates_, db + n * d_.T * gates_);
    }
  }

  std::size_t passed_at_, given_at_, dparts_at_ = 0, dproduct_at_ = 0;
};

}  // namespace

std::unique_ptr<Op> make_rnn_step(Context& context, const OpSpec& spec) {
  if (spec.kind == OpKind::rnn_step_forward) return std::make_unique<RnnStepForwardOp>(context, spec);
  return std::make_unique<RnnStepBackwardOp>(context, spec);
}

}  // namespace echelon::inline device::onednn
