// SPDX-License-Identifier: Apache-2.0
// Writes one shard of encoded images: the bytes of all files one after the other, their lengths and their classes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/import/image.hpp"
#include "data/import/shard_file.hpp"
#include "data/import/statistics.hpp"

namespace echelon::inline data {

// Adds the moments of an image of any size.
void add_moments_of(const Image& image, SourceInfo info, Statistics& statistics);

class EncodedFile {
 public:
  // `bytes`: of all images to append before publish(). Throws EnvironmentError if the file cannot be written.
  EncodedFile(const std::string& path, std::int64_t bytes, const SourceInfo& info, const ShardHeader& header,
              const ShardOptions& options);

  void append(std::string_view image, std::int32_t label);
  void publish();

 private:
  h5::Writer writer_;
  h5::DatasetOptions rows_;
  std::int64_t classes_, written_ = 0;
  std::vector<std::int32_t> lengths_, labels_;
};

}  // namespace echelon::inline data
