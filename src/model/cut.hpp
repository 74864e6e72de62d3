// Where a split model's tensors leave a rank and come to it. The model room knows a number and a shape; who is at the
// other end is for parallel/ to say.
#pragma once

#include "model/layer.hpp"

namespace echelon {

// Sends its input on; backward, the input's gradient comes back.
LayerPtr make_send(int cut);
// Gives what comes, (shape) a sample; backward, its gradient goes back, where something `learns` at the other end.
LayerPtr make_receive(int cut, const Shape& shape, bool learns);

}  // namespace echelon
