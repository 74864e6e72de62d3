// SPDX-License-Identifier: Apache-2.0
// Samples are read in pieces that stay in the processor's cache until their values are converted, checked and in place.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/reused_memory.hpp"
#include "data/finite.hpp"
#include "data/foreign_file.hpp"
#include "data/four_channels.hpp"
#include "data/log1p.hpp"

namespace echelon::inline data {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kPieceBytes = 256 << 10;

}  // namespace

// Tiles of a row of channels stay in the processor's first cache while each channel is taken from them. `part`: indices
// of the slow axis, which alone are in `from`.
template <class T>
void ForeignFile::place(const Source& source, const T* from, std::int64_t count, RowRange part, T* to) const {
  constexpr std::int64_t kTile = 256;
  std::array<std::int64_t, 4> begin{}, end = source.extents;
  begin[source.slow] = part.first, end[source.slow] = part.first + part.count;
  const std::int64_t skipped = part.first * source.strides[source.slow];
  // A step of a sequence is a row whose features are its channels.
  const std::size_t c = sequence_ ? 1 : 0, s = 1 - c;
  const std::int64_t channel = sequence_ ? 1 : shape_[1] * shape_[2] * shape_[3];
  const std::int64_t slice = sequence_ ? shape_[1] : shape_[2] * shape_[3], d = source.extents[3];
  const std::int64_t sd = source.strides[3];
  const bool together = source.strides[c] == 1 && sd > 1;  // the channels of a place
  const auto taken = [&](std::int64_t i) { return source.places[static_cast<std::size_t>(i)]; };
  for (std::int64_t n = 0; n < count; ++n, from += source.elems, to += elems())
    for (std::int64_t j = begin[s]; j < end[s]; ++j)
      for (std::int64_t k = begin[2]; k < end[2]; ++k)
        for (std::int64_t first = begin[3]; first < end[3]; first += kTile)
          for (std::int64_t i = begin[c]; i < end[c]; ++i) {
            const std::int64_t places = std::min(kTile, end[3] - first);
            const auto row = [&](std::int64_t at) { return to + at * channel + j * slice + k * d + first; };
            const T* const values =
                from + (i * source.strides[c] + j * source.strides[s] + k * source.strides[2] + first * sd - skipped);
            if constexpr (std::is_same_v<T, float>)
              if (together && i + 4 <= end[c] && std::min({taken(i), taken(i + 1), taken(i + 2), taken(i + 3)}) >= 0) {
                take_four_channels(values, sd, places,
                                   {row(taken(i)), row(taken(i + 1)), row(taken(i + 2)), row(taken(i + 3))});
                i += 3;
                continue;
              }
            if (taken(i) < 0) continue;
            T* const own = row(taken(i));
            if (sd == 1)
              std::copy(values, values + places, own);
            else
              for (std::int64_t l = 0; l < places; ++l) own[l] = values[l * sd];
          }
}

void ForeignFile::unpack(const Source& source, float* values, std::int64_t n) const {
  for (const float fill : source.fills)
    for (std::int64_t i = 0; i < n; ++i) values[i] = values[i] == fill ? kMissing : values[i];
  if (source.factor != 1 || source.offset != 0)
    for (std::int64_t i = 0; i < n; ++i)
      values[i] = static_cast<float>(static_cast<double>(values[i]) * source.factor + source.offset);
  if (keys_.transform != Transform::log1p) return;
  std::uint32_t negative = 0;
  for (std::int64_t i = 0; i < n; ++i) negative |= static_cast<std::uint32_t>(values[i] <= -1);
  if (negative != 0)
    fail_foreign(path_, source.info.name,
                 fmt::format("holds {:g}, which has no ln(1 + value) (transform = \"log1p\")",
                             *std::find_if(values, values + n, [](float value) { return value <= -1; })));
  take_log1p(values, n);
}

// Missing values become the mean of their channel, 0 after normalisation.
void ForeignFile::fill_missing(float* samples, std::int64_t count) const {
  const std::int64_t cells = shape_[1] * shape_[2] * shape_[3], inner = sequence_ ? 1 : cells,
                     all = count * shape_[0] * cells;
  for (std::int64_t i = 0; i < all; ++i)
    if (std::isnan(samples[i])) {
      const auto channel = static_cast<std::size_t>(i / inner % channels());
      samples[i] = static_cast<float>(mean_[channel] / scale_);
    }
}

// Reads some records, or of one record a part along its slow axis. Returns whether all that was read is finite.
bool ForeignFile::read_piece(const Source& source, RowRange records, RowRange part, std::uint8_t* dst) const {
  thread_local ReusedMemory apart;  // values whose order differs from that of samples
  const std::array<std::int64_t, Shape::kMaxRank> zeros{};
  const SlabRange& slab = source.part;
  Shape shape = slab.shape_of(source.info.shape);
  Shape offset = Shape(std::span(zeros).first(static_cast<std::size_t>(shape.rank())));
  if (slab.any()) offset = offset.with(slab.axis, slab.begin);
  if (!one_) shape = shape.with_front(records.count), offset = offset.with_front(rows_.first + records.first);
  if (const int slow = source.slow_axis; slow >= 0)
    shape = shape.with(slow, part.count), offset = offset.with(slow, offset[slow] + part.first);
  const std::int64_t each = source.elems / source.extents[source.slow], n = shape.elems();
  const bool in_order = source.in_order && (records.count == 1 || source.elems == elems());
  const std::int64_t place_of_first = source.in_order ? source.places[0] * (sequence_ ? 1 : elems() / shape_[0]) : 0;
  void* const block = in_order ? dst + static_cast<std::size_t>(place_of_first + part.first * each) * size_of(stored_)
                               : apart.at_least(static_cast<std::size_t>(n) * size_of(stored_));
  file_.read_region(source.info.name, offset, shape, block, stored_);
  if (stored_ == DType::u8) {
    if (!in_order) place(source, static_cast<const std::uint8_t*>(block), records.count, part, dst);
    return true;
  }
  auto* const values = static_cast<float*>(block);
  unpack(source, values, n);
  if (!in_order) place(source, static_cast<const float*>(values), records.count, part, reinterpret_cast<float*>(dst));
  return all_finite(values, n);
}

bool ForeignFile::read(std::int64_t first, std::int64_t count, void* dst) const {
  const std::int64_t most = kPieceBytes / static_cast<std::int64_t>(size_of(stored_));
  bool finite = true;
  for (const Source& source : sources_) {
    const std::int64_t slow = source.extents[source.slow];
    std::int64_t records = count, part = slow;  // of a piece
    if (source.info.contiguous) {
      records = std::clamp<std::int64_t>(most / source.elems, 1, count);
      if (records == 1) part = std::clamp<std::int64_t>(most / (source.elems / slow), 1, slow);
    }
    for (std::int64_t n = 0; n < count; n += records)
      for (std::int64_t begin = 0; begin < slow; begin += part)
        finite &=
            read_piece(source, {first + n, std::min(records, count - n)}, {begin, std::min(part, slow - begin)},
                       static_cast<std::uint8_t*>(dst) + static_cast<std::size_t>(n * elems()) * size_of(stored_));
  }
  if (stored_ == DType::u8 || keys_.missing != Missing::mean) return finite;
  fill_missing(static_cast<float*>(dst), count);
  return false;
}

}  // namespace echelon::inline data
