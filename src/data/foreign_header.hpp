// SPDX-License-Identifier: Apache-2.0
// Describes one file that is not a shard as a data set (shard_header.hpp does so for a shard).
#pragma once

#include <string>

#include "config/hdf5.hpp"
#include "data/dataset.hpp"

namespace echelon::inline data {

// Reads shapes, types and attributes, but no samples. Dataset::hdf5 has the normalisation in mean, std and scale,
// wherever it came from. Throws DataError with the file, the dataset and the nearest valid keys.
Dataset read_foreign(const std::string& path, Labels labels, const Hdf5Config& keys);

}  // namespace echelon::inline data
