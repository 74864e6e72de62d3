// Softmax cross-entropy over classes.
#pragma once

#include "model/layer.hpp"

namespace echelon::inline model {

// Of the target, `smoothing` is spread over all classes in training; evaluation has the plain loss.
// Inputs: logits (.., classes), labels (..), weights (..): one label a sample, or one a token of a sequence. Output:
// probabilities of the logits' shape. Sums loss, correct predictions and weights of all forward passes in a kept tensor
// "sums" (3) f64, which the program reads.
LayerPtr make_softmax_loss(std::int64_t classes, double smoothing = 0);

}  // namespace echelon::inline model
