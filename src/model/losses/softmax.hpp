// Softmax cross-entropy over classes.
#pragma once

#include "model/layer.hpp"

namespace echelon::inline model {

// Of the target, `smoothing` is spread over all classes in training; evaluation has the plain loss.
// Inputs: logits (.., classes), labels (..), weights (..): one label a sample, or one a token of a sequence. Output:
// probabilities of the logits' shape. Sums loss, correct predictions and weights of all forward passes in a kept tensor
// "sums" (3) f64, which the program reads.
LayerPtr make_softmax_loss(std::int64_t classes, double smoothing = 0);

// The same of logits of which each of `parts` ranks has some classes (Layer::on_classes): four numbers of each label,
// SoftmaxPartDims::kPartials, travel at `cut` instead of the logits. Its output is the logits that are here.
LayerPtr make_softmax_loss_part(const Units& classes, int cut, int parts, double smoothing);

}  // namespace echelon::inline model
