// SPDX-License-Identifier: Apache-2.0
// HDF5 file access through base/file_faults.hpp: a driver around the library's own (sec2). It is used only while the
// process has file faults.
#pragma once

#include <hdf5.h>

namespace echelon::h5 {

// If the process has file faults, files opened with this property list are read and written with them.
void use_file_faults(hid_t access);
// Whether it is that driver.
bool is_faulty_driver(hid_t driver);

}  // namespace echelon::h5
