// SPDX-License-Identifier: Apache-2.0
// Writes shards in the layout of data/README.md from a source. All importers share this part.
//
// The source is read once to measure it (count, classes, mean, std, range), so that bad input writes nothing. Then
// shards are written into a temporary folder beside the target, which is renamed when the last shard is complete.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/import/source.hpp"
#include "data/label_counts.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {

struct ShardOptions {
  std::string out{};  // a folder; must be empty or new (with hold_out: its train/ and test/)
  std::string prefix = "shard";
  std::int64_t shards = 0;              // 0: derived from samples_per_shard
  std::int64_t samples_per_shard = 0;   // 0: 10,000 if shards is 0 too
  std::vector<std::int64_t> unequal{};  // [shard] share of the samples, in any unit; empty: equal shards
  std::int64_t chunk = 128;             // records per chunk, 64 to 256
  std::int64_t slab_rows = 0;           // rows of an image, or slices of a volume, in a chunk; 0: all
  int compress = 0;                     // gzip level, 0 to 9
  bool checksums = true;                // Fletcher32 for each chunk
  bool keep_order = false;              // keep the input's order; else training samples are shuffled (mixer.hpp)
  std::int64_t hold_out = 0;  // this many samples, evenly spread (for a text: the last), go to <out>/test in one file,
                              // the others to <out>/train
  double hold_out_part = 0;   // the same as a fraction of all, in [0, 1)
  std::string input{};        // name of the input in messages about labels
  bool labels_as_they_are = false;  // accept labels and names that do not look like classes (label_counts.hpp)
};

// Returns how many of `samples` are held out; at least 1 if holds_out. Throws ConfigError if none would remain for
// training.
std::int64_t held_out_of(std::int64_t samples, const ShardOptions& options);
// Checks whatever does not depend on the data: ranges, and options that exclude each other. Throws ConfigError.
void check_options(const ShardOptions& options);
// Returns the target folders, <out> or <out>/train and <out>/test. Throws ConfigError if one exists and is not empty.
struct ImportFolders {
  std::string train, test;  // test: "" if nothing is held out
};
ImportFolders free_folders(const ShardOptions& options);
inline bool holds_out(const ShardOptions& options) { return options.hold_out > 0 || options.hold_out_part > 0; }
std::string shard_name(const ShardOptions& options, std::size_t index);  // "shard-0003.h5"

// Writes them as an attribute, or as a dataset if they are too long for one.
void write_class_names(h5::Writer& writer, const std::vector<std::string>& names);

struct ShardsWritten {
  std::vector<std::string> files;
  std::int64_t samples = 0, held_out = 0, classes = 0;
  Shape sample_shape;
  DType stored = DType::u8;
  std::vector<double> mean, std, value_range;  // over the training samples
  std::uint64_t bytes = 0;                     // size of the files
  std::string empty_classes{};                 // classes without a training sample (label_counts.hpp)
};

// Throws ConfigError for options that do not fit the data, the source's DataError, and EnvironmentError while writing.
ShardsWritten write_shards(SampleSource& source, const ShardOptions& options);

// Throws DataError if labels or class names are more likely something else, unless options.labels_as_they_are.
void refuse_odd_classes(const LabelCounts& counts, std::int64_t classes, const std::vector<std::string>& names,
                        const ShardOptions& options);

// Returns the number of samples in each shard; pure. Throws ConfigError if a shard would be empty.
std::vector<std::int64_t> shard_sizes(std::int64_t samples, const ShardOptions& options);

}  // namespace echelon::inline data
