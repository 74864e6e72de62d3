// Where a split model's tensors leave a rank and come to it. model/ sees a number and a shape; who is at the
// other end is for parallel/ to say.
#pragma once

#include "model/splits/layer_split.hpp"

namespace echelon::inline model {

// Sends its input on; backward, the input's gradient comes back.
LayerPtr make_send(int cut);
// Gives what comes, (shape) a sample; backward, its gradient goes back, where something `learns` at the other end.
LayerPtr make_receive(int cut, const Shape& shape, bool learns);

// Layers split by their units (parallel/tensor.hpp). Every rank of the split runs the same nodes in the same order.
//   spread  in front of layers that compute some of their outputs each: gives its input on; backward, the gradients of
//           all ranks are summed
//   sum     behind layers that take some of their inputs each: gives the sum of all ranks' inputs
//   gather  gives whole values of which its input is `units`; backward, this rank's part of the gradient
LayerPtr make_spread(int cut);
LayerPtr make_sum(int cut);
LayerPtr make_gather(int cut, const Units& units);

}  // namespace echelon::inline model
