// SPDX-License-Identifier: Apache-2.0
#include "data/turn.hpp"

#include <algorithm>

#include "data/planes.hpp"

namespace echelon::inline data {
namespace {

constexpr std::array<std::array<int, 3>, 6> kOrders = {
    {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}}};  // the last three are odd

}  // namespace

Turn random_turn(const AugmentKeys& keys, const HashRng& draws) {
  Turn turn;
  if (keys.rotate == Rotate::plane) {
    const std::uint64_t quarters = draws.below(0, 4);
    if (quarters % 2 == 1) std::swap(turn.from[1], turn.from[2]);
    turn.mirrored[1] = quarters == 1 || quarters == 2;
    turn.mirrored[2] = quarters >= 2;
  } else if (keys.rotate == Rotate::cube) {
    const std::uint64_t order = draws.below(0, 6), mirrors = draws.below(1, 4);
    turn.from = kOrders[order];
    turn.mirrored[0] = mirrors % 2 == 1;
    turn.mirrored[1] = mirrors / 2 == 1;
    // A rotation mirrors an even number of axes if the order of axes is even, else an odd number.
    turn.mirrored[2] = ((order >= 3) != turn.mirrored[0]) != turn.mirrored[1];
  }
  turn.mirrored[1] = turn.mirrored[1] != (keys.flip_rows && draws.below(2, 2) == 1);
  turn.mirrored[0] = turn.mirrored[0] != (keys.flip_depth && draws.below(3, 2) == 1);
  return turn;
}

void turn(const Turn& turn, const void* src, void* dst, const Shape& shape, DType dtype) {
  const Planes planes = planes_of(shape);
  const std::array<std::int64_t, 3> extents = planes.extents();
  const std::array<std::int64_t, 3> steps = {planes.height * planes.width, planes.width, 1};
  std::array<std::int64_t, 3> step{};
  std::int64_t first = 0;
  for (std::size_t a = 0; a < 3; ++a) {
    const std::int64_t along = steps[static_cast<std::size_t>(turn.from[a])];
    step[a] = turn.mirrored[a] ? -along : along;
    if (turn.mirrored[a]) first += (extents[a] - 1) * along;
  }
  with_float(dtype, [&]<class T>(T) {
    T* to = static_cast<T*>(dst);
    for (std::int64_t c = 0; c < planes.channels; ++c) {
      const T* from = static_cast<const T*>(src) + c * extents[0] * steps[0] + first;
      for (std::int64_t z = 0; z < extents[0]; ++z)
        for (std::int64_t y = 0; y < extents[1]; ++y)
          for (std::int64_t x = 0; x < extents[2]; ++x) *to++ = from[z * step[0] + y * step[1] + x * step[2]];
    }
  });
}

}  // namespace echelon::inline data
