// The device memory that a rank takes for its part of a model, known before the run: arenas, optimiser and programs are
// built as the run would build them, on a device that counts what is allocated and holds none of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/schema.hpp"
#include "device/device.hpp"
#include "model/graph.hpp"
#include "parallel/split.hpp"

namespace echelon {

// A device of this kind that counts what is allocated and holds none of it. EnvironmentError where there is no such
// device here.
std::unique_ptr<Device> counting_device(const DeviceConfig& config);

// Bytes.
struct Footprint {
  double weights = 0, gradients = 0, optimiser = 0;
  double activations = 0, scratch = 0;
  double packed = 0;       // that ops keep for themselves: weights in a layout of their own
  double boxes = 0;        // for what travels between the ranks of a model that may lie on several hosts
  bool estimated = false;  // no such device is here: activations are twice the values, scratch and packed are unknown

  double total() const { return weights + gradients + optimiser + activations + scratch + packed + boxes; }
};

// Of a whole model, whose programs differ in the lengths of sequences.
Footprint footprint_of(const Config& config, const std::vector<const Graph*>& graphs, std::int64_t micro_batch);
// Of the part at this seat.
Footprint footprint_of(const Config& config, const Part& part, const MeshSeat& seat, std::int64_t micro_batch);

}  // namespace echelon
