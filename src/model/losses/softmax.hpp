// Softmax cross-entropy over classes.
#pragma once

#include "model/layer.hpp"

namespace echelon {

// Inputs: logits (classes), labels (), weights (). Output: probabilities (classes). Sums loss, correct predictions and
// weights of all forward passes in a kept tensor "sums" (3) f64, which the program reads.
LayerPtr make_softmax_loss(std::int64_t classes);

}  // namespace echelon
