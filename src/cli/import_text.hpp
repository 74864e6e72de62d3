// SPDX-License-Identifier: Apache-2.0
// Shared by the importers of samples: their options and the lines they print.
#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"
#include "data/import/shard_writer.hpp"
#include "data/passed_over.hpp"

namespace echelon::cli {

ShardOptions shard_options(const ImportOptions& options);

// Prints "1,797 samples of (1, 8, 8) u8, 10 classes, in 8 files, 120 KiB (12.3 ms)" and those held out. `targets`:
// numbers per label; 0: the labels are classes.
void print_samples_written(const ShardsWritten& written, std::int64_t targets, double seconds);
void print_measured(const ShardsWritten& written);                // mean, std and range
void print_passed_over(const std::vector<PassedOver>& passed);    // one line; none if the list is empty
void print_warning(const std::string& text);                      // nothing for ""
void print_verified(double bytes, double seconds);                // says that files were read back
void print_files_written(const std::vector<std::string>& files);  // names the first and the last

}  // namespace echelon::cli
