// One shard as a data set, from its HDF5 datasets and attributes.
#pragma once

#include <string>

#include "data/dataset.hpp"

namespace echelon::inline data {

// T of `sample_shape` is 0 for a text and sequences, (0) or (0, F): open_dataset sets it. With Labels::optional and no
// labels, `label_shape` is () and `classes` is 0 unless the attribute is there. Reads attributes and lengths, no
// samples. DataError with the file, the dataset or attribute, and what was found, where the format is violated.
Dataset read_shard(const std::string& path, Labels labels = Labels::needed);

}  // namespace echelon::inline data
