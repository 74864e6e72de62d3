// SPDX-License-Identifier: Apache-2.0
// Losses of real-valued outputs: mean squared and absolute error, binary cross-entropy, hinge.
#pragma once

#include <cstdint>

#include "device/op_spec.hpp"
#include "model/layer.hpp"

namespace echelon::inline model {

// Inputs: values x, labels t and weights w, all of one shape; (1, ..) and (.., 1) of values fit labels (..). Output:
// the values.
//   squared   sum of w (x - t)^2; `classes` must be 0 (labels are real numbers)
//   logistic  sum of w (log(1 + e^x) - t x), binary cross-entropy of logits; labels in [0, 1], or `classes` = 2; a
//             prediction is correct where x > 0 agrees with t > 1/2
//   absolute  sum of w |x - t|; `classes` must be 0
//   hinge     sum of w max(0, 1 - s x), s = 1 for t > 1/2 and else -1 (Cortes, Vapnik 1995); labels are -1 and 1, or
//             `classes` = 2; correct as for logistic
// Sums are kept as in make_softmax_loss. ConfigError for other `classes`.
LayerPtr make_value_loss(ValueLoss loss, std::int64_t classes);

}  // namespace echelon::inline model
