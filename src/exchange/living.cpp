#include "exchange/living.hpp"

#include <algorithm>
#include <vector>

namespace echelon::inline exchange {
namespace {

constexpr std::int64_t kAtOnce = 1 << 16;  // values

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
  Device& device = arenas.device();
  std::vector<std::byte> values(static_cast<std::size_t>(range.elems()) * size_of(arenas.dtype()));
  device.to_host(values.data(), arenas.weights_at(range.begin), values.size());
  living.broadcast(values.data(), values.size(), root);
  device.to_device(arenas.weights_at(range.begin), values.data(), values.size());
  arenas.touch();
}

}  // namespace echelon::inline exchange
