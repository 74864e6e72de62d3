// SPDX-License-Identifier: Apache-2.0
// Encoded images in a file that is not a shard: rows of bytes (data.hdf5.encoded).
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "data/encoded.hpp"
#include "data/foreign_file.hpp"

namespace echelon::inline data {

void ForeignFile::open_encoded() {
  const std::string& name = keys_.samples.front();
  if (!file_.has(name)) throw DataError(fmt::format("{}: {}", path_, unknown_name("dataset", name, file_.names())));
  const std::optional<h5::ByteRows> rows = file_.byte_rows(name);
  if (!rows)
    fail_foreign(path_, name,
                 fmt::format("has no rows of bytes, which data.hdf5.encoded = \"{}\" reads: (N) of variable length or "
                             "opaque, or (N, L) of 8-bit integers; leave encoded out for numbers",
                             keys_.encoded == Encoded::rgb ? "rgb" : "grey"));
  if (rows->count < 1) fail_foreign(path_, name, "holds no sample");
  if (!keys_.lengths.empty() && rows->width == 0)
    fail_foreign(path_, name, "has rows that know their lengths; leave data.hdf5.lengths out");
  if (!keys_.lengths.empty() && file_.info(keys_.lengths).shape != Shape{rows->count})
    fail_foreign(path_, keys_.lengths,
                 fmt::format("has shape {}, must be ({}), the lengths of the rows of '{}'",
                             file_.info(keys_.lengths).shape.text(), rows->count, name));
  Source source;
  source.info.name = name;
  source.info.shape = {rows->count};
  source.info.dtype = DType::u8;
  source.info.stored_bytes = rows->stored_bytes;
  sources_.push_back(std::move(source));
  stored_ = DType::u8;
  choose_rows();
  std::vector<std::uint8_t> bytes;
  std::vector<std::size_t> ends;
  read_encoded(0, 1, bytes, ends);
  const Shape shape = encoded_shape(path_, 0, {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                    keys_.encoded == Encoded::rgb ? 3 : 1);
  shape_ = {shape[0], 1, shape[1], shape[2]};
  sources_.front().places.resize(static_cast<std::size_t>(shape[0]));
}

void ForeignFile::read_encoded(std::int64_t first, std::int64_t count, std::vector<std::uint8_t>& bytes,
                               std::vector<std::size_t>& ends) const {
  const std::string& name = keys_.samples.front();
  file_.read_bytes(name, rows_.first + first, count, bytes, ends);
  if (keys_.lengths.empty()) return;
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(count));
  file_.read_rows(keys_.lengths, rows_.first + first, count, lengths.data(), DType::i32);
  const auto width = static_cast<std::ptrdiff_t>(ends.front());
  std::ptrdiff_t end = 0;  // rows are moved together
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 1 || lengths[i] > width)
      fail_foreign(path_, keys_.lengths,
                   fmt::format("has {} for record {}, must be 1 to {}, the width of the rows", lengths[i],
                               first + static_cast<std::int64_t>(i), width));
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(i) * width;
    std::copy(from, from + lengths[i], bytes.begin() + end);
    end += lengths[i];
    ends[i] = static_cast<std::size_t>(end);
  }
  bytes.resize(static_cast<std::size_t>(end));
}

}  // namespace echelon::inline data
