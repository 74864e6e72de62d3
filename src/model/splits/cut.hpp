// SPDX-License-Identifier: Apache-2.0
// Nodes at which tensors of a split model leave a rank or arrive at it. They lower to Lowering::transfer with the
// number of a cut; parallel/cut.hpp describes which ranks take part in it.
#pragma once

#include "model/splits/layer_split.hpp"

namespace echelon::inline model {

// Forward: sends the input. Backward: receives its gradient, if Lowering::wants_grad_input. The output is a value ()
// that no op reads or writes.
LayerPtr make_send(int cut);
// A node without input. Forward: receives the output, of this shape for each sample. Backward, if `learns` (the sender
// has parameters upstream): sends the gradient of the output.
LayerPtr make_receive(int cut, const Shape& shape, bool learns);

// Collectives around layers that are split by units (parallel/tensor.hpp). Every shard runs the same nodes in the same
// order.
//            where                              forward                             backward
//   spread   before LayerSplit::with_outputs    the input                           the sum of all shards' gradients
//   sum      behind LayerSplit::with_inputs     the sum of all shards' inputs       the gradient
//   gather   behind LayerSplit::with_outputs    all units; the input has `units`    the gradient of `units`
// In Megatron-LM `spread` is f and `sum` is g. `gather` takes (C, H, W), (F) or (T, F).
LayerPtr make_spread(int cut);
LayerPtr make_sum(int cut);
LayerPtr make_gather(int cut, const Units& units);

}  // namespace echelon::inline model
