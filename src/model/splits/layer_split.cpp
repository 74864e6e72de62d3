// SPDX-License-Identifier: Apache-2.0
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {

const LayerSplit& layer_split(const Layer& layer) {
  static const LayerSplit none;
  const LayerSplit* split = layer.split();
  return split ? *split : none;
}

}  // namespace echelon::inline model
