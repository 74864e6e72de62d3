// The assignment of files to replicas. Pure functions. `batch`: samples a step by replica.
#pragma once

#include <cstdint>
#include <vector>

namespace echelon::inline data {

// By file: the replica that owns it. Longest file first, to the replica for which (samples owned + samples of the file)
// / batch is least (longest processing time first, Graham 1969); every replica gets a file. Needs files >= replicas.
// Loads, samples / batch, differ by at most one file. O(files * replicas).
std::vector<int> deal_files(const std::vector<std::int64_t>& file_samples, const std::vector<std::int64_t>& batch);

// replicas + 1 bounds from 0 to `samples`: replica r has samples [bounds[r], bounds[r + 1]), in proportion to batch[r].
std::vector<std::int64_t> cut_in_proportion(std::int64_t samples, const std::vector<std::int64_t>& batch);

}  // namespace echelon::inline data
