// Writes shards in the layout of data/README.md from a source: the part that all importers share.
//
// The source is first read once to measure it (count, classes, mean, std, range), so that bad input writes nothing.
// Then shards are written into a temporary folder beside the target, which is renamed when the last one is complete.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/import/source.hpp"
#include "data/label_counts.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {

struct ShardOptions {
  std::string out{};  // a folder; must not hold anything yet (with hold_out: its train/ and test/)
  std::string prefix = "shard";
  std::int64_t shards = 0;              // 0: by samples_per_shard
  std::int64_t samples_per_shard = 0;   // 0: 10,000 where shards is 0 too
  std::vector<std::int64_t> unequal{};  // by shard: its share of the samples, any unit; empty: equal shards
  std::int64_t chunk = 128;             // records of a chunk, 64 to 256
  int compress = 0;                     // gzip level, 0 to 9
  bool checksums = true;                // Fletcher32 of each chunk
  bool keep_order = false;              // of the input; else samples for training are mixed (mixer.hpp)
  std::int64_t hold_out = 0;  // this many, evenly spread (of a text: the last), go to <out>/test in one file, the rest
                              // to <out>/train
  double hold_out_part = 0;   // the same as a part of all, in [0, 1)
  std::string input{};        // for messages about labels
  bool labels_as_they_are = false;  // do not refuse labels and names that are unlike classes (label_counts.hpp)
};

// The number of samples that are held out of `samples`; at least 1 where holds_out. ConfigError where none would remain
// for training.
std::int64_t held_out_of(std::int64_t samples, const ShardOptions& options);
// Checks that do not depend on the data: ranges, and options that exclude each other. ConfigError.
void check_options(const ShardOptions& options);
// The target folders, <out> or <out>/train and <out>/test. ConfigError where one exists and is not empty.
struct ImportFolders {
  std::string train, test;  // test: "" where nothing is held out
};
ImportFolders free_folders(const ShardOptions& options);
inline bool holds_out(const ShardOptions& options) { return options.hold_out > 0 || options.hold_out_part > 0; }
std::string shard_name(const ShardOptions& options, std::size_t index);  // "shard-0003.h5"

// As an attribute, as a dataset where they are too long for one.
void write_class_names(h5::Writer& writer, const std::vector<std::string>& names);

struct ShardsWritten {
  std::vector<std::string> files;
  std::int64_t samples = 0, held_out = 0, classes = 0;
  Shape sample_shape;
  DType stored = DType::u8;
  std::vector<double> mean, std, value_range;  // of the samples not held out
  std::uint64_t bytes = 0;                     // of the files
  std::string empty_classes{};                 // classes without a sample for training (label_counts.hpp)
};

// Throws ConfigError for options that do not fit the data, DataError of the source, EnvironmentError while writing.
ShardsWritten write_shards(SampleSource& source, const ShardOptions& options);

// DataError where labels, or the names of classes, are more likely something else, unless options.labels_as_they_are.
void refuse_odd_classes(const LabelCounts& counts, std::int64_t classes, const std::vector<std::string>& names,
                        const ShardOptions& options);

// Samples of each shard; pure. Throws ConfigError where a shard would be empty.
std::vector<std::int64_t> shard_sizes(std::int64_t samples, const ShardOptions& options);

}  // namespace echelon::inline data
