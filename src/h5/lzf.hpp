// SPDX-License-Identifier: Apache-2.0
// LZF, the fast compression of h5py (compression="lzf"). It is decoded here because Debian's plugin for it cannot be
// loaded (it lacks liblzf). Format: https://github.com/h5py/h5py/blob/master/lzf/lzf/lzf_d.c
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>

namespace echelon::h5 {

inline constexpr H5Z_filter_t kLzf = 32000;  // from the HDF Group's registry of filters

// Inflates into `out`, which has room for `most` bytes. Returns the number of bytes written; 0 if the input is damaged
// or longer than that.
std::size_t lzf_inflate(const std::uint8_t* in, std::size_t bytes, std::uint8_t* out, std::size_t most);

// Registers the filter with the library, for what the library reads itself.
void register_lzf();

}  // namespace echelon::h5
