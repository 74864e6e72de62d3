// SPDX-License-Identifier: Apache-2.0
// Hyperslabs of a dataset.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/reused_memory.hpp"
#include "base/tensor_region.hpp"
#include "h5/reader_body.hpp"

namespace echelon::h5 {

// `as`: the type in memory.
void Reader::Body::read_box(const OpenDataset& dataset, const Shape& offset, const Shape& shape, void* dst, hid_t as) {
  const Handle space(H5Dget_space(dataset.handle.id()), H5Sclose), memory = space_of(shape);
  const bool selected = H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, extents_of(offset).data(), nullptr,
                                            extents_of(shape).data(), nullptr) >= 0;
  ++library_reads;
  if (!selected || !memory.ok() || H5Dread(dataset.handle.id(), as, memory.id(), space.id(), H5P_DEFAULT, dst) < 0)
    fail(dataset.info.name,
         fmt::format("cannot be read in the box of {} at {}: {}", shape.text(), offset.text(), reason()));
  require_read_sources(dataset);
  bytes_read += static_cast<std::uint64_t>(shape.elems()) * dataset.chunks.element_bytes;
}

// Reads a box in the type of the file.
void Reader::Body::read_stored_box(const OpenDataset& dataset, const Shape& offset, const Shape& shape, void* dst) {
  constexpr std::size_t kLeastRun = 1024;  // the library reads shorter runs together
  const TensorRegion region{shape, dataset.info.shape, offset};
  const std::size_t element = dataset.chunks.element_bytes;
  if (!dataset.placed.any() || run_elems(region) * element < kLeastRun)
    return read_box(dataset, offset, shape, dst, dataset.type.id());
  for_each_run(region, element, [&](std::size_t to, std::size_t from, std::size_t bytes) {
    if (const std::string why = read_placed(dataset.placed, from, bytes, static_cast<std::uint8_t*>(dst) + to);
        !why.empty())
      fail(dataset.info.name,
           fmt::format("cannot be read in the box of {} at {}: {}", shape.text(), offset.text(), why));
  });
  bytes_read += static_cast<std::uint64_t>(shape.elems()) * element;
}

void Reader::read_region(std::string_view dataset, const Shape& offset, const Shape& shape, void* dst,
                         DType dtype) const {
  const Reading reading(body_->path);
  const OpenDataset& from = body_->dataset(dataset);
  const Shape& whole = from.info.shape;
  ECHELON_CHECK(offset.rank() == whole.rank() && shape.rank() == whole.rank() && whole.rank() > 0,
                "'{}' of {}: region {} at {}", dataset, whole.text(), shape.text(), offset.text());
  for (int axis = 0; axis < shape.rank(); ++axis)
    ECHELON_CHECK(offset[axis] >= 0 && shape[axis] <= whole[axis] - offset[axis], "'{}' of {}: region {} at {}",
                  dataset, whole.text(), shape.text(), offset.text());
  if (shape.elems() == 0) return;
  if (shape.without_front() == whole.without_front()) return read_rows(dataset, offset[0], shape[0], dst, dtype);
  const std::size_t each = static_cast<std::size_t>(shape.row_elems()) * size_of(dtype);
  auto* to = static_cast<std::uint8_t*>(dst);
  if (from.chunks.decodable()) {  // whole rows, a chunk at a time
    const Shape one = shape.with_front(1), all = whole.with_front(1), at = offset.with_front(0);
    std::vector<std::uint8_t> rows;
    for (std::int64_t first = offset[0], end = offset[0] + shape[0]; first < end;) {
      const std::int64_t count = std::min(end - first, from.chunks.rows - first % from.chunks.rows);
      const std::size_t row = static_cast<std::size_t>(whole.row_elems()) * size_of(dtype);
      rows.resize(static_cast<std::size_t>(count) * row);
      read_rows(dataset, first, count, rows.data(), dtype);
      for (std::int64_t i = 0; i < count; ++i, to += each)
        copy_from_whole({one, all, at}, size_of(dtype), rows.data() + static_cast<std::size_t>(i) * row, to);
      first += count;
    }
    return;
  }
  if (from.is_stored_as(dtype)) return body_->read_stored_box(from, offset, shape, dst);
  if (!from.number || !is_converted(*from.number, dtype))
    return body_->read_box(from, offset, shape, dst, native_type(dtype));
  // The library's own conversion is slow. Chunks that it decodes are read once.
  const std::int64_t step = from.chunks.filtered ? shape[0] : 1;
  thread_local ReusedMemory memory;
  std::uint8_t* const stored =
      memory.at_least(static_cast<std::size_t>(step * shape.row_elems()) * from.chunks.element_bytes);
  for (std::int64_t first = 0; first < shape[0]; first += step, to += static_cast<std::size_t>(step) * each) {
    body_->read_stored_box(from, offset.with_front(offset[0] + first), shape.with_front(step), stored);
    convert_numbers(*from.number, stored, step * shape.row_elems(), to, dtype);
  }
}

}  // namespace echelon::h5
