// SPDX-License-Identifier: Apache-2.0
// Folders of shards: the data read from them, and every way in which they can be wrong.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "data/dataset.hpp"
#include "data/sample_plan.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/data/shards.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::ShardSpec;

std::string refusal(const std::string& location) {
  return test::refusal<DataError>([&] { (void)open_dataset(location); });
}

}  // namespace

TEST_CASE("a folder, a file and a pattern are opened in name order", "[data]") {
  const test::Folder folder;
  test::write_shards(folder.path(), {20, 7, 33});
  std::ofstream(folder / "README.txt") << "no shard";
  const Dataset whole = open_dataset(folder.path());
  REQUIRE(whole.shards.size() == 3);
  REQUIRE(whole.samples() == 60);
  REQUIRE(whole.shards[2].first == 27);
  REQUIRE(whole.shards[0].chunk_rows == 20);  // it does not hold eight chunks of 8
  REQUIRE(whole.shards[2].bytes >= 33 * 17);
  REQUIRE(whole.sample_shape == Shape{1, 4, 4});
  REQUIRE(whole.classes == 10);
  REQUIRE(whole.scale == 1.0 / 255);
  REQUIRE(whole.mean == std::vector<double>{0});
  REQUIRE(whole.std == std::vector<double>{1});
  REQUIRE(open_dataset(folder / "a1.h5").samples() == 7);
  REQUIRE(open_dataset(folder / "a[12].h5").samples() == 40);
  REQUIRE(open_dataset(folder / "*.h5").samples() == 60);
}

TEST_CASE("samples are series, images or volumes", "[data]") {
  for (const Shape& sample : {Shape{2, 7}, Shape{2, 3, 4}, Shape{2, 3, 4, 5}}) {
    const test::Folder folder;
    ShardSpec spec;
    spec.sample = sample;
    test::write_shards(folder.path(), {9}, spec);
    const Dataset data = open_dataset(folder.path());
    CHECK(data.kind == DataKind::samples);
    CHECK(data.sample_shape == sample);
    CHECK(data.mean.size() == 2);
    CHECK(data.form().shape == sample);
  }
}

TEST_CASE("attributes of the format are read", "[data]") {
  const test::Folder folder;
  ShardSpec spec;
  spec.sample = {3, 2, 2};
  spec.stored = DType::f32;
  spec.labels = DType::i32;
  spec.classes = 2;
  spec.attributes = [](h5::Writer& writer) {
    writer.attribute("class_names", std::vector<std::string>{"cat", "dog"});
    writer.attribute("mean", std::vector<double>{0.1, 0.2, 0.3});
    writer.attribute("std", std::vector<double>{1, 2, 3});
    writer.attribute("scale", 0.5);
  };
  test::write_shards(folder.path(), {9}, spec);
  const Dataset dataset = open_dataset(folder.path());
  REQUIRE(dataset.stored == DType::f32);
  REQUIRE(dataset.class_names == std::vector<std::string>{"cat", "dog"});
  REQUIRE(dataset.mean == std::vector<double>{0.1, 0.2, 0.3});
  REQUIRE(dataset.std == std::vector<double>{1, 2, 3});
  REQUIRE(dataset.scale == 0.5);
}

TEST_CASE("records read together are whole chunks of 64 to 256", "[data]") {
  const test::Folder folder;
  const auto rows = [&](std::int64_t chunk, int deflate) {
    ShardSpec spec;
    spec.samples = 2000;
    spec.options = {.chunk_rows = chunk, .deflate = deflate};
    test::write_shard(folder / "a.h5", spec);
    return open_dataset(folder.path()).shards[0].chunk_rows;
  };
  REQUIRE(rows(0, 0) == 128);
  REQUIRE(rows(100, 0) == 100);
  REQUIRE(rows(1, 1) == 64);
  REQUIRE(rows(24, 0) == 72);
  REQUIRE(rows(1000, 0) == 256);
  REQUIRE(rows(1000, 1) == 1000);
}

TEST_CASE("a damaged or foreign file is named with what is wrong", "[data]") {
  const test::Folder folder;
  test::write_shards(folder.path(), {20, 20});
  const std::string bad = folder / "b.h5";
  ShardSpec spec;
  spec.samples = 5;
  const auto with = [&](const auto& change) {
    ShardSpec changed = spec;
    change(changed);
    test::write_shard(bad, changed);
    return refusal(folder.path());
  };
  const auto attribute = [](const char* name, auto value) {
    return [=](ShardSpec& s) { s.attributes = [=](h5::Writer& w) { w.attribute(name, value); }; };
  };
  using Doubles = std::vector<double>;

  CHECK_THAT(with([](ShardSpec& s) { s.samples = 0; }), Contains("b.h5: holds no sample: shape (0, 1, 4, 4)"));
  CHECK_THAT(with([](ShardSpec& s) {
               s.sample = {1, 4, 5};
             }),
             Contains("b.h5: has samples of shape (1, 4, 5), but") && Contains("a0.h5 has (1, 4, 4)"));
  CHECK_THAT(with([](ShardSpec& s) { s.sample = {16}; }),
             Contains("shape (5, 16), must be (N, C, H, W), (N, C, D, H, W)"));
  CHECK_THAT(with([](ShardSpec& s) { s.stored = DType::f32; }), Contains("b.h5: has samples of type f32, but"));
  CHECK_THAT(with([](ShardSpec& s) { s.stored = DType::i32; }),
             Contains("'samples' is a 32-bit signed integer, must be 8-bit"));
  CHECK_THAT(with([](ShardSpec& s) { s.labels = DType::f32; }),
             Contains("'labels' holds floats, which are regression targets"));
  CHECK_THAT(with([](ShardSpec& s) { s.labels = DType::f64; }),
             Contains("'labels' holds floats, which are regression targets"));
  CHECK_THAT(with([](ShardSpec& s) { s.classes = 9; }), Contains("b.h5: has classes 9, but"));
  CHECK_THAT(with([](ShardSpec& s) { s.classes = 0; }), Contains("'classes' is 0"));
  CHECK_THAT(with(attribute("scale", 0.5)), Contains("b.h5: has scale 0.5, but"));
  CHECK_THAT(with(attribute("scale", 0.0)), Contains("'scale' is 0"));
  CHECK_THAT(with(attribute("mean", Doubles{0.5})), Contains("b.h5: has mean [0.5], but"));
  CHECK_THAT(with(attribute("mean", Doubles{1, 2})), Contains("'mean' has 2 values for 1 channels"));
  CHECK_THAT(with(attribute("std", Doubles{0})), Contains("'std' holds 0, must be above 0"));
  CHECK_THAT(with(attribute("mean", Doubles{NAN})), Contains("'mean' holds nan"));
  CHECK_THAT(with(attribute("class_names", std::vector<std::string>{"one"})), Contains("1 class_names for 10 classes"));
  CHECK_THAT(with(attribute("format", std::string("other"))), Contains("has format 'other'"));
  CHECK_THAT(with(attribute("version", std::int64_t{2})), Contains("has version 2"));

  std::ofstream(bad, std::ios::trunc).close();
  CHECK_THAT(refusal(folder.path()), Contains("b.h5: is empty (0 bytes)"));
  std::filesystem::copy_file(folder / "a0.h5", bad, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(bad, std::filesystem::file_size(bad) / 2);
  CHECK_THAT(refusal(folder.path()), Contains("b.h5: is truncated"));
  h5::Writer lone(bad);
  const std::vector<float> values(16);
  lone.write_all("samples", DType::f32, {1, 1, 4, 4}, values.data());
  lone.publish();
  CHECK_THAT(refusal(folder.path()), Contains("b.h5: dataset 'labels' is missing"));
  h5::Writer uneven(bad);
  uneven.write_all("samples", DType::f32, {1, 1, 4, 4}, values.data());
  uneven.create("labels", DType::i32, {2});
  uneven.publish();
  CHECK_THAT(refusal(folder.path()), Contains("b.h5: holds 1 samples but 2 labels"));
}

TEST_CASE("a folder without shards is named, with the nearest folder that has some", "[data]") {
  const test::Folder folder;
  REQUIRE_THAT(refusal(folder.path()), Contains("holds no .h5 or .hdf5 file"));
  std::filesystem::create_directories(folder / "train");
  REQUIRE_THAT(refusal(folder.path()), Contains("did you mean " + folder / "train"));
  REQUIRE_THAT(refusal(folder / "nowhere"), Contains("nowhere") && Contains("No such file or directory"));
  REQUIRE_THAT(refusal(folder / "*.h5"), Contains("no file matches this pattern"));
}

TEST_CASE("test data are normalised like the training data", "[data]") {
  const test::Folder folder;
  ShardSpec spec;
  spec.samples = 9;
  spec.attributes = [](h5::Writer& writer) { writer.attribute("mean", std::vector<double>{0.1}); };
  test::write_shard(folder / "train.h5", spec);
  spec.attributes = [](h5::Writer& writer) { writer.attribute("std", std::vector<double>{0.2}); };
  test::write_shard(folder / "test.h5", spec);
  Dataset train = open_dataset(folder / "train.h5");
  Dataset test = open_dataset(folder / "test.h5");
  see_alike(test, train);
  REQUIRE((test.mean == std::vector<double>{0.1} && test.std == std::vector<double>{1}));
  spec.sample = {1, 4, 5};
  test::write_shard(folder / "test.h5", spec);
  test = open_dataset(folder / "test.h5");
  REQUIRE_THROWS_WITH(see_alike(test, train),
                      Contains("test.h5: holds samples of (1, 4, 5) and 10 classes, but the training data"));
}

TEST_CASE("the window of a plan fits into the buffer", "[data][plan]") {
  Dataset dataset;
  dataset.sample_shape = {3, 100, 100};
  Shard shard;
  shard.samples = 1000;
  shard.chunk_rows = 100;
  dataset.shards = {shard};
  DataConfig config;
  config.window_chunks = 16;
  config.buffer_mb = 1000;
  REQUIRE(plan_request(dataset, config, {4}, 1).window_chunks == 16);
  config.buffer_mb = 9;  // 3 chunks of 3 MB
  REQUIRE(plan_request(dataset, config, {4}, 1).window_chunks == 3);
  config.buffer_mb = 1;
  REQUIRE(plan_request(dataset, config, {4}, 1).window_chunks == 1);
}

}  // namespace echelon
