// HDF5's access to a file by way of base/file_faults.hpp: a driver of the library around its own (sec2), which is used
// while the process has file faults, and not otherwise.
#pragma once

#include <hdf5.h>

namespace echelon::h5 {

// Where the process has file faults, files that are opened with this property list are written and read with them.
void use_file_faults(hid_t access);

}  // namespace echelon::h5
