// SPDX-License-Identifier: Apache-2.0
// HDF5 files in the layouts of public data sets, as h5py writes them, give the samples that h5py reads
// (tests/support/foreign_files.py).
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "config/parse.hpp"
#include "data/chunk_cache.hpp"
#include "data/class_mix.hpp"
#include "data/foreign_guess.hpp"
#include "data/loader.hpp"
#include "h5/file.hpp"
#include "tests/support/python.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

DataConfig config_of(const std::string& location, const std::string& table) {
  const DataConfig config =
      parse_config("[data]\ntrain = \"" + location + "\"\nshuffle = false\n[data.hdf5]\n" + table, "test.toml").data;
  if (const auto misfit = config.hdf5.misfit()) throw ConfigError(misfit->why);
  return config;
}

std::vector<float> floats_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

double apart(const std::vector<float>& expected, const float* found) {
  double most = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double distance =
        std::fabs(static_cast<double>(found[i]) - expected[i]) / std::max(1.0F, std::fabs(expected[i]));
    most = std::isnan(distance) ? HUGE_VAL : std::max(most, distance);
  }
  return most;
}

const Batch& whole_set(std::unique_ptr<Loader>& loader, const Dataset& data, const DataConfig& config,
                       std::int64_t buffer_bytes = 64 << 20) {
  loader = std::make_unique<Loader>(data, SamplePlan(plan_request(data, config, {data.samples()}, 1)),
                                    LoaderOptions{.buffer_bytes = buffer_bytes});
  return loader->next();
}

void check_batch(const Batch& batch, const Dataset& data, const std::string& files) {
  CHECK(apart(floats_in(files + ".samples"), static_cast<const float*>(batch.samples)) < 3e-6);
  const std::vector<float> labels = floats_in(files + ".labels");
  if (data.has_numbers())
    CHECK(apart(labels, static_cast<const float*>(batch.labels)) == 0);
  else
    for (std::size_t i = 0; i < labels.size(); ++i)
      CHECK(static_cast<const std::int32_t*>(batch.labels)[i] == static_cast<std::int32_t>(labels[i]));
  const auto* weights = static_cast<const float*>(batch.weights);
  if (data.weighted)
    CHECK(apart(floats_in(files + ".weights"), weights) == 0);
  else
    CHECK(weights[0] == 1);
}

void check_case(const json& made, const std::string& folder) {
  const std::string name = made["name"], files = folder + "/" + name;
  CAPTURE(name);
  const DataConfig config = config_of(made["location"], made["table"]);
  const Dataset data = open_dataset(config.train, config);
  CHECK(data.samples() == made["count"]);
  CHECK(data.classes == made["classes"]);
  CHECK(data.weighted == made["weighted"]);
  std::vector<std::int64_t> shape(data.sample_shape.extents().begin(), data.sample_shape.extents().end());
  REQUIRE(shape == made["shape"].get<std::vector<std::int64_t>>());
  CHECK(LabelSample(data).counts().samples() == (data.has_numbers() ? 0 : data.samples() * data.label_shape.elems()));
  std::unique_ptr<Loader> loader;
  for (const std::int64_t buffer_bytes : {64 << 20, 1}) {  // held, and read one by one where samples are large
    const Batch& batch = whole_set(loader, data, config, buffer_bytes);
    REQUIRE(batch.n == made["count"]);
    check_batch(batch, data, files);
  }
  CHECK(ChunkCache(data, 1).passes() == (data.shards[0].rows_together() == 1));
}

}  // namespace

TEST_CASE("files of public data sets are read as h5py reads them", "[data][foreign]") {
  if (test::skip_without(test::has_module("h5py"), test::Lacks::package, "needs h5py")) return;
  const test::Folder folder;
  const test::Outcome made = test::python({"tests/support/foreign_files.py", folder / ""});
  INFO(made.err);
  REQUIRE(made.code == 0);
  const json cases = json::parse(std::ifstream(folder / "cases.json"));
  CHECK(cases.size() >= 35);
  for (const json& one : cases) check_case(one, folder / "");

  SECTION("a table is proposed that reads them") {
    for (const char* name : {"galaxy", "so2sat", "biggan", "fuel_train", "hep", "radioml"}) {
      CAPTURE(name);
      const json& one = *std::find_if(cases.begin(), cases.end(), [&](const json& c) { return c["name"] == name; });
      const h5::Reader file(one["location"].get<std::string>());
      const ForeignGuess guess = guess_foreign(file, file.datasets(), false);
      CAPTURE(guess.table);
      const std::string keys = guess.table.substr(guess.table.find('\n') + 1);
      const DataConfig config = config_of(one["location"], keys);
      const Dataset data = open_dataset(config.train, config);
      CHECK(data.samples() == one["count"]);
      CHECK(data.classes <= one["classes"]);
      CHECK(data.classes > 0);
      std::unique_ptr<Loader> loader;
      CHECK(whole_set(loader, data, config).n == one["count"]);
    }
  }

  SECTION("sequences are cut as those of shards are") {
    DataConfig config =
        config_of(folder / "radioml.hdf5", "samples = \"X\"\naxes = \"NTF\"\nlabels = \"Y\"\nlabel_form = \"one_hot\"");
    config.sequence_length = 5;
    const Dataset data = open_dataset(config.train, config);
    std::unique_ptr<Loader> loader;
    const Batch& batch = whole_set(loader, data, config);
    REQUIRE(batch.length == 5);
    const std::vector<float> all = floats_in(folder / "radioml.samples");
    const auto* cut = static_cast<const float*>(batch.samples);
    for (std::size_t i = 0; i < 37; ++i) CHECK(std::equal(cut + i * 10, cut + i * 10 + 10, all.data() + i * 32));
  }

  SECTION("labels may lack where only predictions are made") {
    const std::string table = "samples = \"x\"\naxes = \"NHWC\"\nlabels = \"gone\"\nclasses = 2";
    const DataConfig config = config_of(folder / "pcam/train_x.h5", table);
    CHECK_THROWS_WITH(open_dataset(config.train, config), Contains("dataset of labels 'gone'"));
    const Dataset data = open_dataset(config.train, config, Labels::optional);
    CHECK_FALSE(data.labelled);
    std::unique_ptr<Loader> loader;
    CHECK(whole_set(loader, data, config).weight == 0);
  }

  SECTION("what does not fit is refused with the cure") {
    const std::string galaxy = folder / "galaxy.h5";
    const auto refusal = [&](const std::string& location, const std::string& table) -> std::string {
      try {
        const DataConfig config = config_of(location, table);
        const Dataset data = open_dataset(config.train, config);
        const LabelSample labels(data);
        std::unique_ptr<Loader> loader;
        whole_set(loader, data, config);
      } catch (const Error& error) {
        return error.what();
      }
      return "nothing was refused";
    };
    const std::string images = "samples = \"images\"\naxes = \"NHWC\"\nlabels = \"ans\"\n";
    CHECK_THAT(refusal(galaxy, "samples = \"image\"\nlabels = \"ans\"\nclasses = 10"),
               Contains("did you mean 'images'"));
    CHECK_THAT(refusal(galaxy, "samples = \"images\"\naxes = \"NHW\"\nlabels = \"ans\"\nclasses = 10"),
               Contains("nearest: axes = \"NHWC\""));
    CHECK_THAT(refusal(galaxy, images + "classes = 3"), Contains("must be 0 to 2"));
    CHECK_THAT(refusal(galaxy, images + "label_form = \"one_hot\""), Contains("one number a sample"));
    CHECK_THAT(refusal(galaxy, images + "classes = 10\nchannels = [3]"), Contains("0 to 2"));
    CHECK_THAT(refusal(galaxy, images + "classes = 10\nrows = [0, 38]"), Contains("37 rows"));
    CHECK_THAT(refusal(galaxy, images + "classes = 10\nmean = [1, 2]"), Contains("2 numbers for 3 channels"));
    CHECK_THAT(refusal(galaxy, images + "classes = 10\nsplit = \"train\""), Contains("has no attribute 'split'"));
    CHECK_THAT(
        refusal(folder / "fuel.hdf5", "samples = \"features\"\nlabels = \"targets\"\nclasses = 10\nsplit = \"tran\""),
        Contains("did you mean 'train'"));
    CHECK_THAT(refusal(folder / "radioml.hdf5", "samples = \"X\"\naxes = \"NTF\"\nlabels = \"Y\"\nclasses = 24"),
               Contains("label_form = \"one_hot\""));
    CHECK_THAT(refusal(folder / "climate.nc", "samples = [\"air\", \"sea\"]\naxes = \"NHW\"\nlabels = \"next\""),
               Contains("record 3") && Contains("missing = \"mean\""));
    CHECK_THAT(refusal(folder / "pcam/train_x.h5",
                       "samples = \"x\"\naxes = \"NHWC\"\nlabels = \"y\"\nclasses = 2\n"
                       "labels_file = [\"_a.h5\", \"_y.h5\"]"),
               Contains("does not end with '_a.h5'"));
    CHECK_THAT(refusal(folder / "modelnet.h5", "samples = \"data\"\naxes = \"NDC\""),
               Contains("D (slice) goes with H and W"));
    CHECK_THAT(refusal(galaxy, images + "classes = 10\nchannels = [0, 0]"), Contains("names channel 0 twice"));
    CHECK_THAT(refusal(galaxy, images + "classes = 10\ntest_rows = [0, 3]\ntest_split = \"test\""),
               Contains("not both"));
    CHECK_THAT(refusal(galaxy, "samples = \"images\"\naxes = \"NHWC\"\nlabels = \"ans\"\nlead = 37"),
               Contains("may be at most 36"));
    CHECK_THAT(refusal(galaxy, "samples = \"images\"\naxes = \"NHWC\"\nlead = 1"), Contains("goes with labels"));
    CHECK_THAT(refusal(galaxy, images + "classes = 10\nlabel_std = 2"), Contains("numbers to be predicted"));
    CHECK_THAT(refusal(galaxy, images + "classes = 10\nlabel_column = 1"), Contains("label_form = \"column\""));
    CHECK_THAT(refusal(folder / "odd/shape", "samples = \"x\"\naxes = \"CHW\"\nlabels = \"y\""),
               Contains("odd/shape/4.h5") && Contains("(2, 6, 4)") && Contains("(2, 5, 4)"));
    CHECK_THAT(refusal(folder / "odd/type", "samples = \"x\"\naxes = \"CHW\"\nlabels = \"y\""),
               Contains("odd/type/4.h5") && Contains("f32") && Contains("u8"));
    CHECK_THAT(refusal(folder / "odd/steps", "samples = \"x\"\naxes = \"TF\"\nlabels = \"y\""),
               Contains("odd/steps/4.h5") && Contains("(9, 3)"));
    CHECK_THAT(refusal(folder / "odd/indexed.h5", "samples = \"x\"\nlabels = \"y\"\nsplit = \"train\""),
               Contains("indices"));
    CHECK_THAT(refusal(folder / "odd/packed.h5", "samples = \"x\"\nlabels = \"two\""), Contains("no single number"));
    CHECK_THAT(refusal(folder / "odd/packed.h5", "samples = \"x\"\nlabels = \"y\""), Contains("not a finite number"));
    CHECK_THAT(refusal(folder / "odd/packed.h5", "samples = \"x\"\nlabels = \"whole\"\ntransform = \"log1p\""),
               Contains("no ln(1 + value)"));
    CHECK_THAT(refusal(folder / "hep.h5",
                       "samples = \"all_events/hist\"\naxes = \"NHW\"\nlabels = \"all_events/y\"\n"
                       "weights = \"all_events/hist\""),
               Contains("one weight a sample"));
  }
}

}  // namespace echelon
