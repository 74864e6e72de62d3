// Softmax cross-entropy over classes.
#pragma once

#include "model/layer.hpp"

namespace echelon::inline model {

// For logits x, label t and weight w: loss w * -sum over k of q_k log p_k, p = softmax(x), q_k = (1 - smoothing) [k =
// t]
// + smoothing / classes (Szegedy et al. 2015) in training, q_k = [k = t] in evaluation; dx = w (p - q) * loss_scale.
// Inputs: logits (.., classes), labels (..) index, weights (..): one label a sample, or one a token of a sequence.
// Output: probabilities of the logits' shape. Adds loss, correct predictions (argmax = t) and weights of all forward
// passes in a kept tensor "sums" (3) f64, which Program::losses reads. infer: ConfigError where the logits do not fit.
LayerPtr make_softmax_loss(std::int64_t classes, double smoothing = 0);

}  // namespace echelon::inline model
