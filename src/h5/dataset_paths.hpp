// SPDX-License-Identifier: Apache-2.0
// Finds the datasets of a file without H5Ovisit, which loops forever if a damaged link leads a group back to
// itself.
#pragma once

#include <hdf5.h>

#include <optional>
#include <string>
#include <vector>

namespace echelon::h5 {

// Returns the paths of all datasets in all groups, sorted; a dataset with several links is listed once. Soft and
// external links are not followed. None if the file is damaged there (see `reason`).
std::optional<std::vector<std::string>> dataset_paths(hid_t file);

}  // namespace echelon::h5
