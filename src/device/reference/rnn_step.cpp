// One step of some units of a recurrent layer, and a step's place in its sequence; sums in double.
#include <algorithm>
#include <cmath>
#include <vector>

#include "device/reference/ops.hpp"
#include "device/rnn_args.hpp"

namespace echelon::reference {
namespace {

double sigmoid(double a) { return 1 / (1 + std::exp(-a)); }

// Whether sample n still has the step.
template <class D>
bool is_there(const D& d, const OpArgs& args, int lengths, std::int64_t n) {
  return lengths < 0 || d.first + d.t < in<std::int32_t>(args, lengths)[n];
}

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
        const bool there = is_there(d_, args, at_.lengths, n);
        h_next.put(n * d_.U + u, there ? step(args, n, u, before, x, back) : before);
        if (!there) stay(args, n, u);
      }
    }
  }

  void backward(const OpArgs& args) const {
    const T* w = in<T>(args, at_.weight_h);
    std::vector<double> gradient(static_cast<std::size_t>(d_.G() * d_.U));  // of weight_h h
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
  std::int64_t sequence(std::int64_t n) const { return n * d_.T + d_.t; }
  std::int64_t gate(std::int64_t n, std::int64_t p, std::int64_t u) const {
    return (sequence(n) * d_.P() + p) * d_.U + u;
  }

  // The state after the step, and what is kept of it.
  template <class X, class Back>
  double step(const OpArgs& args, std::int64_t n, std::int64_t u, double h, const X& x, const Back& back) const {
    const Output<T> gates(args, at_.gates);
    const auto keep = [&](std::int64_t p, double value) {
      gates.put(gate(n, p, u), value);
      return value;
    };
    switch (d_.cell) {
      case Cell::tanh: return keep(0, std::tanh(x(0) + back(0)));
      case Cell::relu: return keep(0, std::max(0.0, x(0) + back(0)));
      case Cell::lstm: {
        const double i = keep(0, sigmoid(x(0) + back(0))), f = keep(1, sigmoid(x(1) + back(1)));
        const double g = keep(2, std::tanh(x(2) + back(2))), o = keep(3, sigmoid(x(3) + back(3)));
        const double c = f * static_cast<double>(in<T>(args, at_.c)[n * d_.U + u]) + i * g;
        Output<T>(args, at_.c_next).put(n * d_.U + u, c);
        return o * std::tanh(c);
      }
      case Cell::gru: {
        const double r = keep(0, sigmoid(x(0) + back(0))), z = keep(1, sigmoid(x(1) + back(1)));
        const double b = keep(3, back(2)), m = keep(2, std::tanh(x(2) + r * b));
        return (1 - z) * m + z * h;
      }
    }
    return 0;
  }

  void stay(const OpArgs& args, std::int64_t n, std::int64_t u) const {
    for (std::int64_t p = 0; p < d_.P(); ++p) Output<T>(args, at_.gates).put(gate(n, p, u), 0);
    if (d_.has_c())
      Output<T>(args, at_.c_next).put(n * d_.U + u, static_cast<double>(in<T>(args, at_.c)[n * d_.U + u]));
  }

  // Writes the gradients of unit u's sums, those of weight_h h into `product` as well; what goes past weight_h.
  double unit_back(const OpArgs& args, std::int64_t n, std::int64_t u, double* product) const {
    const Output<T> da(args, at_.da);
    const auto put = [&](std::int64_t g, double of_a, double of_b) {
      const std::int64_t place = (sequence(n) * d_.G() + g) * d_.U + u;
      da.put(place, of_a);
      if (at_.db >= 0) Output<T>(args, at_.db).put(place, of_b);
      product[g * d_.U + u] = of_b;
    };
    const auto kept = [&](std::int64_t p) { return static_cast<double>(in<T>(args, at_.gates)[gate(n, p, u)]); };
    const auto own = [&](int place) { return static_cast<double>(in<T>(args, place)[n * d_.U + u]); };
    const std::int64_t whole = d_.begin + u;
    double dh = static_cast<double>(in<T>(args, at_.dh_next)[n * d_.H + whole]);
    if (!is_there(d_, args, at_.lengths, n)) {
      for (std::int64_t g = 0; g < d_.G(); ++g) put(g, 0, 0);
      if (d_.has_c()) Output<T>(args, at_.dc).put(n * d_.U + u, own(at_.dc_next));
      return dh;
    }
    if (at_.dy >= 0) dh += static_cast<double>(in<T>(args, at_.dy)[sequence(n) * d_.H + whole]);
    const auto both = [&](std::int64_t g, double value) { put(g, value, value); };
    switch (d_.cell) {
      case Cell::tanh: both(0, dh * (1 - kept(0) * kept(0))); return 0;
      case Cell::relu: both(0, kept(0) > 0 ? dh : 0); return 0;
      case Cell::lstm: {
        const double i = kept(0), f = kept(1), g = kept(2), o = kept(3), bent = std::tanh(own(at_.c_next));
        const double dc = own(at_.dc_next) + dh * o * (1 - bent * bent);
        both(0, dc * g * i * (1 - i));
        both(1, dc * own(at_.c) * f * (1 - f));
        both(2, dc * i * (1 - g * g));
        both(3, dh * bent * o * (1 - o));
        Output<T>(args, at_.dc).put(n * d_.U + u, dc * f);
        return 0;
      }
      case Cell::gru: {
        const double r = kept(0), z = kept(1), m = kept(2), dm = dh * (1 - z) * (1 - m * m);
        const double h = static_cast<double>(in<T>(args, at_.hs)[sequence(n) * d_.H + whole]);
        both(0, dm * kept(3) * r * (1 - r));
        both(1, dh * (h - m) * z * (1 - z));
        put(2, dm, dm * r);
        return dh * z;
      }
    }
    return 0;
  }

  RnnStepDims d_;
  RnnStepArgs at_;
};

template <class T>
void place(const PlaceStepDims& d, const OpArgs& args) {
  const int lengths = d.lengths ? 1 : -1;
  const Output<T> y(args, d.lengths ? 2 : 1);
  for (std::int64_t n = 0; n < d.N; ++n)
    for (std::int64_t f = 0; f < d.F; ++f)
      y.put((n * d.T + d.t) * d.F + f,
            is_there(d, args, lengths, n) ? static_cast<double>(in<T>(args, 0)[n * d.F + f]) : 0);
}

}  // namespace

std::unique_ptr<Op> make_rnn_step(const OpSpec& spec) {
  return with_float(spec.dtype, [&]<class T>(T) {
    auto body = std::make_shared<RnnStep<T>>(spec);
    if (spec.kind == OpKind::rnn_step_forward) return loop_op([body](const OpArgs& a) { body->forward(a); });
    if (spec.kind != OpKind::rnn_step_backward) not_of_family(spec);
    return loop_op([body](const OpArgs& a) { body->backward(a); });
  });
}

std::unique_ptr<Op> make_place_step(const OpSpec& spec) {
  const auto d = std::get<PlaceStepDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) { return loop_op([d](const OpArgs& a) { place<T>(d, a); }); });
}

}  // namespace echelon::reference
