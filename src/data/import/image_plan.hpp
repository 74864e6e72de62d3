// SPDX-License-Identifier: Apache-2.0
// Decides which image becomes which sample of which shard. Pure, given the content of the input's units.
#pragma once

#include <string>
#include <vector>

#include "data/import/image_input.hpp"
#include "data/import/import_folder.hpp"
#include "data/import/shard_writer.hpp"
#include "data/import/source.hpp"

namespace echelon::inline data {

struct ImagePlan {
  bool encoded = false;          // ImageRequest::encoded
  SourceInfo info;               // `sample` is (channels, 0, 0) until the size is known
  std::vector<ImageItem> items;  // in the order of samples, held-out ones last; labels are class numbers
  std::vector<PlannedShard> shards;
  std::vector<std::string> damaged;  // damaged images of all units
  std::vector<PassedOver> passed;    // for the input and its units
};

// Joins the units, in order, into one list. Named classes are numbered in the order of their names, or as in the set
// that request.like names. Throws DataError if labels are inconsistent or nothing is left.
ImagePlan plan_images(std::vector<ImageUnit> units, const ImageInput& input, const ImageRequest& request);
// Plans the shards; info.sample must be known.
void plan_shards(ImagePlan& plan, const ImageInput& input, const ShardOptions& options);

}  // namespace echelon::inline data
