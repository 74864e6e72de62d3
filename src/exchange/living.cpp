// SPDX-License-Identifier: Apache-2.0
#include "exchange/living.hpp"

#include <algorithm>
#include <vector>

namespace echelon::inline exchange {
namespace {

constexpr std::int64_t kAtOnce = 1 << 16;  // values per message

// `values` is device memory with values of the arenas' dtype.
void broadcast(Group& living, Arenas& arenas, void* values, std::int64_t elems, int root) {
  std::vector<std::byte> host(static_cast<std::size_t>(elems) * size_of(arenas.dtype()));
  if (host.empty()) return;
  arenas.device().to_host(host.data(), values, host.size());
  living.broadcast(host.data(), host.size(), root);
  arenas.device().to_device(values, host.data(), host.size());
}

}  // namespace

void average_weights(Group& living, Arenas& arenas) {
  Device& device = arenas.device();
  with_float(arenas.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> values;
    std::vector<double> sums;
    for (std::int64_t begin = 0; begin < arenas.elems(); begin += kAtOnce) {
      values.resize(static_cast<std::size_t>(std::min(kAtOnce, arenas.elems() - begin)));
      device.to_host(values.data(), arenas.weights_at(begin), values.size() * sizeof(T));
      sums.assign(values.begin(), values.end());
      living.sum(sums);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(sums[i] / living.size());
      device.to_device(arenas.weights_at(begin), values.data(), values.size() * sizeof(T));
    }
  });
  arenas.clear_tables();
  arenas.touch();
}

void broadcast_weights(Group& living, Arenas& arenas, ArenaRange range, int root) {
  broadcast(living, arenas, arenas.weights_at(range.begin), range.elems(), root);
  arenas.touch();
}

void broadcast_states(Group& living, Arenas& arenas, Optimiser& optimiser, ArenaRange range, int root) {
  const std::size_t begin = static_cast<std::size_t>(range.begin) * size_of(arenas.dtype());
  for (int s = 0; s < optimiser.states(); ++s)
    broadcast(living, arenas, static_cast<std::byte*>(optimiser.state(s)) + begin, range.elems(), root);
}

}  // namespace echelon::inline exchange
