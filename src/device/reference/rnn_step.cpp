// SPDX-License-Identifier: Apache-2.0
// One step of some units of a recurrent layer; sums in double.
#include <vector>

#include "device/ops/rnn_args.hpp"
#include "device/reference/ops.hpp"
#include "device/reference/rnn_cell.hpp"

namespace echelon::inline device::reference {
namespace {

template <class T>
class RnnStep {
 public:
  explicit RnnStep(const OpSpec& spec) : d_(std::get<RnnStepDims>(spec.dims)), at_(spec) {}

  void forward(const OpArgs& args) const {
    const T *a = in<T>(args, at_.a), *w = in<T>(args, at_.weight_h), *bias = in<T>(args, at_.bias_h);
    const Output<T> h_next(args, at_.h_next);
    for (std::int64_t n = 0; n < d_.N; ++n) {
      const T* h = in<T>(args, at_.h) + n * d_.H;
      for (std::int64_t u = 0; u < d_.U; ++u) {
        const auto x = [&](std::int64_t g) { return static_cast<double>(a[(sequence(n) * d_.G() + g) * d_.U + u]); };
        const auto back = [&](std::int64_t g) {
          const std::int64_t row = g * d_.U + u;
          double sum = static_cast<double>(bias[row]);
          for (std::int64_t j = 0; j < d_.H; ++j)
            sum += static_cast<double>(w[row * d_.H + j]) * static_cast<double>(h[j]);
          return sum;
        };
        const double before = static_cast<double>(h[d_.begin + u]);
        const bool there = active(args, n);
        h_next.put(n * d_.U + u, there ? step(args, n, u, before, x, back) : before);
        if (!there) stay(args, n, u);
      }
    }
  }

  void backward(const OpArgs& args) const {
    const T* w = in<T>(args, at_.weight_h);
    std::vector<double> gradient(static_cast<std::size_t>(d_.G() * d_.U));  // gradient of weight_h h
    for (std::int64_t n = 0; n < d_.N; ++n) {
      std::vector<double> dh(static_cast<std::size_t>(d_.H));
      for (std::int64_t u = 0; u < d_.U; ++u)
        dh[static_cast<std::size_t>(d_.begin + u)] = unit_back(args, n, u, gradient.data());
      for (std::int64_t row = 0; row < d_.G() * d_.U; ++row)
        for (std::int64_t j = 0; j < d_.H; ++j)
          dh[static_cast<std::size_t>(j)] +=
              gradient[static_cast<std::size_t>(row)] * static_cast<double>(w[row * d_.H + j]);
      for (std::int64_t j = 0; j < d_.H; ++j)
        Output<T>(args, at_.dh).put(n * d_.H + j, dh[static_cast<std::size_t>(j)]);
    }
  }

 private:
  // Whether the sequence of sample n reaches this step.
  bool active(const OpArgs& args, std::int64_t n) const {
    return at_.lengths < 0 || d_.first + d_.t < in<std::int32_t>(args, at_.lengths)[n];
  }
  std::int64_t sequence(std::int64_t n) const { return n * d_.T + d_.t; }
  std::int64_t gate(std::int64_t n, std::int64_t p, std::int64_t u) const {
    return (sequence(n) * d_.P() + p) * d_.U + u;
  }

  // Returns the state after the step; keeps its gates.
  template <class X, class Back>
  double step(const OpArgs& args, std::int64_t n, std::int64_t u, double h, const X& x, const Back& back) const {
    const double c = d_.has_c() ? static_cast<double>(in<T>(args, at_.c)[n * d_.U + u]) : 0;
    CellGates kept;
    const CellState after = step_cell(d_.cell, {.h = h, .c = c}, x, back, kept);
    for (std::int64_t p = 0; p < d_.P(); ++p) Output<T>(args, at_.gates).put(gate(n, p, u), kept.at[p]);
    if (d_.has_c()) Output<T>(args, at_.c_next).put(n * d_.U + u, after.c);
    return after.h;
  }

  void stay(const OpArgs& args, std::int64_t n, std::int64_t u) const {
    for (std::int64_t p = 0; p < d_.P(); ++p) Output<T>(args, at_.gates).put(gate(n, p, u), 0);
    if (d_.has_c())
      Output<T>(args, at_.c_next).put(n * d_.U + u, static_cast<double>(in<T>(args, at_.c)[n * d_.U + u]));
  }

  // Writes the gradients of unit u's sums, and those of weight_h h to `product` too; returns the gradient past
  // weight_h.
  double unit_back(const OpArgs& args, std::int64_t n, std::int64_t u, double* product) const {
    const Output<T> da(args, at_.da);
    const auto put = [&](std::int64_t g, double of_a, double of_b) {
      const std::int64_t index = (sequence(n) * d_.G() + g) * d_.U + u;
      da.put(index, of_a);
      if (at_.db >= 0) Output<T>(args, at_.db).put(index, of_b);
      product[g * d_.U + u] = of_b;
    };
    const auto own = [&](int index) { return static_cast<double>(in<T>(args, index)[n * d_.U + u]); };
    const std::int64_t whole = d_.begin + u;
    double dh = static_cast<double>(in<T>(args, at_.dh_next)[n * d_.H + whole]);
    if (!active(args, n)) {
      for (std::int64_t g = 0; g < d_.G(); ++g) put(g, 0, 0);
      if (d_.has_c()) Output<T>(args, at_.dc).put(n * d_.U + u, own(at_.dc_next));
      return dh;
    }
    if (at_.dy >= 0) dh += static_cast<double>(in<T>(args, at_.dy)[sequence(n) * d_.H + whole]);
    CellGates gates;
    for (std::int64_t p = 0; p < d_.P(); ++p) gates.at[p] = static_cast<double>(in<T>(args, at_.gates)[gate(n, p, u)]);
    CellState before, after{.h = dh};
    double c_after = 0;
    if (d_.has_c()) before.c = own(at_.c), after.c = own(at_.dc_next), c_after = own(at_.c_next);
    if (d_.cell == Cell::gru) before.h = static_cast<double>(in<T>(args, at_.hs)[sequence(n) * d_.H + whole]);
    const CellGradient d = cell_gradient(d_.cell, gates, before, c_after, after);
    for (std::int64_t g = 0; g < d_.G(); ++g) put(g, d.x[g], d.back[g]);
    if (d_.has_c()) Output<T>(args, at_.dc).put(n * d_.U + u, d.before.c);
    return d.before.h;
  }

  RnnStepDims d_;
  RnnStepArgs at_;
};

}  // namespace

std::unique_ptr<Op> make_rnn_step(const OpSpec& spec) {
  return with_float(spec.dtype, [&]<class T>(T) {
    auto body = std::make_shared<RnnStep<T>>(spec);
    if (spec.kind == OpKind::rnn_step_forward) return loop_op([body](const OpArgs& a) { body->forward(a); });
    if (spec.kind != OpKind::rnn_step_backward) not_of_family(spec);
    return loop_op([body](const OpArgs& a) { body->backward(a); });
  });
}

}  // namespace echelon::inline device::reference
