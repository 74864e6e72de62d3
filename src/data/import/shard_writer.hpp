// Shards in the layout of data/README.md from a source: the common half of every importer.
//
// The whole set is measured first (count, classes, mean, std, range), so that bad input writes nothing; then it is
// written into a temporary folder beside the target, which appears under its name when the last shard is complete.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/import/source.hpp"

namespace echelon {

struct ShardOptions {
  std::string out{};  // a folder; must not hold anything yet (with hold_out: its train/ and test/)
  std::string prefix = "shard";
  std::int64_t shards = 0;              // 0: by samples_per_shard
  std::int64_t samples_per_shard = 0;   // 0: 10,000 where shards is 0 too
  std::vector<std::int64_t> unequal{};  // parts of each shard
  std::int64_t chunk = 128;             // records, 64 to 256
  int compress = 0;                     // gzip level, 0 to 9
  std::int64_t hold_out = 0;  // this many, evenly spread, go to <out>/test in one file, the rest to <out>/train
};

struct ShardsWritten {
  std::vector<std::string> files;
  std::int64_t samples = 0, held_out = 0, classes = 0;
  Shape sample_shape;
  DType stored = DType::u8;
  std::vector<double> mean, std, value_range;  // of the samples not held out
  std::uint64_t bytes = 0;                     // of the files
};

// Throws ConfigError for options that do not fit the data, DataError of the source, EnvironmentError while writing.
ShardsWritten write_shards(SampleSource& source, const ShardOptions& options);

// Samples of each shard; pure. Throws ConfigError where a shard would be empty.
std::vector<std::int64_t> shard_sizes(std::int64_t samples, const ShardOptions& options);

}  // namespace echelon
