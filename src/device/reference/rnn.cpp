// SPDX-License-Identifier: Apache-2.0
// Recurrent layers, sample by sample and step by step, with states in double. The backward pass repeats the forward
// pass instead of saving anything, then goes back through time (Werbos 1990).
#include <algorithm>
#include <vector>

#include "device/ops/rnn_args.hpp"
#include "device/reference/ops.hpp"
#include "device/reference/rnn_cell.hpp"

namespace echelon::inline device::reference {
namespace {

template <class T>
class Rnn {
 public:
  explicit Rnn(const OpSpec& spec)
      : d_(std::get<RnnDims>(spec.dims)),
        at_(spec),
        gates_(size(d_.T, d_.H)),
        h_(size(d_.T + 1, d_.H)),
        c_(size(d_.T + 1, d_.H)),
        a_(size(d_.G(), d_.H)),
        b_(size(d_.G(), d_.H)),
        dh_(size(1, d_.H)),
        dc_(size(1, d_.H)),
        row_(size(1, std::max(d_.F, d_.H))) {
    for (std::vector<double>* sums : {&dw_x_, &dw_h_}) sums->resize(size(d_.G() * d_.H, sums == &dw_x_ ? d_.F : d_.H));
    for (std::vector<double>* sums : {&db_x_, &db_h_}) sums->resize(size(d_.G(), d_.H));
  }

  void forward(const OpArgs& args) {
    const Output<T> y(args, at_.y), hn(args, at_.hn);
    for (std::int64_t n = 0; n < d_.N; ++n) {
      run_sample(args, n);
      const std::int64_t steps = length(args, n);
      for (std::int64_t s = 0; s < steps; ++s)
        for (std::int64_t j = 0; j < d_.H; ++j) y.put((n * d_.T + time(s, steps)) * d_.H + j, at(h_, s + 1, j));
      for (std::int64_t i = steps * d_.H; i < d_.T * d_.H; ++i) y.put(n * d_.T * d_.H + i, 0);
      for (std::int64_t j = 0; j < d_.H; ++j) {
        hn.put(n * d_.H + j, at(h_, steps, j));
        if (at_.cn >= 0) Output<T>(args, at_.cn).put(n * d_.H + j, at(c_, steps, j));
      }
    }
  }

  void backward(const OpArgs& args) {
    for (std::vector<double>* sums : {&dw_x_, &dw_h_, &db_x_, &db_h_}) std::fill(sums->begin(), sums->end(), 0.0);
    const Output<T> dx(args, at_.dx);
    for (std::int64_t n = 0; n < d_.N; ++n) {
      run_sample(args, n);
      const std::int64_t steps = length(args, n);
      for (std::int64_t j = 0; j < d_.H; ++j) {
        dh_[index(j)] = optional(args, at_.dhn, n * d_.H + j);
        dc_[index(j)] = optional(args, at_.dcn, n * d_.H + j);
      }
      for (std::int64_t s = steps - 1; s >= 0; --s) step_back(args, n, time(s, steps), s);
      for (std::int64_t i = steps * d_.F; i < d_.T * d_.F; ++i) dx.put(n * d_.T * d_.F + i, 0);
      for (std::int64_t j = 0; j < d_.H; ++j) {
        if (at_.dh0 >= 0) Output<T>(args, at_.dh0).put(n * d_.H + j, dh_[index(j)]);
        if (at_.dc0 >= 0) Output<T>(args, at_.dc0).put(n * d_.H + j, dc_[index(j)]);
      }
    }
    put_all(Output<T>(args, at_.dweight_x), dw_x_);
    put_all(Output<T>(args, at_.dweight_h), dw_h_);
    put_all(Output<T>(args, at_.dbias_x), db_x_);
    put_all(Output<T>(args, at_.dbias_h), db_h_);
  }

 private:
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  static std::size_t size(std::int64_t rows, std::int64_t columns) { return index(rows * columns); }
  double& at(std::vector<double>& states, std::int64_t row, std::int64_t j) { return states[index(row * d_.H + j)]; }

  static double optional(const OpArgs& args, int index, std::int64_t i) {
    return index < 0 ? 0.0 : static_cast<double>(in<T>(args, index)[i]);
  }
  static void put_all(const Output<T>& output, const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) output.put(static_cast<std::int64_t>(i), values[i]);
  }
  // The number of steps of sample n that are in this chunk.
  std::int64_t length(const OpArgs& args, std::int64_t n) const {
    if (at_.lengths < 0) return d_.T;
    return std::clamp<std::int64_t>(in<std::int32_t>(args, at_.lengths)[n] - d_.first, 0, d_.T);
  }
  // The time of the s-th step in the order of execution.
  std::int64_t time(std::int64_t s, std::int64_t steps) const { return d_.reverse ? steps - 1 - s : s; }

  // sums[r] = b[r] + w[r] v, r in [0, G*H)
  template <class V>
  void product(const OpArgs& args, int weight, int bias, const V* v, std::int64_t columns, std::vector<double>& sums) {
    const T *w = in<T>(args, weight), *b = in<T>(args, bias);
    for (std::int64_t r = 0; r < d_.G() * d_.H; ++r) {
      double sum = static_cast<double>(b[r]);
      for (std::int64_t f = 0; f < columns; ++f)
        sum += static_cast<double>(w[r * columns + f]) * static_cast<double>(v[f]);
      sums[index(r)] = sum;
    }
  }

  // Fills gates_, h_ and c_ of sample n; row s + 1 is the state after step s.
  void run_sample(const OpArgs& args, std::int64_t n) {
    for (std::int64_t j = 0; j < d_.H; ++j) {
      at(h_, 0, j) = optional(args, at_.h0, n * d_.H + j);
      at(c_, 0, j) = optional(args, at_.c0, n * d_.H + j);
    }
    const std::int64_t steps = length(args, n);
    for (std::int64_t s = 0; s < steps; ++s) {
      const T* x = in<T>(args, at_.x) + (n * d_.T + time(s, steps)) * d_.F;
      product(args, at_.weight_x, at_.bias_x, x, d_.F, a_);
      product(args, at_.weight_h, at_.bias_h, h_.data() + s * d_.H, d_.H, b_);
      for (std::int64_t j = 0; j < d_.H; ++j) step(s, j);
    }
  }

  CellState state(std::int64_t row, std::int64_t j) { return {.h = at(h_, row, j), .c = at(c_, row, j)}; }
  CellGates& gates(std::int64_t s, std::int64_t j) { return gates_[index(s * d_.H + j)]; }

  void step(std::int64_t s, std::int64_t j) {
    const auto x = [&](std::int64_t g) { return a_[index(g * d_.H + j)]; };
    const auto back = [&](std::int64_t g) { return b_[index(g * d_.H + j)]; };
    const CellState after = step_cell(d_.cell, state(s, j), x, back, gates(s, j));
    at(h_, s + 1, j) = after.h;
    at(c_, s + 1, j) = after.c;
  }

  // Computes from dh_, dc_ after step s: a_ = d a, b_ = d b, and the part of dh_, dc_ of the previous step that does
  // not go through the products.
  void step_gradient(std::int64_t s, std::int64_t j) {
    double &dh = dh_[index(j)], &dc = dc_[index(j)];
    const CellGradient d = cell_gradient(d_.cell, gates(s, j), state(s, j), at(c_, s + 1, j), {.h = dh, .c = dc});
    for (std::int64_t g = 0; g < d_.G(); ++g) {
      a_[index(g * d_.H + j)] = d.x[g];
      b_[index(g * d_.H + j)] = d.back[g];
    }
    dh = d.before.h;
    dc = d.before.c;
  }

  void step_back(const OpArgs& args, std::int64_t n, std::int64_t t, std::int64_t s) {
    for (std::int64_t j = 0; j < d_.H; ++j) {
      dh_[index(j)] += optional(args, at_.dy, (n * d_.T + t) * d_.H + j);
      step_gradient(s, j);
    }
    const std::int64_t first = (n * d_.T + t) * d_.F;
    pull(in<T>(args, at_.weight_x), in<T>(args, at_.x) + first, a_, d_.F, dw_x_, db_x_);
    for (std::int64_t f = 0; f < d_.F; ++f) Output<T>(args, at_.dx).put(first + f, row_[index(f)]);
    pull(in<T>(args, at_.weight_h), h_.data() + s * d_.H, b_, d_.H, dw_h_, db_h_);
    for (std::int64_t j = 0; j < d_.H; ++j) dh_[index(j)] += row_[index(j)];
  }

  // row_ = w^T gradient; dw += gradient v^T; db += gradient
  template <class V>
  void pull(const T* w, const V* v, const std::vector<double>& gradient, std::int64_t columns, std::vector<double>& dw,
            std::vector<double>& db) {
    std::fill(row_.begin(), row_.end(), 0.0);
    for (std::size_t r = 0; r < gradient.size(); ++r) {
      db[r] += gradient[r];
      for (std::size_t f = 0; f < index(columns); ++f) {
        row_[f] += gradient[r] * static_cast<double>(w[r * index(columns) + f]);
        dw[r * index(columns) + f] += gradient[r] * static_cast<double>(v[f]);
      }
    }
  }

  RnnDims d_;
  RnnArgs at_;
  std::vector<CellGates> gates_;               // gates of one sample
  std::vector<double> h_, c_;                  // states of one sample
  std::vector<double> a_, b_, dh_, dc_, row_;  // work space of one step
  std::vector<double> dw_x_, dw_h_, db_x_, db_h_;
};

}  // namespace

std::unique_ptr<Op> make_rnn(const OpSpec& spec) {
  return with_float(spec.dtype, [&]<class T>(T) {
    auto body = std::make_shared<Rnn<T>>(spec);
    if (spec.kind == OpKind::rnn_forward) return loop_op([body](const OpArgs& a) { body->forward(a); });
    if (spec.kind != OpKind::rnn_backward) not_of_family(spec);
    return loop_op([body](const OpArgs& a) { body->backward(a); });
  });
}

}  // namespace echelon::inline device::reference
