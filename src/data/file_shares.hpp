// Files dealt out to replicas. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace echelon::inline data {

// For each file the replica that owns it. Longest file first, to the replica whose (samples owned + file) / batch stays
// least; a replica is never left without a file. Needs files >= replicas. Loads end within one file of each other.
std::vector<int> deal_files(const std::vector<std::int64_t>& file_samples, const std::vector<std::int64_t>& batch);

// Borders (replicas + 1 of them, from 0 to samples) of runs in proportion to the batches.
std::vector<std::int64_t> cut_in_proportion(std::int64_t samples, const std::vector<std::int64_t>& batch);

}  // namespace echelon::inline data
