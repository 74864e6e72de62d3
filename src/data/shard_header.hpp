// One shard as a set of its own: what its datasets and attributes say, checked.
#pragma once

#include <string>

#include "data/dataset.hpp"

namespace echelon::inline data {

// `sample_shape` of a text or of sequences is left open: (0), or (0, F); where labels are optional and there are none,
// `label_shape` and, without the attribute, `classes`. Throws DataError naming the file.
Dataset read_shard(const std::string& path, Labels labels = Labels::needed);

}  // namespace echelon::inline data
