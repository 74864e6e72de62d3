// A max pool that holds the ReLU before it.
#pragma once

#include "model/layer.hpp"

namespace echelon {

// The max pool of a ReLU is the ReLU of the max pool: over fewer elements, and without a pass of its own in either
// direction. Null where `layer` is no max pool.
LayerPtr behind_relu(const Layer& layer);

}  // namespace echelon
