// SPDX-License-Identifier: Apache-2.0
// How well classes are mixed over chunks, files and replicas, and what depends on it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

#include "data/class_mix.hpp"
#include "h5/file.hpp"
#include "tests/support/random.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using Labels8 = std::vector<std::uint8_t>;

void write(const std::string& path, const Labels8& labels) {
  const auto samples = static_cast<std::int64_t>(labels.size());
  const std::vector<std::uint8_t> values(static_cast<std::size_t>(samples), 7);
  h5::Writer writer(path);
  writer.attribute("classes", std::int64_t{10});
  writer.create("samples", DType::u8, {samples, 1, 1, 1}, {.chunk_rows = 64});
  writer.write_rows("samples", 0, samples, values.data(), DType::u8);
  writer.create("labels", DType::u8, {samples}, {.chunk_rows = 64});
  writer.write_rows("labels", 0, samples, labels.data(), DType::u8);
  writer.publish();
}

// Writes 10 files of 640 samples; label(f, i) is the label of sample i of file f.
template <class Label>
Dataset set_of(const test::Folder& folder, Label&& label) {
  for (int f = 0; f < 10; ++f) {
    Labels8 labels;
    for (int i = 0; i < 640; ++i) labels.push_back(static_cast<std::uint8_t>(label(f, i)));
    write(folder / (std::to_string(f) + ".h5"), labels);
  }
  Dataset data = open_dataset(folder.path());
  data.label_sample = std::make_shared<const LabelSample>(data);
  return data;
}

SamplePlan plan_of(const Dataset& data, Sharding sharding, double buffer_mb = 64) {
  DataConfig config;
  config.sharding = sharding;
  config.buffer_mb = buffer_mb;
  return SamplePlan(plan_request(data, config, {8, 8, 8, 8, 8}, 1));
}

int drawn(int f, int i) {
  static const std::vector<std::int64_t> labels = test::random_integers(6400, 0, 9, "labels");
  return static_cast<int>(labels[static_cast<std::size_t>(640 * f + i)]);
}

}  // namespace

TEST_CASE("labels drawn at random are mixed, and nothing follows", "[data]") {
  const test::Folder folder;
  const Dataset data = set_of(folder, drawn);
  const SamplePlan plan = plan_of(data, Sharding::automatic);
  const ClassMix mix = class_mix(*data.label_sample, &plan);
  CHECK((mix.known && mix.chunks == 0 && mix.files == 0 && mix.replicas == 0));
  CHECK(plan.sharding() == Sharding::file);
  CHECK(plan.window_chunks() == 16);
  CHECK(mix_warnings(mix, plan, data, {}).empty());
}

TEST_CASE("a file a class: replicas take records, and the window is as long as it must be", "[data]") {
  const test::Folder folder;
  const Dataset data = set_of(folder, [](int f, int) { return f; });
  const SamplePlan plan = plan_of(data, Sharding::automatic);
  const ClassMix mix = class_mix(*data.label_sample, &plan);
  CHECK(mix.chunks > 0.99);
  CHECK(mix.files > 0.99);
  CHECK(mix.replicas == 0);
  CHECK(plan.sharding() == Sharding::record);
  CHECK(plan.window_chunks() > 900);  // 16 times 64
  CHECK(mix_warnings(mix, plan, data, {}).empty());

  const SamplePlan by_file = plan_of(data, Sharding::file);
  const ClassMix apart = class_mix(*data.label_sample, &by_file);
  CHECK(apart.replicas > 0.4);  // each replica has two classes
  const std::vector<std::string> warnings = mix_warnings(apart, by_file, data, {});
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Contains("replicas are") && Contains("data.sharding = \"record\""));

  // The buffer holds 20 chunks (of 64 records of 5 bytes) of the 100 that the data have.
  const SamplePlan narrow = plan_of(data, Sharding::record, 20.5 * 64 * 5 / (1 << 20));
  CHECK(narrow.window_chunks() == 20);
  const std::vector<std::string> window = mix_warnings(mix, narrow, data, {});
  REQUIRE(window.size() == 1);
  CHECK_THAT(window[0],
             Contains("a shuffle of 20 chunks mixes too little") && Contains("data.buffer_mb = 1 for 100 chunks"));
  DataConfig unshuffled;
  unshuffled.shuffle = false;
  CHECK_THAT(mix_warnings(mix, plan, data, unshuffled).at(0), Contains("data.shuffle = false"));
}

TEST_CASE("sorted within each file: chunks are sorted, files are not", "[data]") {
  const test::Folder folder;
  const Dataset data = set_of(folder, [](int, int i) { return i / 64; });
  const SamplePlan plan = plan_of(data, Sharding::automatic);
  const ClassMix mix = class_mix(*data.label_sample, &plan);
  CHECK(mix.chunks > 0.99);
  CHECK((mix.files == 0 && mix.replicas == 0));
  CHECK(plan.sharding() == Sharding::file);
  CHECK(plan.window_chunks() > 900);
}

TEST_CASE("of a large set some chunks are looked at, of all files", "[data]") {
  const test::Folder folder;
  const Dataset data = set_of(folder, drawn);
  const LabelSample some(data, 640), few(data, 1 << 20, 3);
  CHECK(some.chunks().size() == 10);
  CHECK(few.chunks().size() == 30);
  CHECK(class_mix(few).known);
}

TEST_CASE("one file with most samples: replicas take records where files would repeat samples", "[data]") {
  const test::Folder folder;
  write(folder / "large.h5", Labels8(5760, 1));
  for (int f = 0; f < 4; ++f) write(folder / ("small" + std::to_string(f) + ".h5"), Labels8(160, 1));
  const Dataset data = open_dataset(folder.path());
  CHECK(plan_of(data, Sharding::automatic).sharding() == Sharding::record);
  CHECK(plan_of(data, Sharding::automatic).steps_per_epoch() == 160);
  const SamplePlan by_file = plan_of(data, Sharding::file);
  CHECK(by_file.steps_per_epoch() == 720);
  CHECK(by_file.coverage(0).most == 36);  // 720 steps of 8 samples over 160
}

}  // namespace echelon
