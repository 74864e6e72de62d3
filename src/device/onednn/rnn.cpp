// Recurrent layers: what all steps share is one product of the library over all of them, in the order (T, N); a step
// itself is a product with packed weights and one pass over the gates (rnn_cells.hpp).
//
//   forward    parts = x weight_x^T (all steps); each step: product = h weight_h^T, then gates and states
//   backward   each step from the last: gates' gradients dparts, product = dparts weight_h; then, over all steps,
//              dweight_x = dparts^T x, dweight_h = dparts^T h, dx = dparts weight_x; dbias: column sums, by step
//
// In halves the operands of all products are rounded to bf16 and kept in the precision's type; states and gates stay
// f32, gradients of gates within their step. Where tiles multiply, arguments may be bf16 themselves, x and dx are taken
// as they lie, and the first product is done for some steps at a time, so that what it leaves is in cache for them.
//
// saved: parts (T, N, parts*H, rows padded), h (T + 1, N, H) and, for lstm, c (T + 1, N, H), as rnn_cells.hpp has them.
#include <algorithm>
#include <optional>

#include "device/onednn/planes.hpp"
#include "device/onednn/rnn_cells.hpp"
#include "device/onednn/rnn_halves.hpp"
#include "device/onednn/step_product.hpp"
#include "device/ops/rnn_args.hpp"
#include "device/packs_weights.hpp"

namespace echelon::inline device::onednn {
namespace {

class Rnn : public Op, public PacksWeights {
 public:
  Rnn(const Context& context, const OpSpec& spec, const Precision& precision, bool forward)
      : precision_(precision),
        d_(std::get<RnnDims>(spec.dims)),
        at_(spec),
        threads_(context.threads),
        avx512_(context.avx512()),
        halves_(is_half(spec.dtype)),
        in_place_(precision.halves() && context.tiles()),
        parts_(parts_of(d_.cell) * d_.H),
        gates_(d_.G() * d_.H),
        row_(parts_ + (own_parts() && !precision.rounds && parts_ % kAlias == 0 ? kPad : 0)),
        product_(context, d_.N, forward ? d_.H : gates_, forward ? gates_ : d_.H, forward,
                 forward           ? d_.H
                 : gates_ < parts_ ? gates_
                                   : row_,
                 precision, !forward && takes_rounded(context)) {
    if (own_parts()) parts_at_ = saved_.take(floats(d_.T * d_.N * row_));
    h_at_ = saved_.take(floats((d_.T + 1) * d_.N * d_.H));
    if (d_.has_c()) c_at_ = saved_.take(floats((d_.T + 1) * d_.N * d_.H));
    if (!own_parts()) parts_at_ = h_at_ + floats((d_.reverse ? 0 : 1) * d_.N * d_.H);
    if (!in_place_) x_at_ = scratch_.take(floats(d_.T * d_.N * d_.F));
  }

  std::size_t saved_bytes() const override { return saved_.bytes(); }
  std::size_t scratch_bytes() const override { return scratch_.bytes(); }
  std::string implementation() const override {
    return (whole_ ? whole_->implementation() : "sgemm") + ", own gates, " + product_.implementation();
  }
  void share_weights(Op& other) override {
    auto* rnn = dynamic_cast<Rnn*>(&other);
    if (!rnn) return;
    product_.share_weights(rnn->product_);
    if (whole_ && rnn->whole_) whole_->share_weights(*rnn->whole_);
  }

 protected:
  // Rows a power of two apart share few lines of a cache: products in f32 that read columns are a third slower on them.
  // Those in halves copy what they read, and have their fast body for dense rows alone.
  static constexpr std::int64_t kAlias = 256, kPad = 80;

  // Whether gradients of gates go through weight_h as they were rounded for the products over all steps.
  bool takes_rounded(const Context& context) const {
    return d_.cell != Cell::gru && StepProduct::takes_rounded(context, precision_, gates_);
  }
  bool own_parts() const { return d_.cell == Cell::lstm || d_.cell == Cell::gru; }  // else they are the states
  static std::size_t floats(std::int64_t n) { return static_cast<std::size_t>(n) * sizeof(float); }
  static const float* in(const OpArgs& args, int place) {
    return place < 0 ? nullptr : static_cast<const float*>(args.tensors[place]);
  }
  static float* out(const OpArgs& args, int place) { return static_cast<float*>(args.tensors[place]); }
  static float beta(const OpArgs& args, int place) { return (args.accumulate >> place & 1U) != 0 ? 1.0f : 0.0f; }

  const float* single(const OpArgs& args, int place) const { return halves_ ? nullptr : in(args, place); }
  const BHalf* half(const OpArgs& args, int place) const {
    return place < 0 || !halves_ ? nullptr : static_cast<const BHalf*>(args.tensors[place]);
  }
  template <class T>
  static T* moved(T* from, std::int64_t elems) {
    return from ? from + elems : nullptr;
  }
  // States (N, H) that are given, or zeros.
  void take_states(const OpArgs& args, int place, float* to) const {
    if (place < 0)
      std::fill_n(to, d_.N * d_.H, 0.0f);
    else if (halves_)
      widen(half(args, place), to, d_.N * d_.H, 1);
    else
      std::copy_n(in(args, place), d_.N * d_.H, to);
  }
  // out = state(i), or out += that.
  template <class State>
  void give_states(const OpArgs& args, int place, const State& state) const {
    const bool add = beta(args, place) != 0;
    auto* rounds = static_cast<BHalf*>(args.tensors[place]);
    float* to = out(args, place);
    for (std::int64_t i = 0; i < d_.N * d_.H; ++i)
      if (halves_)
        rounds[i] = rounded(state(i) + (add ? widened(rounds[i]) : 0.0f));
      else
        to[i] = state(i) + (add ? to[i] : 0.0f);
  }

  float* scratch(const OpArgs& args, std::size_t at) const {
    return reinterpret_cast<float*>(ScratchPlan::align(args.scratch) + at);
  }
  float* saved(const OpArgs& args, std::size_t at) const {
    return reinterpret_cast<float*>(ScratchPlan::align(args.saved) + at);
  }
  float* parts(const OpArgs& args, std::int64_t t) const { return saved(args, parts_at_) + t * d_.N * row_; }
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
    return {.cell = d_.cell,
            .N = d_.N,
            .H = d_.H,
            .h_row = d_.H,
            .parts_row = row_,
            .dparts_row = row_,
            .threads = threads_,
            .t = d_.first + t,
            .lengths = lengths,
            .avx512 = avx512_};
  }

  std::byte* operand(const OpArgs& args, std::size_t at) const { return ScratchPlan::align(args.scratch) + at; }

  // Of x and dx (N, T, F): rows by time, an operand where they are turned.
  Factor rows_of_x() const {
    Factor rows{d_.T * d_.N, d_.F, d_.F};
    if (in_place_) rows.wide = !halves_, rows.stride = d_.T * d_.F, rows.inner = d_.N, rows.outer = d_.F;
    return rows;
  }
  // x as rows_of_x has it, in scratch where it is turned.
  const void* x_by_time(const OpArgs& args) const {
    if (in_place_) return args.tensors[at_.x];
    const float* x = in(args, at_.x);
    std::byte* turned = operand(args, x_at_);
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && d_.T * d_.N * d_.F >= kParallelElems)
    for (std::int64_t t = 0; t < d_.T; ++t)
      for (std::int64_t n = 0; n < d_.N; ++n)
        round_operand(precision_, x + (n * d_.T + t) * d_.F,
                      turned + static_cast<std::size_t>((t * d_.N + n) * d_.F) * precision_.bytes(), d_.F, 1);
    return turned;
  }

  Precision precision_;
  RnnDims d_;
  RnnArgs at_;
  int threads_;
  bool avx512_;
  bool halves_;                 // x, y, states that come and go, and their gradients are bf16
  bool in_place_;               // products take rows of x and dx as they lie
  std::int64_t parts_, gates_;  // floats of a row
  std::int64_t row_;            // floats from a row of parts to the next
  StepProduct product_;
  std::optional<Product> whole_;  // in halves: by weight_x
  ScratchPlan saved_, scratch_;
  std::size_t parts_at_ = 0, h_at_ = 0, c_at_ = 0, x_at_ = 0;
};

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
  // Rows of the first product at a time: enough for the matrix unit, few enough to stay in a core's cache.
  static constexpr std::int64_t kTogether = 4 * kTileBlock;

  // parts = x weight_x^T of `count` times from t on.
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

  // dh0, dc0
  void end(const OpArgs& args) const {
    if (at_.dh0 < 0) return;
    const float *product = scratch(args, product_at_), *passed = scratch(args, passed_at_), *dc = scratch(args, dc_at_);
    give_states(args, at_.dh0, [&](std::int64_t i) { return product[i] + passed[i]; });
    if (at_.dc0 >= 0) give_states(args, at_.dc0, [&](std::int64_t i) { return dc[i]; });
  }

  // gru: what came by q is its third part.
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

  // sums += of a step's rows, while they are in cache. Threads share the columns.
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

std::unique_ptr<Op> make_rnn(Context& context, const OpSpec& spec, const Precision& precision) {
  if (spec.kind == OpKind::rnn_forward) return std::make_unique<RnnForwardOp>(context, spec, precision);
  return std::make_unique<RnnBackwardOp>(context, spec, precision);
}

std::unique_ptr<Op> make_rnn(Context& context, const OpSpec& spec) { return make_rnn(context, spec, kSingle); }

}  // namespace echelon::inline device::onednn
