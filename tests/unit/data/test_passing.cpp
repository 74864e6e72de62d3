// SPDX-License-Identifier: Apache-2.0
// Large samples that are read one by one, into the batch itself where they can be, are those that a buffer holds.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "data/chunk_cache.hpp"
#include "data/loader.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t kSamples = 7;

struct Read {
  std::vector<float> samples, labels, weights;
  std::vector<std::int32_t> ids;
  friend bool operator==(const Read&, const Read&) = default;
};

struct Way {
  std::int64_t buffer = 0;
  int threads = 1;
  DType dtype = DType::f32;
  Slab slab = {};
};

// Two epochs in batches of 3, of which the last has one row that does not count.
Read read(const Dataset& set, const Way& way, const DataConfig& config = {}) {
  const SamplePlan plan(plan_request(set, config, {3}, 5));
  Loader loader(
      set, plan,
      {.dtype = way.dtype, .threads = way.threads, .buffer_bytes = way.buffer, .slab = way.slab, .end_epoch = 2});
  const Dataset own = with_slab(set, way.slab, false);
  const std::int64_t elems = own.sample_shape.elems(), each = own.label_shape.elems();
  Read all;
  const auto take = [&](std::vector<float>& to, const void* from, std::int64_t count) {
    with_float(way.dtype, [&]<class T>(T) {
      for (std::int64_t i = 0; i < count; ++i) to.push_back(static_cast<float>(static_cast<const T*>(from)[i]));
    });
  };
  for (std::int64_t step = 0; step < 2 * plan.steps_per_epoch(); ++step) {
    const Batch& batch = loader.next();
    take(all.samples, batch.samples, batch.n * elems);
    take(all.weights, batch.weights, batch.n * each);
    if (set.has_numbers())
      take(all.labels, batch.labels, batch.n * each);
    else
      for (std::int64_t i = 0; i < batch.n * each; ++i)
        all.labels.push_back(static_cast<float>(static_cast<const std::int32_t*>(batch.labels)[i]));
    all.ids.insert(all.ids.end(), batch.ids, batch.ids + batch.n);
  }
  return all;
}

void put(h5::Writer& writer, const char* name, DType dtype, const Shape& shape, std::int64_t most) {
  const std::vector<std::int64_t> drawn = test::random_integers(static_cast<std::size_t>(shape.elems()), 0, most, name);
  const std::vector<double> values(drawn.begin(), drawn.end());
  writer.create(name, dtype, shape);
  writer.write_rows(name, 0, shape[0], values.data(), DType::f64);
}

Hdf5Config keys(std::vector<std::string> samples, const std::string& axes) {
  Hdf5Config config;
  config.samples = std::move(samples), config.axes = axes;
  config.labels = "y", config.classes = 4;
  config.label_form = LabelForm::dense;
  return config;
}

constexpr std::int64_t kBytes = 1 << 20, kAll = 1 << 30;  // a buffer of some samples, and one of all

}  // namespace

TEST_CASE("large samples are read one by one and are those that a buffer holds", "[data][loader][passing]") {
  const test::Folder folder;
  h5::Writer writer(folder / "a.h5");
  put(writer, "last", DType::f32, {kSamples, 70, 90, 11}, 1000);   // pieces end inside a record
  put(writer, "front", DType::i32, {kSamples, 11, 70, 90}, 1000);  // converted
  put(writer, "one", DType::f64, {kSamples, 70, 90}, 1000);
  put(writer, "bytes", DType::u8, {kSamples, 70, 90, 50}, 255);
  put(writer, "y", DType::u8, {kSamples, 70, 90}, 3);
  writer.publish();
  std::vector<Hdf5Config> all = {keys({"last"}, "NHWC"),  keys({"front"}, "NCHW"),          keys({"last"}, "NHWC"),
                                 keys({"bytes"}, "NHWC"), keys({"front", "front"}, "NCHW"), keys({"front"}, "NCHW")};
  all[2].channels = {7, 0, 3, 10, 9, 8, 1, 2, 4, 5, 6};
  all[2].mean = {3}, all[2].std = {2};
  all[4].channels = {11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 3, 2, 1};
  all[4].scale = 0.25;
  all[5].transform = Transform::log1p;
  for (const Hdf5Config& hdf5 : all) {
    const Dataset set = open_dataset(folder / "a.h5", 0, Labels::needed, hdf5);
    CAPTURE(hdf5.samples, hdf5.axes, hdf5.channels);
    REQUIRE(set.shards[0].alone);
    REQUIRE(ChunkCache(set, kBytes).passes());
    REQUIRE_FALSE(ChunkCache(set, kAll).passes());
    const Read held = read(set, {.buffer = kAll});
    CHECK(read(set, {.buffer = kBytes}) == held);
    CHECK(read(set, {.buffer = kBytes, .threads = 3}) == held);
    const Read wide = read(set, {.buffer = kBytes, .dtype = DType::f64});
    CHECK(wide.ids == held.ids);
    CHECK(wide.labels == held.labels);
    const Slab slab{.samples = {1, 9, 52}, .labels = {0, 9, 52}};
    CHECK(read(set, {.buffer = kBytes, .slab = slab}) == read(set, {.buffer = kAll, .slab = slab}));
  }
}

TEST_CASE("a sample that is read into the batch holds the values of the file", "[data][loader][passing]") {
  const test::Folder folder;
  const Shape shape{kSamples, 70, 90, 11};
  h5::Writer writer(folder / "a.h5");
  put(writer, "x", DType::f32, shape, 1000);
  put(writer, "y", DType::u8, shape.with(3, 1), 3);
  writer.publish();
  std::vector<float> values(static_cast<std::size_t>(shape.elems()));
  h5::Reader(folder / "a.h5").read_all("x", values.data(), DType::f32);
  const Read found = read(open_dataset(folder / "a.h5", 0, Labels::needed, keys({"x"}, "NHWC")), {.buffer = kBytes});
  const std::int64_t places = 70 * 90, elems = 11 * places;
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < found.ids.size(); ++i)
    for (std::int64_t c = 0; c < 11; ++c)
      for (std::int64_t p = 0; p < places; ++p)
        wrong += found.samples[i * static_cast<std::size_t>(elems) + static_cast<std::size_t>(c * places + p)] !=
                 values[static_cast<std::size_t>(found.ids[i] * elems + p * 11 + c)];
  CHECK(found.ids.size() == 18);
  CHECK(wrong == 0);
}

TEST_CASE("shards of large samples have a chunk for each, which is read alone", "[data][loader][passing]") {
  const test::Folder folder;
  for (const std::int64_t rows : {1, 3}) {
    const std::string path = folder / fmt::format("{}.h5", rows);
    const Shape shape{kSamples, 3, 150, 151};
    const std::vector<double> drawn = test::random_values(static_cast<std::size_t>(shape.elems()), "shard");
    const std::vector<float> values(drawn.begin(), drawn.end());
    const std::vector<std::int32_t> labels(kSamples, 1);
    h5::Writer writer(path);
    writer.attribute("classes", std::int64_t{4});
    writer.attribute("mean", std::vector<double>{0, 0.5, 0});
    writer.write_all("samples", DType::f32, shape, values.data(), {.chunk_rows = rows, .checksum = true});
    writer.write_all("labels", DType::u8, {kSamples}, labels.data(), {.chunk_rows = rows, .checksum = true});
    writer.publish();
    const Dataset set = open_dataset(path);
    CHECK(set.shards[0].alone == (rows == 1));
    CHECK(ChunkCache(set, kBytes).passes() == (rows == 1));
    CHECK(read(set, {.buffer = kBytes}) == read(set, {.buffer = kAll}));
  }
}

TEST_CASE("a value that is not finite is named, and one in a channel that is left out does not matter",
          "[data][loader][passing]") {
  const test::Folder folder;
  const Shape shape{kSamples, 70, 90, 11};
  std::vector<float> values(static_cast<std::size_t>(shape.elems()), 1);
  values[5 * static_cast<std::size_t>(shape.row_elems()) + 60000] = std::numeric_limits<float>::infinity();
  const auto channel = static_cast<std::int64_t>(60000 % 11);
  h5::Writer writer(folder / "a.h5");
  writer.write_all("x", DType::f32, shape, values.data());
  put(writer, "y", DType::u8, {kSamples, 70, 90}, 3);
  writer.publish();
  Hdf5Config hdf5 = keys({"x"}, "NHWC");
  for (const std::int64_t buffer : {kBytes, kAll})
    CHECK_THAT(test::refusal<DataError>(
                   [&] { read(open_dataset(folder / "a.h5", 0, Labels::needed, hdf5), {.buffer = buffer}); }),
               Contains("a.h5: record 5 of 'x' holds inf"));
  for (std::int64_t c = 0; c < 11; ++c)
    if (c != channel) hdf5.channels.push_back(c);
  CHECK(read(open_dataset(folder / "a.h5", 0, Labels::needed, hdf5), {.buffer = kBytes}).ids.size() == 18);
}

}  // namespace echelon
