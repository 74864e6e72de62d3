#include "base/box.hpp"

#include <array>
#include <cstring>

#include "base/check.hpp"

namespace echelon {
namespace {

// Calls copy(bytes into the part, bytes into the whole, bytes) for each run that lies together in both.
template <class Copy>
void for_each_run(const Box& box, std::size_t elem_bytes, Copy&& copy) {
  const int rank = box.shape.rank();
  ECHELON_CHECK(box.whole.rank() == rank && box.offset.rank() == rank, "a box of {} in {}", box.shape.text(),
                box.whole.text());
  for (int axis = 0; axis < rank; ++axis)
    ECHELON_CHECK(box.offset[axis] >= 0 && box.offset[axis] + box.shape[axis] <= box.whole[axis], "a box of {} in {}",
                  box.shape.text(), box.whole.text());
  if (box.shape.elems() == 0) return;
  const std::int64_t run = rank == 0 ? 1 : box.shape[rank - 1];
  std::array<std::int64_t, Shape::kMaxRank> at{};
  for (std::int64_t part = 0; part < box.shape.elems(); part += run) {
    std::int64_t place = 0;
    for (int axis = 0; axis < rank; ++axis)
      place = place * box.whole[axis] + box.offset[axis] + at[static_cast<std::size_t>(axis)];
    copy(static_cast<std::size_t>(part) * elem_bytes, static_cast<std::size_t>(place) * elem_bytes,
         static_cast<std::size_t>(run) * elem_bytes);
    for (int axis = rank - 2; axis >= 0 && ++at[static_cast<std::size_t>(axis)] == box.shape[axis]; --axis)
      at[static_cast<std::size_t>(axis)] = 0;
  }
}

}  // namespace

void copy_into_whole(const Box& box, std::size_t elem_bytes, const void* part, void* whole) {
  for_each_run(box, elem_bytes, [&](std::size_t in_part, std::size_t in_whole, std::size_t bytes) {
    std::memcpy(static_cast<std::byte*>(whole) + in_whole, static_cast<const std::byte*>(part) + in_part, bytes);
  });
}

void copy_from_whole(const Box& box, std::size_t elem_bytes, const void* whole, void* part) {
  for_each_run(box, elem_bytes, [&](std::size_t in_part, std::size_t in_whole, std::size_t bytes) {
    std::memcpy(static_cast<std::byte*>(part) + in_part, static_cast<const std::byte*>(whole) + in_whole, bytes);
  });
}

}  // namespace echelon
