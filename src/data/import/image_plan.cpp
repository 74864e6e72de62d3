// SPDX-License-Identifier: Apache-2.0
#include "data/import/image_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "data/format.hpp"
#include "data/import/hold_out.hpp"
#include "data/import/like.hpp"
#include "data/import/packed.hpp"
#include "data/import/shared_import.hpp"
#include "data/label_counts.hpp"

namespace echelon::inline data {
namespace {

// The class names of all units, sorted, without duplicates.
std::vector<std::string> classes_of(const std::vector<ImageUnit>& units, const ImageInput& input) {
  std::set<std::string> names;
  const ImageUnit* first = nullptr;
  for (const ImageUnit& unit : units) {
    names.insert(unit.classes.begin(), unit.classes.end());  // also of classes without a usable image
    if (unit.items.empty()) continue;
    if (first == nullptr) first = &unit;
    if (unit.classes.empty() != first->classes.empty())
      throw DataError(fmt::format("{} has {} as labels, but {} has {}; all must be numbers or all names",
                                  input.place(first->items[0]), first->classes.empty() ? "numbers" : "names",
                                  input.place(unit.items[0]), unit.classes.empty() ? "numbers" : "names"));
  }
  return {names.begin(), names.end()};
}

// Maps labels from the unit's own class numbers to those of the set.
void number_labels(ImageUnit& unit, const std::vector<std::string>& classes) {
  if (unit.classes.empty()) return;
  std::vector<std::int32_t> numbers;
  for (const std::string& name : unit.classes)
    numbers.push_back(
        static_cast<std::int32_t>(std::lower_bound(classes.begin(), classes.end(), name) - classes.begin()));
  for (ImageItem& item : unit.items) item.label = numbers[static_cast<std::size_t>(item.label)];
}

// Shuffles in a fixed random order, because training shuffles only samples that are close to each other. Items are in
// memory.
void mix(std::vector<ImageItem>& items) {
  const HashRng draws(1, "images");
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[draws.below(i, i)]);
}

// Moves held-out items behind the others; returns their number.
std::size_t hold_out(std::vector<ImageItem>& items, const ShardOptions& options, bool mixed) {
  const auto all = static_cast<std::int64_t>(items.size());
  const HoldOut is_held(all, held_out_of(all, options));
  std::vector<ImageItem> train, test;
  for (std::size_t i = 0; i < items.size(); ++i)
    (is_held(static_cast<std::int64_t>(i)) ? test : train).push_back(std::move(items[i]));
  if (mixed) mix(train);
  const std::size_t held = test.size();
  items = std::move(train);
  std::move(test.begin(), test.end(), std::back_inserter(items));
  return held;
}

// The name of the unit's class or archive, without its folder, so that moved input counts as the same.
std::string unit_name(const std::string& unit) { return std::filesystem::path(unit).filename().string(); }

std::string made_of(const ImagePlan& plan, const PlannedShard& shard, const ImageInput& input,
                    const ShardOptions& options) {
  Packing packed;
  packed.put(sample_format::kVersion);
  for (const std::int64_t extent : {plan.info.sample[0], plan.info.sample[1], plan.info.sample[2]}) packed.put(extent);
  if (plan.encoded) packed.put(std::string_view("encoded"));
  packed.put(plan.info.classes);
  packed.put(plan.info.class_names);
  packed.put(plan.info.scale);
  for (const std::int64_t option :
       {options.chunk, options.slab_rows, std::int64_t{options.compress}, std::int64_t{options.checksums ? 1 : 0}})
    packed.put(option);
  for (std::size_t i = shard.first; i < shard.first + shard.count; ++i) {
    const ImageItem& item = plan.items[i];
    packed.put(unit_name(input.units()[static_cast<std::size_t>(item.unit)]));
    packed.put(std::string_view(item.name));
    packed.put(item.offset);
    packed.put(item.stamp);
    packed.put(item.label);
  }
  return hex64(checksum64(packed.bytes()));
}

}  // namespace

ImagePlan plan_images(std::vector<ImageUnit> units, const ImageInput& input, const ImageRequest& request) {
  ImagePlan plan;
  plan.encoded = request.encoded;
  plan.info.sample = {request.channels, request.height, request.width};
  plan.info.class_names = classes_of(units, input);
  plan.passed = input.passed_over();
  std::int32_t greatest = -1;
  for (ImageUnit& unit : units) {
    pass_over(plan.passed, unit.passed);
    number_labels(unit, plan.info.class_names);
    for (ImageItem& item : unit.items) {
      greatest = std::max(greatest, item.label);
      plan.items.push_back(std::move(item));
    }
    std::move(unit.damaged.begin(), unit.damaged.end(), std::back_inserter(plan.damaged));
    unit = {};
  }
  if (plan.items.empty())
    throw DataError(fmt::format("{}: holds no image that can be used; {} left out, the first: {}", input.units()[0],
                                plan.damaged.size(), plan.damaged.empty() ? "-" : plan.damaged[0]));
  plan.info.classes = plan.info.class_names.empty() ? std::int64_t{greatest} + 1
                                                    : static_cast<std::int64_t>(plan.info.class_names.size());
  LabelCounts counts;
  for (const ImageItem& item : plan.items) counts.add(item.label);
  refuse_odd_classes(counts, plan.info.classes, plan.info.class_names,
                     {.input = request.inputs[0], .labels_as_they_are = request.labels_as_they_are});
  if (!request.like.empty()) {
    const std::vector<std::int32_t> numbers = take_classes(plan.info, request.like);
    for (ImageItem& item : plan.items) item.label = numbers[static_cast<std::size_t>(item.label)];
  }
  return plan;
}

void plan_shards(ImagePlan& plan, const ImageInput& input, const ShardOptions& options) {
  const std::size_t held = hold_out(plan.items, options, input.reads_anywhere() && !options.keep_order);
  const std::size_t train = plan.items.size() - held;
  plan.shards = planned_shards(static_cast<std::int64_t>(train), static_cast<std::int64_t>(held), options);
  for (PlannedShard& shard : plan.shards) shard.made_of = made_of(plan, shard, input, options);
}

}  // namespace echelon::inline data
