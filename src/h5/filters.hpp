// SPDX-License-Identifier: Apache-2.0
// Compression filters that the HDF5 library does not include.
#pragma once

#include <hdf5.h>

#include <string>

namespace echelon::h5 {

// Returns why values behind the filters of this creation property list cannot be read: a filter is neither built in nor
// found as a plugin. Names the filter and the Debian package of its plugin. "" if all filters are available.
std::string missing_filter(hid_t creation);

}  // namespace echelon::h5
