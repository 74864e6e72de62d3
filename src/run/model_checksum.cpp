// SPDX-License-Identifier: Apache-2.0
#include "run/model_checksum.hpp"

#include <cstddef>
#include <cstring>
#include <vector>

#include "base/hash_rng.hpp"

namespace echelon::inline run {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Returns the index in the whole tensor of element `index` of the slice.
std::int64_t whole_index(const Parameter& parameter, std::int64_t index) {
  std::int64_t whole = 0, stride = 1;
  for (int axis = parameter.shape.rank() - 1; axis >= 0; --axis) {
    whole += (parameter.offset[axis] + index % parameter.shape[axis]) * stride;
    index /= parameter.shape[axis];
    stride *= parameter.global_shape[axis];
  }
  return whole;
}

std::uint64_t sum_of(const Parameter& parameter, const std::byte* bytes, std::size_t elem) {
  const std::int64_t row = parameter.shape.rank() == 0 ? 1 : parameter.shape[parameter.shape.rank() - 1];
  const std::uint64_t key = hash_name(parameter.name);
  std::uint64_t sum = 0;
  for (std::int64_t begin = 0; begin < parameter.elems(); begin += row) {
    const std::int64_t index = whole_index(parameter, begin);
    for (std::int64_t i = 0; i < row; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, bytes + at(begin + i) * elem, elem);
      sum += hash_combine(hash_combine(key, static_cast<std::uint64_t>(index + i)), bits);
    }
  }
  return sum;
}

}  // namespace

std::uint64_t model_checksum(const Arenas& arenas, bool counts_whole) {
  std::uint64_t sum = 0;
  std::vector<std::byte> host;
  for (const Parameter& parameter : arenas.parameters().with_frozen()) {
    if (parameter.elems() == 0 || (parameter.shared() && !counts_whole)) continue;
    const Tensor weight = arenas.weight(arenas.parameters().find(parameter.name));
    host.resize(weight.bytes());
    arenas.device().to_host(host.data(), weight.data, host.size());
    sum += sum_of(parameter, host.data(), host.size() / at(parameter.elems()));
  }
  return sum;
}

}  // namespace echelon::inline run
