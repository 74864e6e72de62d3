// Which image becomes which sample of which shard. Pure, given what the units of the input hold.
#pragma once

#include <string>
#include <vector>

#include "data/import/image_import.hpp"
#include "data/import/source.hpp"

namespace echelon::inline data {

struct PlannedShard {
  std::string file;     // "shard-0000.h5", "train/shard-0000.h5"
  std::string made_of;  // a checksum of the images and of all options that its bytes depend on
  bool test = false;
  std::size_t first = 0, count = 0;  // of ImagePlan::items; fewer samples where some are damaged
};

struct ImagePlan {
  SourceInfo info;               // `sample` is (channels, 0, 0) until the size is known
  std::vector<ImageItem> items;  // in the order of samples, those held out last; labels are numbers of classes
  std::vector<PlannedShard> shards;
  std::vector<std::string> damaged;  // of the units
  std::vector<PassedOver> passed;    // of the input and its units
};

// The units, in their order, as one list. Classes with names are numbered in the order of their names, or as those of
// the set that request.like names. DataError where labels do not fit together or nothing is left.
ImagePlan plan_images(std::vector<ImageUnit> units, const ImageInput& input, const ImageRequest& request);
// The shards, when info.sample is known.
void plan_shards(ImagePlan& plan, const ImageInput& input, const ShardOptions& options);

}  // namespace echelon::inline data
