// SPDX-License-Identifier: Apache-2.0
// The assignment of files to replicas. Pure functions. `batch`: samples per step of each replica.
#pragma once

#include <cstdint>
#include <vector>

namespace echelon::inline data {

// Returns the owner of each file. Assigns the longest file first, to the replica with the smallest (samples owned +
// samples of the file) / batch (longest processing time first, Graham 1969); every replica gets a file. Requires files
// >= replicas. Loads, samples / batch, differ by at most one file. O(files * replicas).
std::vector<int> deal_files(const std::vector<std::int64_t>& file_samples, const std::vector<std::int64_t>& batch);

// Returns replicas + 1 bounds in [0, samples]: replica r has [bounds[r], bounds[r + 1]), in proportion to batch[r].
std::vector<std::int64_t> cut_in_proportion(std::int64_t samples, const std::vector<std::int64_t>& batch);

}  // namespace echelon::inline data
