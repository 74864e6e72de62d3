// SPDX-License-Identifier: Apache-2.0
// Reads one shard as a data set, from its HDF5 datasets and attributes.
#pragma once

#include <string>

#include "data/dataset.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {

// For a text and sequences T of `sample_shape` is 0, i.e. (0) or (0, F); open_dataset sets it. With Labels::optional
// and no labels, `label_shape` is () and `classes` is 0 unless the attribute exists. Reads attributes and lengths, but
// no samples. Throws DataError with the file, the dataset or attribute, and the problem, if the format is violated.
Dataset read_shard(const std::string& path, Labels labels = Labels::needed);

// Returns why a file is not a shard; "" if it is one, also if it is one with an error. Throws DataError if the file is
// no HDF5.
std::string not_a_shard(const std::string& path);

// The type in the file where samples are converted when they are read, for messages; else "".
inline std::string stored_text(const h5::DatasetInfo& samples) {
  return samples.dtype == DType::f64 ? "a 64-bit float" : samples.stored_as;
}

// The number of records to read together: a stored chunk if it must be decoded whole or has a suitable size, else 64 to
// 256, and fewer where samples are large.
std::int64_t records_together(const h5::DatasetInfo& samples);

// Records of this many bytes are read alone, if their samples and labels can be.
inline constexpr std::size_t kAloneBytes = 256 << 10;
// Whether labels or weights can be read record by record: nothing is then decoded twice, or little. True if there are
// none.
inline bool has_records_apart(const h5::DatasetInfo& labels) {
  constexpr std::int64_t kFew = 8192;
  return labels.name.empty() || labels.has_rows_apart() || (labels.chunk.rank() > 0 && labels.chunk.elems() <= kFew);
}

}  // namespace echelon::inline data
