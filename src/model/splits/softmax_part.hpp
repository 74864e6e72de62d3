// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy whose classes are divided over ranks (LayerSplit::on_classes).
#pragma once

#include "model/splits/layer_split.hpp"

namespace echelon::inline model {

// The loss of make_softmax_loss (model/losses/softmax.hpp) from logits whose classes are divided over `parts` ranks.
// For each label SoftmaxPartDims::kPartials numbers are exchanged at `cut` instead of the logits. Inputs: logits (..,
// classes.count()), labels (..), weights (..); output: the logits that are here.
LayerPtr make_softmax_loss_part(const Units& classes, int cut, int parts, double smoothing);

}  // namespace echelon::inline model
