// SPDX-License-Identifier: Apache-2.0
// A shard of samples that is being written chunk by chunk, so that each chunk is compressed only once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/import/shard_writer.hpp"
#include "data/import/source.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {

// The properties of a whole set that the importer has measured.
struct ShardHeader {
  std::int64_t classes = 0;
  std::vector<double> mean, std, value_range;
};

std::size_t sample_bytes(const SourceInfo& info);  // size of a sample as stored
std::size_t label_bytes(const SourceInfo& info);   // size of a label in the form of sources: i32 or `targets` f32

// Writes the attributes of a shard.
void write_shard_header(h5::Writer& writer, const SourceInfo& info, const ShardHeader& header);

class ShardFile {
 public:
  // `samples`: exact number to append before publish(). Throws EnvironmentError if the file cannot be written.
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
  std::int64_t held_ = 0, written_ = 0;         // samples in the current block; samples in the file
};

}  // namespace echelon::inline data
