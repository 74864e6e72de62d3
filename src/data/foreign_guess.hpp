// SPDX-License-Identifier: Apache-2.0
// Guesses the [data.hdf5] table that reads a file which is not a shard, from its shapes, types, names and values.
#pragma once

#include <string>
#include <vector>

#include "h5/file.hpp"

namespace echelon::inline data {

struct ForeignGuess {
  std::string table;               // "[data.hdf5]\nsamples = ..", to be pasted; empty: nothing in the file fits
  std::vector<std::string> notes;  // what a person should look at
};

// `datasets`: those of the file that can be read. `several`: the set has other files, so that one may be one sample.
ForeignGuess guess_foreign(const h5::Reader& file, const std::vector<h5::DatasetInfo>& datasets, bool several);

}  // namespace echelon::inline data
