// Datasets whose rows lie in other files: virtual ones (mappings to datasets) and those of external storage (raw
// files). The library reads rows of missing sources as zeros.
#pragma once

#include <hdf5.h>

#include <string>

#include "base/shape.hpp"

namespace echelon::h5 {

// DataError, beginning with `where` ("a.h5: dataset 'samples'"), where a source of the virtual dataset is missing, too
// small or not wholly written, where the mappings leave elements out, or where that cannot be found out (mappings
// without an end, patterns of names). Returns whether all sources have checksums. `path`: of the file that holds it.
bool check_virtual_sources(const std::string& where, const std::string& path, hid_t space, hid_t creation);
// DataError, likewise, where the file of a source is missing: after a read, where files may be removed meanwhile.
void require_sources(const std::string& where, const std::string& path, hid_t creation);

// DataError where a raw file of the dataset is missing or shorter than what it is to hold.
void check_external_files(const std::string& where, hid_t creation);

}  // namespace echelon::h5
