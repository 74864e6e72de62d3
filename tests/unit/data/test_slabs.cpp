// SPDX-License-Identifier: Apache-2.0
// Ranks that share a sample read their slabs of it: what they get is cut out of what one rank gets, for any layout of
// the file, and the bytes that they read are as many fewer unless chunks are decoded whole.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>

#include "base/hash_rng.hpp"
#include "data/loader.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

constexpr std::int64_t kSamples = 6, kChannels = 2, kSlices = 8, kRows = 3, kColumns = 5;
constexpr std::int64_t kPlaces = kSlices * kRows * kColumns;

template <class T>
std::vector<T> drawn(std::int64_t count, std::uint64_t below, std::uint64_t seed) {
  const HashRng draws(seed, "slabs");
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<T>(draws.below(static_cast<std::uint64_t>(i), below)));
  return values;
}

struct Layout {
  const char* name;
  double least, most;  // of the share of the bytes that half a sample takes
  std::function<void(const std::string& folder)> write;
  Hdf5Config hdf5 = {};
};

void write_shard(const std::string& folder, const h5::DatasetOptions& samples, const h5::DatasetOptions& labels) {
  h5::Writer writer(folder + "/a.h5");
  writer.attribute("classes", std::int64_t{4});
  writer.write_all("samples", DType::f32, {kSamples, kChannels, kSlices, kRows, kColumns},
                   drawn<float>(kSamples * kChannels * kPlaces, 1000, 1).data(), samples);
  writer.write_all("labels", DType::u8, {kSamples, kSlices, kRows, kColumns},
                   drawn<std::uint8_t>(kSamples * kPlaces, 4, 2).data(), labels);
  writer.publish();
}

Hdf5Config keys(const std::string& axes, LabelForm form) {
  Hdf5Config config;
  config.samples = {"x"}, config.labels = "y";
  config.axes = axes;
  config.label_form = form;
  if (form == LabelForm::dense) config.classes = 4;
  return config;
}

std::vector<Layout> layouts() {
  const h5::DatasetOptions together{.chunk_rows = 4, .deflate = 1, .checksum = true};
  h5::DatasetOptions samples{.chunk_rows = 2, .deflate = 1, .checksum = true, .slab_axis = 2, .slab_rows = 2};
  h5::DatasetOptions labels = samples;
  labels.slab_axis = 1;
  return {{"contiguous", 0.5, 0.5, [](const std::string& folder) { write_shard(folder, {}, {}); }},
          {"whole chunks", 1, 1, [=](const std::string& folder) { write_shard(folder, together, together); }},
          {"chunks of slabs", 0.5, 0.5, [=](const std::string& folder) { write_shard(folder, samples, labels); }},
          {"channels last", 0.5, 0.5,
           [](const std::string& folder) {
             h5::Writer writer(folder + "/a.h5");
             writer.write_all("x", DType::f64, {kSamples, kSlices, kRows, kColumns, kChannels},
                              drawn<double>(kSamples * kChannels * kPlaces, 1000, 3).data());
             writer.write_all("y", DType::i32, {kSamples, 1, kSlices, kRows, kColumns},
                              drawn<std::int32_t>(kSamples * kPlaces, 4, 4).data());
             writer.publish();
           },
           keys("NDHWC", LabelForm::dense)},
          {"a sample a file", 0.5, 0.5,
           [](const std::string& folder) {
             for (std::int64_t i = 0; i < kSamples; ++i) {
               h5::Writer writer(folder + fmt::format("/{}.h5", i));
               const auto seed = static_cast<std::uint64_t>(10 + i);
               writer.write_all("x", DType::f32, {kSlices, kRows, kColumns, kChannels},
                                drawn<float>(kChannels * kPlaces, 1000, seed).data());
               writer.write_all("y", DType::u8, {kSlices, kRows, kColumns, 1},
                                drawn<std::uint8_t>(kPlaces, 4, seed).data());
               writer.publish();
             }
           },
           keys("DHWC", LabelForm::dense)},
          {"fields", 0.5, 0.5,
           [=](const std::string& folder) {
             h5::Writer writer(folder + "/a.h5");
             writer.write_all("x", DType::f32, {kSamples, kChannels, kSlices, kRows, kColumns},
                              drawn<float>(kSamples * kChannels * kPlaces, 1000, 5).data());
             writer.write_all("y", DType::f32, {kSamples, 3, kSlices, kRows, kColumns},
                              drawn<float>(kSamples * 3 * kPlaces, 1000, 6).data());
             writer.publish();
           },
           keys("NCDHW", LabelForm::values)}};
}

struct Read {
  std::vector<double> samples, labels, weights;
  double bytes = 0;
};

Read read(const Dataset& data, const Slab& slab, const Augmentation& augmentation = {}) {
  DataConfig config;
  config.shuffle = false;
  const SamplePlan plan(plan_request(data, config, {data.samples()}, 0));
  Loader loader(data, plan, {.dtype = DType::f64, .augmentation = augmentation, .slab = slab, .end_epoch = 1});
  const Batch& batch = loader.next();
  const std::int64_t n = batch.n, labels = slab.labels.shape_of(data.label_shape).elems() * n;
  const auto* samples = static_cast<const double*>(batch.samples);
  Read all;
  all.samples.assign(samples, samples + n * slab.samples.shape_of(data.sample_shape).elems());
  for (std::int64_t i = 0; i < labels; ++i) {
    all.labels.push_back(data.has_numbers() ? static_cast<const double*>(batch.labels)[i]
                                            : static_cast<const std::int32_t*>(batch.labels)[i]);
    all.weights.push_back(static_cast<const double*>(batch.weights)[i]);
  }
  all.bytes = static_cast<double>(loader.bytes_read());
  return all;
}

std::vector<double> cut(const std::vector<double>& values, const Shape& shape, const SlabRange& part) {
  std::int64_t outer = kSamples, inner = 1;
  for (int axis = 0; axis < shape.rank(); ++axis)
    (axis < part.axis ? outer : inner) *= axis == part.axis ? 1 : shape[axis];
  std::vector<double> own;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = part.begin * inner; i < part.end * inner; ++i)
      own.push_back(values[static_cast<std::size_t>(o * shape[part.axis] * inner + i)]);
  return own;
}

}  // namespace

TEST_CASE("slabs of samples and labels are cut out of whole ones, and are all that is read", "[data][loader][slabs]") {
  for (const Layout& layout : layouts()) {
    CAPTURE(layout.name);
    const test::Folder folder;
    layout.write(folder.path());
    const Dataset data = open_dataset(folder.path(), 0, Labels::needed, layout.hdf5);
    const Read whole = read(data, {});
    for (const auto& [begin, end] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 4}, {4, 8}, {1, 4}, {5, 6}}) {
      const Slab slab{.samples = {1, begin, end}, .labels = {data.has_numbers() ? 1 : 0, begin, end}};
      const Read own = read(data, slab);
      CAPTURE(begin, end);
      CHECK(own.samples == cut(whole.samples, data.sample_shape, slab.samples));
      CHECK(own.labels == cut(whole.labels, data.label_shape, slab.labels));
      CHECK(own.weights == cut(whole.weights, data.label_shape, slab.labels));
      if (end - begin != kSlices / 2) continue;
      CHECK(own.bytes >= layout.least * whole.bytes);
      CHECK(own.bytes <= layout.most * whole.bytes);
    }
  }
}

TEST_CASE("slabs of changed and mixed samples are cut out of the whole ones", "[data][loader][slabs]") {
  const test::Folder folder;
  h5::Writer writer(folder.path() + "/a.h5");
  writer.attribute("classes", std::int64_t{4});
  writer.write_all("samples", DType::f32, {kSamples, kChannels, kSlices, kColumns},
                   drawn<float>(kSamples * kChannels * kSlices * kColumns, 1000, 7).data());
  writer.write_all("labels", DType::u8, {kSamples}, drawn<std::uint8_t>(kSamples, 4, 8).data());
  writer.publish();
  Dataset data = open_dataset(folder.path());
  Augmentation changes{.crop_padding = 2, .flip = true, .keys = {}, .seed = 5};
  for (const int mixed : {0, 1, 2}) {
    changes.keys.mixup = mixed == 1 ? 0.7 : 0, changes.keys.cutmix = mixed == 2 ? 0.7 : 0;
    data.mixes = mixed > 0;
    const Read whole = read(data, {}, changes);
    for (const SlabRange& part : {SlabRange{1, 0, 3}, SlabRange{1, 3, 8}}) {
      CAPTURE(mixed, part.begin);
      const Read own = read(data, {.samples = part, .labels = {}}, changes);
      CHECK(own.samples == cut(whole.samples, data.sample_shape, part));
      CHECK(own.labels == whole.labels);
      CHECK(own.weights == whole.weights);
    }
  }
}

}  // namespace echelon
