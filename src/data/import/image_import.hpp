// SPDX-License-Identifier: Apache-2.0
// Imports collections of images as shards: `echelon data import images | tar`, in one process or on a launch's ranks.
//
// The ranks list the units of the input and share the results, then make shards (shared_import.hpp). Memory: the list,
// about 150 bytes per image, and a chunk of samples.
#pragma once

#include "data/import/image_input.hpp"
#include "data/import/import_team.hpp"

namespace echelon::inline data {

// Returns the same on every rank. Throws what write_shards throws.
ImportWritten write_images(const ImageRequest& request, const ShardOptions& options, const ImportTeam& team = {});

}  // namespace echelon::inline data
