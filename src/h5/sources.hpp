// SPDX-License-Identifier: Apache-2.0
// Datasets whose rows are in other files: virtual ones (mappings to datasets) and those with external storage (raw
// files). The library reads rows of missing sources as zeros.
#pragma once

#include <hdf5.h>

#include <string>

#include "base/shape.hpp"

namespace echelon::h5 {

// Throws DataError, beginning with `where` ("a.h5: dataset 'samples'"), if a source of the virtual dataset is missing,
// too small or not wholly written, if the mappings leave out elements, or if this cannot be determined (unlimited
// mappings, name patterns). Returns whether all sources have checksums. `path`: the file that contains the dataset.
bool check_virtual_sources(const std::string& where, const std::string& path, hid_t space, hid_t creation);
// Throws the same DataError if a source file is missing. Called after a read, as files may be removed meanwhile.
void require_sources(const std::string& where, const std::string& path, hid_t creation);

// Returns the name of the first source file of a virtual dataset, or of its first raw file, that is not the file of the
// dataset; "" if there is none.
std::string first_other_source(hid_t creation, bool is_virtual);

// Throws DataError if a raw file of the dataset is missing or too short.
void check_external_files(const std::string& where, hid_t creation);

}  // namespace echelon::h5
