// One shard of samples that is being written, a chunk at a time (each is compressed once).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/import/shard_writer.hpp"
#include "data/import/source.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {

// What the importer has found out about a whole set.
struct ShardHeader {
  std::int64_t classes = 0;
  std::vector<double> mean, std, value_range;
};

std::size_t sample_bytes(const SourceInfo& info);  // of a sample as stored
std::size_t label_bytes(const SourceInfo& info);   // of a label as sources give it, i32 or `targets` f32

class ShardFile {
 public:
  // `samples`: exactly so many are appended before publish(). EnvironmentError where the file cannot be written.
  ShardFile(const std::string& path, std::int64_t samples, const SourceInfo& info, const ShardHeader& header,
            const ShardOptions& options);

  void append(const std::uint8_t* sample, const std::uint8_t* label);
  void publish();

 private:
  void flush();

  h5::Writer writer_;
  DType stored_, label_;
  std::int64_t chunk_;
  std::size_t sample_bytes_, label_bytes_;
  std::vector<std::uint8_t> samples_, labels_;  // not yet written
  std::int64_t held_ = 0, written_ = 0;         // samples in the block; in the file
};

}  // namespace echelon::inline data
