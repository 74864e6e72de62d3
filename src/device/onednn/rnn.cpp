// Recurrent layers: what all steps share is one product of the library over all of them, in the order (T, N); a step
// itself is a product with packed weights and one pass over the gates (rnn_cells.hpp).
//
//   forward    parts = x weight_x^T (all steps); each step: product = h weight_h^T, then gates and states
//   backward   each step from the last: gates' gradients dparts, product = dparts weight_h; then, over all steps,
//              dweight_x = dparts^T x, dweight_h = dparts^T h, dbias = column sums, dx = dparts weight_x
//
// saved: parts (T, N, parts*H), h (T + 1, N, H) and, for lstm, c (T + 1, N, H), as rnn_cells.hpp has them.
#include <algorithm>

#include "device/onednn/planes.hpp"
#include "device/onednn/product.hpp"
#include "device/onednn/rnn_cells.hpp"
#include "device/rnn_args.hpp"

namespace echelon::onednn {
namespace {

class Rnn : public Op {
 public:
  Rnn(const Context& context, const OpSpec& spec, bool forward)
      : d_(std::get<RnnDims>(spec.dims)),
        at_(spec),
        threads_(context.threads),
        parts_(rnn_parts(d_.cell) * d_.H),
        gates_(d_.G() * d_.H),
        product_(context, d_.N, forward ? d_.H : gates_, forward ? gates_ : d_.H, forward) {
    const bool own_parts = d_.cell == Cell::lstm || d_.cell == Cell::gru;  // else they are the states
    if (own_parts) parts_at_ = saved_.take(floats(d_.T * d_.N * parts_));
    h_at_ = saved_.take(floats((d_.T + 1) * d_.N * d_.H));
    if (d_.has_c()) c_at_ = saved_.take(floats((d_.T + 1) * d_.N * d_.H));
    if (!own_parts) parts_at_ = h_at_ + floats((d_.reverse ? 0 : 1) * d_.N * d_.H);
    x_at_ = scratch_.take(floats(d_.T * d_.N * d_.F));
  }

  std::size_t saved_bytes() const override { return saved_.bytes(); }
  std::size_t scratch_bytes() const override { return scratch_.bytes(); }
  std::string implementation() const override { return "sgemm, own gates, " + product_.implementation(); }

 protected:
  static std::size_t floats(std::int64_t n) { return static_cast<std::size_t>(n) * sizeof(float); }
  static const float* in(const OpArgs& args, int place) {
    return place < 0 ? nullptr : static_cast<const float*>(args.tensors[place]);
  }
  static float* out(const OpArgs& args, int place) { return static_cast<float*>(args.tensors[place]); }
  static float beta(const OpArgs& args, int place) { return (args.accumulate >> place & 1U) != 0 ? 1.0f : 0.0f; }

  float* scratch(const OpArgs& args, std::size_t at) const {
    return reinterpret_cast<float*>(ScratchPlan::align(args.scratch) + at);
  }
  float* saved(const OpArgs& args, std::size_t at) const {
    return reinterpret_cast<float*>(ScratchPlan::align(args.saved) + at);
  }
  float* parts(const OpArgs& args, std::int64_t t) const { return saved(args, parts_at_) + t * d_.N * parts_; }
  // States before and after time t, in the order in which times are run.
  float* before(const OpArgs& args, std::size_t states, std::int64_t t) const {
    return saved(args, states) + (t + (d_.reverse ? 1 : 0)) * d_.N * d_.H;
  }
  float* after(const OpArgs& args, std::size_t states, std::int64_t t) const {
    return saved(args, states) + (t + (d_.reverse ? 0 : 1)) * d_.N * d_.H;
  }
  std::int64_t time(std::int64_t s) const { return d_.reverse ? d_.T - 1 - s : s; }

  RnnStep step(const OpArgs& args, std::int64_t t) const {
    const auto* lengths = at_.lengths < 0 ? nullptr : static_cast<const std::int32_t*>(args.tensors[at_.lengths]);
    return {.cell = d_.cell, .N = d_.N, .H = d_.H, .threads = threads_, .t = t, .lengths = lengths};
  }

  // x (N, T, F) as (T, N, F), into scratch.
  const float* x_by_time(const OpArgs& args) const {
    const float* x = in(args, at_.x);
    float* turned = scratch(args, x_at_);
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.T * d_.N * d_.F >= kParallelElems)
    for (std::int64_t t = 0; t < d_.T; ++t)
      for (std::int64_t n = 0; n < d_.N; ++n)
        std::copy_n(x + (n * d_.T + t) * d_.F, d_.F, turned + (t * d_.N + n) * d_.F);
    return turned;
  }

  RnnDims d_;
  RnnArgs at_;
  int threads_;
  std::int64_t parts_, gates_;  // floats of a row
  PackedProduct product_;
  ScratchPlan saved_, scratch_;
  std::size_t parts_at_ = 0, h_at_ = 0, c_at_ = 0, x_at_ = 0;
};

class RnnForwardOp final : public Rnn {
 public:
  RnnForwardOp(const Context& context, const OpSpec& spec) : Rnn(context, spec, true) {
    product_at_ = scratch_.take(floats(d_.N * gates_));
    bias_at_ = scratch_.take(floats(parts_));
  }

  void run(const OpArgs& args) override {
    claim_threads(threads_);
    multiply(d_.T * d_.N, gates_, d_.F, {x_by_time(args), d_.F}, {in(args, at_.weight_x), d_.F, true}, 0.0f,
             parts(args, 0), parts_);
    float* bias = scratch(args, bias_at_);
    rnn_bias(d_.cell, d_.H, in(args, at_.bias_x), in(args, at_.bias_h), bias);
    begin(args, at_.h0, h_at_);
    if (d_.has_c()) begin(args, at_.c0, c_at_);
    for (std::int64_t s = 0; s < d_.T; ++s) run_step(args, time(s), bias);
    const std::int64_t last = time(d_.T - 1);
    std::copy_n(after(args, h_at_, last), d_.N * d_.H, out(args, at_.hn));
    if (d_.has_c()) std::copy_n(after(args, c_at_, last), d_.N * d_.H, out(args, at_.cn));
  }

 private:
  void begin(const OpArgs& args, int given, std::size_t states) const {
    float* first = before(args, states, time(0));
    if (given >= 0)
      std::copy_n(in(args, given), d_.N * d_.H, first);
    else
      std::fill_n(first, d_.N * d_.H, 0.0f);
  }

  void run_step(const OpArgs& args, std::int64_t t, const float* bias) {
    float* product = scratch(args, product_at_);
    product_.run(before(args, h_at_, t), in(args, at_.weight_h), args.parameter_version, product);
    rnn_step_forward(step(args, t), {.parts = parts(args, t),
                                     .product = product,
                                     .bias = bias,
                                     .h = before(args, h_at_, t),
                                     .c = before(args, c_at_, t),
                                     .h_next = after(args, h_at_, t),
                                     .c_next = after(args, c_at_, t),
                                     .y = out(args, at_.y) + t * d_.H,
                                     .y_stride = d_.T * d_.H});
  }

  std::size_t product_at_, bias_at_;
};

class RnnBackwardOp final : public Rnn {
 public:
  RnnBackwardOp(const Context& context, const OpSpec& spec) : Rnn(context, spec, false) {
    dparts_at_ = scratch_.take(floats(d_.T * d_.N * parts_));
    product_at_ = scratch_.take(floats(d_.N * d_.H));
    passed_at_ = scratch_.take(floats(d_.N * d_.H));
    dc_at_ = scratch_.take(floats(d_.N * d_.H));
    if (d_.cell == Cell::gru) dproduct_at_ = scratch_.take(floats(d_.N * gates_));
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
    const std::int64_t elems = d_.N * d_.H;
    std::fill_n(scratch(args, product_at_), elems, 0.0f);
    for (auto [given, to] : {std::pair(at_.dhn, passed_at_), std::pair(at_.dcn, dc_at_)})
      if (given >= 0)
        std::copy_n(in(args, given), elems, scratch(args, to));
      else
        std::fill_n(scratch(args, to), elems, 0.0f);
  }

  void run_step(const OpArgs& args, std::int64_t t) {
    float* dparts = scratch(args, dparts_at_) + t * d_.N * parts_;
    float* dproduct = d_.cell == Cell::gru ? scratch(args, dproduct_at_) : dparts;
    rnn_step_backward(step(args, t), {.parts = parts(args, t),
                                      .h = before(args, h_at_, t),
                                      .c = before(args, c_at_, t),
                                      .c_next = after(args, c_at_, t),
                                      .dy = at_.dy < 0 ? nullptr : in(args, at_.dy) + t * d_.H,
                                      .dy_stride = d_.T * d_.H,
                                      .product = scratch(args, product_at_),
                                      .passed = scratch(args, passed_at_),
                                      .dc = scratch(args, dc_at_),
                                      .dparts = dparts,
                                      .dproduct = dproduct});
    product_.run(dproduct, in(args, at_.weight_h), args.parameter_version, scratch(args, product_at_));
  }

  // dh0, dc0
  void end(const OpArgs& args) const {
    if (at_.dh0 < 0) return;
    const float *product = scratch(args, product_at_), *passed = scratch(args, passed_at_), *dc = scratch(args, dc_at_);
    const float add_h = beta(args, at_.dh0);
    float* dh0 = out(args, at_.dh0);
    for (std::int64_t i = 0; i < d_.N * d_.H; ++i) dh0[i] = (add_h != 0 ? dh0[i] : 0.0f) + product[i] + passed[i];
    if (at_.dc0 < 0) return;
    const float add_c = beta(args, at_.dc0);
    float* dc0 = out(args, at_.dc0);
    for (std::int64_t i = 0; i < d_.N * d_.H; ++i) dc0[i] = (add_c != 0 ? dc0[i] : 0.0f) + dc[i];
  }

  void weight_gradients(const OpArgs& args) const {
    const std::int64_t rows = d_.T * d_.N;
    const float* dparts = scratch(args, dparts_at_);
    const float* h = before(args, h_at_, 0);
    multiply(gates_, d_.F, rows, {dparts, parts_, true}, {x_by_time(args), d_.F}, beta(args, at_.dweight_x),
             out(args, at_.dweight_x), d_.F);
    // gru: what came by q is its third part.
    const std::int64_t joint = d_.cell == Cell::gru ? 2 * d_.H : gates_;
    float* dw = out(args, at_.dweight_h);
    multiply(joint, d_.H, rows, {dparts, parts_, true}, {h, d_.H}, beta(args, at_.dweight_h), dw, d_.H);
    if (joint < gates_)
      multiply(d_.H, d_.H, rows, {dparts + 3 * d_.H, parts_, true}, {h, d_.H}, beta(args, at_.dweight_h),
               dw + joint * d_.H, d_.H);
    add_rows(args, at_.dbias_x, 0, 0, gates_);
    add_rows(args, at_.dbias_h, 0, 0, joint);
    if (joint < gates_) add_rows(args, at_.dbias_h, joint, 3 * d_.H, d_.H);
  }

  // db[first, first + count) = sum of dparts' columns from `column` on
  void add_rows(const OpArgs& args, int place, std::int64_t first, std::int64_t column, std::int64_t count) const {
    const float* dparts = scratch(args, dparts_at_) + column;
    float* db = out(args, place) + first;
    if (beta(args, place) == 0.0f) std::fill_n(db, count, 0.0f);
    for (std::int64_t row = 0; row < d_.T * d_.N; ++row)
      for (std::int64_t i = 0; i < count; ++i) db[i] += dparts[row * parts_ + i];
  }

  void data_gradient(const OpArgs& args) const {
    float *by_time = scratch(args, x_at_), *dx = out(args, at_.dx);
    multiply(d_.T * d_.N, d_.F, gates_, {scratch(args, dparts_at_), parts_}, {in(args, at_.weight_x), d_.F}, 0.0f,
             by_time, d_.F);
    const bool add = beta(args, at_.dx) != 0;
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.T * d_.N * d_.F >= kParallelElems)
    for (std::int64_t n = 0; n < d_.N; ++n)
      for (std::int64_t t = 0; t < d_.T; ++t) {
        const float* from = by_time + (t * d_.N + n) * d_.F;
        float* to = dx + (n * d_.T + t) * d_.F;
        for (std::int64_t f = 0; f < d_.F; ++f) to[f] = (add ? to[f] : 0.0f) + from[f];
      }
  }

  std::size_t dparts_at_, product_at_, passed_at_, dc_at_, dproduct_at_ = 0;
};

}  // namespace

std::unique_ptr<Op> make_rnn(Context& context, const OpSpec& spec) {
  if (spec.kind == OpKind::rnn_forward) return std::make_unique<RnnForwardOp>(context, spec);
  return std::make_unique<RnnBackwardOp>(context, spec);
}

}  // namespace echelon::onednn
