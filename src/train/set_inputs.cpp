// SPDX-License-Identifier: Apache-2.0
#include "train/set_inputs.hpp"

namespace echelon::inline train {
namespace {

// put(dst, src, bytes) for each input of the program.
template <class Put>
void each_input(const Program& program, const Batch& batch, std::int64_t first, int in_flight, const Put& put) {
  const auto give = [&](const char* name, const void* rows) {
    if (rows == nullptr || !program.has_input(name)) return;
    const Tensor input = program.input(name, in_flight);
    const std::size_t row = input.bytes() / static_cast<std::size_t>(program.batch());
    put(input.data, static_cast<const std::byte*>(rows) + static_cast<std::size_t>(first) * row, input.bytes());
  };
  give("samples", batch.samples);
  give("labels", batch.labels);
  give("weights", batch.weights);
  give("others", batch.others);
  give("other_weights", batch.other_weights);
  give("ids", batch.ids);
  give("lengths", batch.lengths);
  give("target", batch.target);
}

}  // namespace

void set_inputs(Device& device, const Program& program, const Batch& batch, std::int64_t first, int in_flight) {
  each_input(program, batch, first, in_flight,
             [&](void* dst, const void* src, std::size_t bytes) { device.to_device(dst, src, bytes); });
}

void set_inputs(Upload& upload, const Program& program, const Batch& batch, std::int64_t first, int in_flight) {
  upload.begin();
  each_input(program, batch, first, in_flight,
             [&](void* dst, const void* src, std::size_t bytes) { upload.put(dst, src, bytes); });
  upload.end();
}

void begin_series(Program& program, const Batch& batch, std::int64_t first, int slot) {
  if (batch.begins == nullptr || !program.has_states()) return;
  for (std::int64_t row = 0; row < program.batch(); ++row)
    if (batch.begins[first + row] != 0) program.reset_states(slot, row);
}

}  // namespace echelon::inline train
