// Shards as other programs write them, in the oldest format of HDF5, whose headers have no checksums.
#pragma once

#include <string>

namespace echelon::fuzz {

// Samples of 40 x (1, 3, 4) u8 with labels. `chunk` rows a chunk with gzip behind byte shuffle, 0: contiguous; `texts`:
// class names of variable length, as h5py has them.
void write_foreign_shard(const std::string& path, int chunk, bool texts);

}  // namespace echelon::fuzz
