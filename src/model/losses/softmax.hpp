// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy over classes, and focal and Dice loss in its place.
#pragma once

#include "device/ops/class_loss.hpp"
#include "model/layer.hpp"

namespace echelon::inline model {

// For logits x, label t and weight w the loss is w * -sum over k of q_k log p_k, with p = softmax(x) and, in training,
// q_k = (1 - smoothing) [k = t] + smoothing / classes (Szegedy et al. 2015), in evaluation q_k = [k = t]; dx = w (p -
// q) * loss_scale.
// Inputs: logits (.., classes), labels (..) index, weights (..): one label per sample, or one per token of a sequence.
// With `mixes` a sample has in training a second label and weight, whose loss is added: inputs others (..) index,
// other_weights (..).
// With `dense` a label per place of an image: logits (classes, ..), labels (..), weights (..). Output: probabilities of
// the logits' shape. Adds loss, correct predictions (argmax = t) and weights of all forward passes in a kept tensor
// "sums" (3) f64, which Program::losses reads. infer: ConfigError if the logits do not fit.
LayerPtr make_softmax_loss(std::int64_t classes, double smoothing = 0, bool dense = false, bool mixes = false);

// The same with focal loss, or with the Dice loss of samples with a class for every place (device/ops/class_loss.hpp).
LayerPtr make_class_loss(std::int64_t classes, ClassLoss loss, double gamma, bool dense, bool mixes = false);

}  // namespace echelon::inline model
