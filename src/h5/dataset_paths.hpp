// The datasets of a file, found without what the library has for it: H5Ovisit follows a group that a damaged link leads
// back to for ever.
#pragma once

#include <hdf5.h>

#include <optional>
#include <string>
#include <vector>

namespace echelon::h5 {

// Paths of all datasets of all groups, sorted; each once, where several links lead there. Soft and external links are
// not followed. None where the file is damaged there (`reason`).
std::optional<std::vector<std::string>> dataset_paths(hid_t file);

}  // namespace echelon::h5
