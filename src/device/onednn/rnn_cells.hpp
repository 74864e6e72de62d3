// SPDX-License-Identifier: Apache-2.0
// The elementwise part of a recurrent step, forward and backward, for a batch of N rows.
//
// Rows of `parts` hold the cell's gates after their activation functions: lstm i f g o; gru r z n q with q = weight_h h
// + bias_h of n; tanh and relu have no gates, their part is the state itself. Rows that are not `active` keep their
// state.
#pragma once

#include <cstdint>

#include "device/onednn/halves.hpp"
#include "device/op_spec.hpp"

namespace echelon::inline device::onednn {

struct RnnStep {
  Cell cell;
  std::int64_t N, H;
  std::int64_t h_row;       // distance between rows of the previous state, in floats
  std::int64_t parts_row;   // the same for parts
  std::int64_t dparts_row;  // the same for their gradients
  int threads;
  std::int64_t t = 0;                     // step in the whole sequence
  const std::int32_t* lengths = nullptr;  // null: all rows are active
  bool avx512 = false;                    // uses vectors of 16, with the same bits as vectors of 8

  bool active(std::int64_t n) const { return !lengths || t < lengths[n]; }
};

// bias (parts, H) = bias_x + bias_h; gru's n has bias_x only, and its q bias_h. bias_x may be null, which means zeros.
void rnn_bias(Cell cell, std::int64_t H, const float* bias_x, const float* bias_h, float* bias);

struct RnnForward {
  float* parts;            // (N, parts*H): in: weight_x x, out: the gates
  const float* product;    // (N, G*H): weight_h h
  const float* bias;       // result of rnn_bias
  const float *h, *c;      // (N, H), h in rows of h_row: the state before; c only for lstm
  float *h_next, *c_next;  // (N, H): the state after; for tanh and relu h_next is `parts`
  float* y;                // row n at n * y_stride; null: not needed
  std::int64_t y_stride;
  BHalf* y_halves = nullptr;  // y in bf16, with the same rows
};
void rnn_step_forward(const RnnStep& step, const RnnForward& at);

struct RnnBackward {
  const float* parts;           // the result of the forward step
  const float *h, *c, *c_next;  // the state before, h in rows of h_row, and c after
  const float* dy;              // row n at n * dy_stride; null: none
  std::int64_t dy_stride;
  const BHalf* dy_halves = nullptr;  // dy in bf16, with the same rows
  const float* product;              // (N, H): the gradient that weight_h passes back from the next step
  float* passed;                     // (N, H): the gradient past weight_h; in: of the next step, out: for the previous
  float* dc;                         // (N, H), in and out as above
  float* dparts;                     // (N, parts*H): gradients before the gates' functions, in the order of parts
  float* dproduct;                   // (N, G*H): gradient of weight_h h if it is not dparts (gru); else unused
  BHalf* rounded = nullptr;          // dparts in bf16, rows parts*H apart; null: not needed
};
void rnn_step_backward(const RnnStep& step, const RnnBackward& at);

}  // namespace echelon::inline device::onednn
