// Losses of real numbers against targets.
#pragma once

#include <cstdint>

#include "device/op_spec.hpp"
#include "model/layer.hpp"

namespace echelon::inline model {

// Inputs: values, labels and weights, all of one shape (one value fits labels ()). Squared: sum of weight * (x - t)^2.
// Logistic: binary cross-entropy of logits against labels in [0, 1], or `classes` = 2 classes. Sums as the softmax loss
// keeps them; the prediction of a logistic loss is right where x > 0 and t > 1/2 agree. Output: the values.
LayerPtr make_value_loss(ValueLoss loss, std::int64_t classes);

}  // namespace echelon::inline model
