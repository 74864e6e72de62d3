// SPDX-License-Identifier: Apache-2.0
#include "exchange/strategy.hpp"

#include "comm/collective/algorithms.hpp"

namespace echelon::inline exchange {
namespace {

void broadcast_values(Device& device, void* values, std::int64_t elems, DType dtype, Engine& engine, int channel) {
  if (elems == 0) return;
  const std::size_t bytes = static_cast<std::size_t>(elems) * size_of(dtype);
  Memory staged;
  void* data = values;
  if (!device.on_host()) {
    staged = device.allocate_host(bytes);
    data = staged.data();
    device.to_host(data, values, bytes);
  }
  Job job;
  job.plan = make_broadcast(engine.rank(), engine.size(), 0, elems);
  job.data = data;
  job.dtype = dtype;
  job.channel = channel;
  engine.submit(std::move(job)).wait();
  if (!device.on_host()) device.to_device(values, data, bytes);
}

}  // namespace

void broadcast_weights(Arenas& arenas, Engine& engine, int channel) {
  if (engine.size() == 1) return;
  broadcast_values(arenas.device(), arenas.weights_at(0), arenas.elems(), arenas.dtype(), engine, channel);
  broadcast_values(arenas.device(), arenas.frozen_at(0), arenas.parameters().frozen_elems(), arenas.dtype(), engine,
                   channel);
  arenas.touch();
}

}  // namespace echelon::inline exchange
