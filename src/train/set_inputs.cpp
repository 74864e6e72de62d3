#include "train/set_inputs.hpp"

namespace echelon::inline train {

void set_inputs(Device& device, const Program& program, const Batch& batch, std::int64_t first, int in_flight) {
  const auto give = [&](const char* name, const void* rows) {
    if (!program.has_input(name)) return;
    const Tensor input = program.input(name, in_flight);
    const std::size_t row = input.bytes() / static_cast<std::size_t>(program.batch());
    device.to_device(input.data, static_cast<const std::byte*>(rows) + static_cast<std::size_t>(first) * row,
                     input.bytes());
  };
  give("samples", batch.samples);
  give("labels", batch.labels);
  give("weights", batch.weights);
  give("ids", batch.ids);
  give("lengths", batch.lengths);
  give("target", batch.target);
}

}  // namespace echelon::inline train
