// Compression filters that the HDF5 library does not bring along.
#pragma once

#include <hdf5.h>

#include <string>

namespace echelon::h5 {

// Why values behind the filters of this creation property list cannot be read: a filter is neither built in nor found
// as a plugin. Names the filter and the Debian package of its plugin. "" where all are there.
std::string missing_filter(hid_t creation);

}  // namespace echelon::h5
