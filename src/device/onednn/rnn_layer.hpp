// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. Work that does not depend on the state is one product of the library over all steps, in the order
// (T, N); a step itself is a product with packed weights and one pass over the gates (rnn_cells.hpp).
//
//   forward    parts = x weight_x^T (all steps); each step: product = h weight_h^T, then gates and states
//   backward   each step from the last: gates' gradients dparts, product = dparts weight_h; then, over all steps,
//              dweight_x = dparts^T x, dweight_h = dparts^T h, dx = dparts weight_x; dbias: column sums, by step
//
// In halves the operands of all products are rounded to bf16 and kept in the precision's type; states and gates stay
// f32, and so do gradients of gates within their step. If tiles multiply, arguments may be bf16, x and dx are used in
// place, and the first product is computed for some steps at a time, so that its result is in cache when they need it.
//
// saved: parts (T, N, parts*H, rows padded), h (T + 1, N, H) and, for lstm, c (T + 1, N, H), as rnn_cells.hpp has them.
#pragma once

#include <algorithm>
#include <optional>

#include "device/onednn/planes.hpp"
#include "device/onednn/rnn_cells.hpp"
#include "device/onednn/rnn_halves.hpp"
#include "device/onednn/step_product.hpp"
#include "device/ops/rnn_args.hpp"
#include "device/packs_weights.hpp"

namespace echelon::inline device::onednn {

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
  // Rows that are a power of two apart share few cache lines: products in f32 that read columns are a third slower on
  // them. Products in halves copy what they read, and their fast implementation needs dense rows.
  static constexpr std::int64_t kAlias = 256, kPad = 80;

  // Whether the product with weight_h takes gradients of gates as rounded for the products over all steps.
  bool takes_rounded(const Context& context) const {
    return d_.cell != Cell::gru && StepProduct::takes_rounded(context, precision_, gates_);
  }
  bool own_parts() const { return d_.cell == Cell::lstm || d_.cell == Cell::gru; }  // else they are the states
  static std::size_t floats(std::int64_t n) { return static_cast<std::size_t>(n) * sizeof(float); }
  static const float* in(const OpArgs& args, int index) {
    return index < 0 ? nullptr : static_cast<const float*>(args.tensors[index]);
  }
  static float* out(const OpArgs& args, int index) { return static_cast<float*>(args.tensors[index]); }
  static float beta(const OpArgs& args, int index) { return (args.accumulate >> index & 1U) != 0 ? 1.0f : 0.0f; }

  const float* single(const OpArgs& args, int index) const { return halves_ ? nullptr : in(args, index); }
  const BHalf* half(const OpArgs& args, int index) const {
    return index < 0 || !halves_ ? nullptr : static_cast<const BHalf*>(args.tensors[index]);
  }
  template <class T>
  static T* moved(T* from, std::int64_t elems) {
    return from ? from + elems : nullptr;
  }
  // Copies states (N, H) if they are given, else writes zeros.
  void take_states(const OpArgs& args, int index, float* to) const {
    if (index < 0)
      std::fill_n(to, d_.N * d_.H, 0.0f);
    else if (halves_)
      widen(half(args, index), to, d_.N * d_.H, 1);
    else
      std::copy_n(in(args, index), d_.N * d_.H, to);
  }
  // out = state(i), or out += that.
  template <class State>
  void give_states(const OpArgs& args, int index, const State& state) const {
    const bool add = beta(args, index) != 0;
    auto* rounds = static_cast<BHalf*>(args.tensors[index]);
    float* to = out(args, index);
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
  // The states before and after time t, in the order in which times are run.
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

  // Rows of x and dx (N, T, F) by time; they are an operand of a product if they are transposed.
  Factor rows_of_x() const {
    Factor rows{d_.T * d_.N, d_.F, d_.F};
    if (in_place_) rows.wide = !halves_, rows.stride = d_.T * d_.F, rows.inner = d_.N, rows.outer = d_.F;
    return rows;
  }
  // x in the form of rows_of_x, in scratch if it is transposed.
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
  bool halves_;                 // x, y, initial and final states, and their gradients are bf16
  bool in_place_;               // products use rows of x and dx in place
  std::int64_t parts_, gates_;  // floats per row
  std::int64_t row_;            // distance between rows of parts, in floats
  StepProduct product_;
  std::optional<Product> whole_;  // in halves: the product with weight_x
  ScratchPlan saved_, scratch_;
  std::size_t parts_at_ = 0, h_at_ = 0, c_at_ = 0, x_at_ = 0;
};

std::unique_ptr<Op> make_rnn_backward(const Context& context, const OpSpec& spec, const Precision& precision);

}  // namespace echelon::inline device::onednn
