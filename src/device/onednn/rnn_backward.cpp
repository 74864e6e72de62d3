// SPDX-License-Identifier: Apache-2.0
// The backward pass of a recurrent layer (rnn_layer.hpp).
#include "device/onednn/rnn_layer.hpp"

namespace echelon::inline device::onednn {
namespace {

class RnnBackwardOp final : public Rnn {
 public:
  RnnBackwardOp(const Context& context, const OpSpec& spec, const Precision& precision)
      : Rnn(context, spec, precision, false) {
    dparts_at_ = scratch_.take(floats((precision.rounds ? 1 : d_.T) * d_.N * row_));
    sums_at_ = scratch_.take(floats(parts_));
    product_at_ = scratch_.take(floats(d_.N * d_.H));
    passed_at_ = scratch_.take(floats(d_.N * d_.H));
    dc_at_ = scratch_.take(floats(d_.N * d_.H));
    if (d_.cell == Cell::gru) dproduct_at_ = scratch_.take(floats(d_.N * gates_));
    if (!precision.rounds) return;
    rounded_ = takes_rounded(context);
    in_halves_.emplace(context, d_, precision, rows_of_x(), scratch_);
    whole_.emplace(context, precision, Factor{d_.T * d_.N, gates_, row_}, Factor{gates_, d_.F, d_.F}, rows_of_x(),
                   Product::Form{.weights = true, .adds = in_place_, .stored = halves_ ? precision.type : kSingle.type},
                   scratch_);
  }

  void run(const OpArgs& args) override {
    claim_threads(threads_);
    begin(args);
    for (std::int64_t s = d_.T - 1; s >= 0; --s) run_step(args, time(s));
    end(args);
    weight_gradients(args);
    data_gradient(args);
  }

 private:
  void begin(const OpArgs& args) const {
    std::fill_n(scratch(args, sums_at_), parts_, 0.0f);
    std::fill_n(scratch(args, product_at_), d_.N * d_.H, 0.0f);
    take_states(args, at_.dhn, scratch(args, passed_at_));
    take_states(args, at_.dcn, scratch(args, dc_at_));
  }

  void run_step(const OpArgs& args, std::int64_t t) {
    float* dparts = scratch(args, dparts_at_) + (in_halves_ ? 0 : t * d_.N * row_);
    float* dproduct = d_.cell == Cell::gru ? scratch(args, dproduct_at_) : dparts;
    void* kept = in_halves_ ? in_halves_->at(operand(args, 0), t) : nullptr;
    rnn_step_backward(step(args, t), {.parts = parts(args, t),
                                      .h = before(args, h_at_, t),
                                      .c = before(args, c_at_, t),
                                      .c_next = after(args, c_at_, t),
                                      .dy = moved(single(args, at_.dy), t * d_.H),
                                      .dy_stride = d_.T * d_.H,
                                      .dy_halves = moved(half(args, at_.dy), t * d_.H),
                                      .product = scratch(args, product_at_),
                                      .passed = scratch(args, passed_at_),
                                      .dc = scratch(args, dc_at_),
                                      .dparts = dparts,
                                      .dproduct = dproduct,
                                      .rounded = precision_.halves() ? static_cast<BHalf*>(kept) : nullptr});
    sum_columns(dparts, scratch(args, sums_at_));
    if (kept && !precision_.halves()) round_operand(precision_, dparts, kept, d_.N * parts_, threads_);
    product_.run(rounded_ ? kept : dproduct, in(args, at_.weight_h), args.parameter_version,
                 scratch(args, product_at_));
  }

  // Writes dh0 and dc0.
  void end(const OpArgs& args) const {
    if (at_.dh0 < 0) return;
    const float *product = scratch(args, product_at_), *passed = scratch(args, passed_at_), *dc = scratch(args, dc_at_);
    give_states(args, at_.dh0, [&](std::int64_t i) { return product[i] + passed[i]; });
    if (at_.dc0 >= 0) give_states(args, at_.dc0, [&](std::int64_t i) { return dc[i]; });
  }

  // gru: the gradient that came through q is the third part.
  std::int64_t joint() const { return d_.cell == Cell::gru ? 2 * d_.H : gates_; }

  void weight_gradients(const OpArgs& args) {
    if (in_halves_)
      in_halves_->sum(operand(args, 0), {.x = x_by_time(args),
                                         .h = before(args, h_at_, 0),
                                         .dweight_x = out(args, at_.dweight_x),
                                         .dweight_h = out(args, at_.dweight_h),
                                         .add_x = beta(args, at_.dweight_x) != 0,
                                         .add_h = beta(args, at_.dweight_h) != 0});
    else
      weight_products(args);
    const float* sums = scratch(args, sums_at_);
    put(sums, gates_, beta(args, at_.dbias_x), out(args, at_.dbias_x));
    put(sums, joint(), beta(args, at_.dbias_h), out(args, at_.dbias_h));
    put(sums + parts_ - (gates_ - joint()), gates_ - joint(), beta(args, at_.dbias_h),
        out(args, at_.dbias_h) + joint());
  }

  void weight_products(const OpArgs& args) const {
    const std::int64_t rows = d_.T * d_.N;
    const float *dparts = scratch(args, dparts_at_), *h = before(args, h_at_, 0);
    const auto* x = static_cast<const float*>(x_by_time(args));
    multiply(gates_, d_.F, rows, {dparts, row_, true}, {x, d_.F}, beta(args, at_.dweight_x), out(args, at_.dweight_x),
             d_.F);
    float* dw = out(args, at_.dweight_h);
    multiply(joint(), d_.H, rows, {dparts, row_, true}, {h, d_.H}, beta(args, at_.dweight_h), dw, d_.H);
    if (joint() < gates_)
      multiply(d_.H, d_.H, rows, {dparts + 3 * d_.H, row_, true}, {h, d_.H}, beta(args, at_.dweight_h),
               dw + joint() * d_.H, d_.H);
  }

  // Adds a step's rows to the sums while they are in cache. Threads share the columns.
  void sum_columns(const float* dparts, float* sums) const {
    constexpr std::int64_t kColumns = 256;
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.N * parts_ >= kParallelElems)
    for (std::int64_t begin = 0; begin < parts_; begin += kColumns) {
      const std::int64_t end = std::min(begin + kColumns, parts_);
      for (std::int64_t n = 0; n < d_.N; ++n)
        for (std::int64_t i = begin; i < end; ++i) sums[i] += dparts[n * row_ + i];
    }
  }

  static void put(const float* from, std::int64_t n, float beta, float* to) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = (beta != 0 ? to[i] : 0.0f) + from[i];
  }

  void data_gradient(const OpArgs& args) {
    const bool add = beta(args, at_.dx) != 0;
    float* by_time = scratch(args, x_at_);
    if (whole_)
      whole_->run({.a = in_halves_->dparts(operand(args, 0)),
                   .b = in(args, at_.weight_x),
                   .c = in_place_ ? args.tensors[at_.dx] : by_time,
                   .scratch = operand(args, 0),
                   .add = in_place_ && add,
                   .version = args.parameter_version});
    else
      multiply(d_.T * d_.N, d_.F, gates_, {scratch(args, dparts_at_), row_}, {in(args, at_.weight_x), d_.F}, 0.0f,
               by_time, d_.F);
    if (in_place_) return;
    float* dx = out(args, at_.dx);
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.T * d_.N * d_.F >= kParallelElems)
    for (std::int64_t n = 0; n < d_.N; ++n)
      for (std::int64_t t = 0; t < d_.T; ++t) {
        const float* from = by_time + (t * d_.N + n) * d_.F;
        float* to = dx + (n * d_.T + t) * d_.F;
        for (std::int64_t f = 0; f < d_.F; ++f) to[f] = (add ? to[f] : 0.0f) + from[f];
      }
  }

  std::size_t dparts_at_, sums_at_, product_at_, passed_at_, dc_at_, dproduct_at_ = 0;
  bool rounded_ = false;
  std::optional<RnnHalfGradients> in_halves_;
};

}  // namespace

std::unique_ptr<Op> make_rnn_backward(const Context& context, const OpSpec& spec, const Precision& precision) {
  return std::make_unique<RnnBackwardOp>(context, spec, precision);
}

}  // namespace echelon::inline device::onednn
