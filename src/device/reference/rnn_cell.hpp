// SPDX-License-Identifier: Apache-2.0
// One unit of a recurrent layer in one step, in double: the formulas of all cells, forward and backward.
//
//   tanh, relu   h' = f(x + R h)                                          (Elman 1990)
//   lstm         c' = f c + i g, h' = o tanh(c')                          (Hochreiter, Schmidhuber 1997)
//   gru          m = tanh(x_m + r (R_m h)), h' = (1 - z) m + z h          (Cho et al. 2014, cuDNN's form)
//
// x(g) is gate g's product with the input, back(g) that with the previous state, including biases.
#pragma once

#include <algorithm>
#include <cmath>

#include "device/op_spec.hpp"

namespace echelon::inline device::reference {

// Gates after their functions: lstm i f g o; gru r z m, with back(2) at index 3; for other cells the state.
struct CellGates {
  double at[4] = {};
};
struct CellState {
  double h = 0, c = 0;
};

inline double sigmoid(double a) { return 1 / (1 + std::exp(-a)); }

template <class X, class Back>
CellState step_cell(Cell cell, const CellState& before, const X& x, const Back& back, CellGates& gates) {
  auto& [kept] = gates;
  switch (cell) {
    case Cell::tanh: return {.h = kept[0] = std::tanh(x(0) + back(0))};
    case Cell::relu: return {.h = kept[0] = std::max(0.0, x(0) + back(0))};
    case Cell::lstm: {
      const double i = kept[0] = sigmoid(x(0) + back(0)), f = kept[1] = sigmoid(x(1) + back(1));
      const double g = kept[2] = std::tanh(x(2) + back(2)), o = kept[3] = sigmoid(x(3) + back(3));
      const double c = f * before.c + i * g;
      return {.h = o * std::tanh(c), .c = c};
    }
    case Cell::gru: {
      const double r = kept[0] = sigmoid(x(0) + back(0)), z = kept[1] = sigmoid(x(1) + back(1));
      const double b = kept[3] = back(2), m = kept[2] = std::tanh(x(2) + r * b);
      return {.h = (1 - z) * m + z * before.h};
    }
  }
  return {};
}

// Gradients of x(g) and back(g), and the gradient of the previous state apart from the products with R.
struct CellGradient {
  double x[4] = {}, back[4] = {};
  CellState before;
};

// `after` is the gradient of the state after the step, `c_after` its value of c.
inline CellGradient cell_gradient(Cell cell, const CellGates& gates, const CellState& before, double c_after,
                                  const CellState& after) {
  const auto& [kept] = gates;
  CellGradient d;
  const auto both = [&](int g, double value) { d.x[g] = d.back[g] = value; };
  const double dh = after.h;
  switch (cell) {
    case Cell::tanh: both(0, dh * (1 - kept[0] * kept[0])); break;
    case Cell::relu: both(0, kept[0] > 0 ? dh : 0); break;
    case Cell::lstm: {
      const double i = kept[0], f = kept[1], g = kept[2], o = kept[3], bent = std::tanh(c_after);
      const double dc = after.c + dh * o * (1 - bent * bent);
      both(0, dc * g * i * (1 - i));
      both(1, dc * before.c * f * (1 - f));
      both(2, dc * i * (1 - g * g));
      both(3, dh * bent * o * (1 - o));
      d.before.c = dc * f;
      break;
    }
    case Cell::gru: {
      const double r = kept[0], z = kept[1], m = kept[2], dm = dh * (1 - z) * (1 - m * m);
      both(0, dm * kept[3] * r * (1 - r));
      both(1, dh * (before.h - m) * z * (1 - z));
      d.x[2] = dm;
      d.back[2] = dm * r;
      d.before.h = dh * z;
      break;
    }
  }
  return d;
}

}  // namespace echelon::inline device::reference
