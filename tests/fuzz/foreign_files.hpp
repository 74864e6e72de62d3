// SPDX-License-Identifier: Apache-2.0
// Writes shards as other programs do, in the oldest format of HDF5, whose headers have no checksums.
#pragma once

#include <string>

namespace echelon::fuzz {

// Writes 40 samples of (1, 3, 4) u8 with labels. `chunk` is the number of rows per chunk, with gzip after byte shuffle;
// 0 means contiguous. `texts`: class names have variable length, as h5py writes them.
void write_foreign_shard(const std::string& path, int chunk, bool texts);

// Writes a file that [data.hdf5] describes: `images` (37, 5, 6, 2) of 16-bit integers in the other byte order, packed
// and with a fill value; `table` (37, 3) of 64-bit floats; `weights` (37); and the attribute `split` of Fuel.
void write_any_hdf5(const std::string& path, int chunk);

}  // namespace echelon::fuzz
