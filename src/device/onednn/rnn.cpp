// SPDX-License-Identifier: Apache-2.0
// The forward pass of a recurrent layer (rnn_layer.hpp).
#include "device/onednn/rnn_layer.hpp"

namespace echelon::inline device::onednn {
namespace {

class RnnForwardOp final : public Rnn {
 public:
  RnnForwardOp(const Context& context, const OpSpec& spec, const Precision& precision)
      : Rnn(context, spec, precision, true) {
    if (precision.rounds)
      whole_.emplace(context, precision, rows_of_x(), Factor{d_.F, gates_, d_.F, true},
                     Factor{d_.T * d_.N, gates_, row_}, Product::Form{.weights = true}, scratch_);
    product_at_ = scratch_.take(floats(d_.N * gates_));
    bias_at_ = scratch_.take(floats(parts_));
  }

  void run(const OpArgs& args) override {
    claim_threads(threads_);
    if (!in_place_) first_product(args, 0, d_.T);
    float* bias = scratch(args, bias_at_);
    rnn_bias(d_.cell, d_.H, in(args, at_.bias_x), in(args, at_.bias_h), bias);
    take_states(args, at_.h0, before(args, h_at_, time(0)));
    if (d_.has_c()) take_states(args, at_.c0, before(args, c_at_, time(0)));
    const std::int64_t together = std::max<std::int64_t>(1, kTogether / d_.N);
    for (std::int64_t s = 0; s < d_.T; ++s) {
      const std::int64_t count = std::min(together, d_.T - s);
      if (in_place_ && s % together == 0) first_product(args, d_.reverse ? d_.T - s - count : s, count);
      run_step(args, time(s), bias);
    }
    const std::int64_t last = time(d_.T - 1);
    const float* h = after(args, h_at_, last);
    give_states(args, at_.hn, [&](std::int64_t i) { return h[i]; });
    if (!d_.has_c()) return;
    const float* c = after(args, c_at_, last);
    give_states(args, at_.cn, [&](std::int64_t i) { return c[i]; });
  }

 private:
  // Number of rows of the first product at a time: enough for the matrix unit, few enough to stay in a core's cache.
  static constexpr std::int64_t kTogether = 4 * kTileBlock;

  // Computes parts = x weight_x^T for `count` times from t on.
  void first_product(const OpArgs& args, std::int64_t t, std::int64_t count) {
    const void* x = x_by_time(args);
    if (in_place_) x = static_cast<const std::byte*>(x) + rows_of_x().lines(true).bytes_to(t * d_.N);
    if (whole_)
      whole_->run({.a = x,
                   .b = in(args, at_.weight_x),
                   .c = parts(args, t),
                   .scratch = operand(args, 0),
                   .version = args.parameter_version,
                   .rows = in_place_ ? count * d_.N : 0});
    else
      multiply(d_.T * d_.N, gates_, d_.F, {static_cast<const float*>(x), d_.F}, {in(args, at_.weight_x), d_.F, true},
               0.0f, parts(args, 0), row_);
  }

  void run_step(const OpArgs& args, std::int64_t t, const float* bias) {
    float* product = scratch(args, product_at_);
    product_.run(before(args, h_at_, t), in(args, at_.weight_h), args.parameter_version, product);
    rnn_step_forward(step(args, t),
                     {.parts = parts(args, t),
                      .product = product,
                      .bias = bias,
                      .h = before(args, h_at_, t),
                      .c = before(args, c_at_, t),
                      .h_next = after(args, h_at_, t),
                      .c_next = after(args, c_at_, t),
                      .y = halves_ ? nullptr : out(args, at_.y) + t * d_.H,
                      .y_stride = d_.T * d_.H,
                      .y_halves = halves_ ? static_cast<BHalf*>(args.tensors[at_.y]) + t * d_.H : nullptr});
  }

  std::size_t product_at_, bias_at_;
};

}  // namespace

std::unique_ptr<Op> make_rnn(Context& context, const OpSpec& spec, const Precision& precision) {
  if (spec.kind == OpKind::rnn_forward) return std::make_unique<RnnForwardOp>(context, spec, precision);
  return make_rnn_backward(context, spec, precision);
}

std::unique_ptr<Op> make_rnn(Context& context, const OpSpec& spec) { return make_rnn(context, spec, kSingle); }

}  // namespace echelon::inline device::onednn
