// LZF, the fast compression of h5py (compression="lzf"): read here, because Debian's plugin for it cannot be loaded (it
// lacks liblzf). Format: https://github.com/h5py/h5py/blob/master/lzf/lzf/lzf_d.c
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>

namespace echelon::h5 {

inline constexpr H5Z_filter_t kLzf = 32000;  // of the HDF Group's registry of filters

// Inflates into `out`, of `most` bytes. Returns the bytes that were written; 0 where the input is damaged or holds
// more.
std::size_t lzf_inflate(const std::uint8_t* in, std::size_t bytes, std::uint8_t* out, std::size_t most);

// Makes the filter known to the library, for what it reads itself.
void register_lzf();

}  // namespace echelon::h5
