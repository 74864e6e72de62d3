// SPDX-License-Identifier: Apache-2.0
// Data without labels can be used for predictions only.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "checkpoint/trained_data.hpp"
#include "data/loader.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;

enum class Kind { classes, numbers, sequences };

// Writes 7 samples of (1, 1, 3), or 7 sequences of 2 steps of 3 numbers.
void write(const std::string& path, Kind kind, bool labels) {
  constexpr std::int64_t kSamples = 7;
  const bool sequences = kind == Kind::sequences;
  const std::vector<float> values(kSamples * 6, 0.25F), numbers(kSamples * 2, 0.5F);
  const std::vector<std::int32_t> classes(kSamples, 1), lengths(kSamples, 2);
  h5::Writer writer(path);
  if (sequences) {
    writer.attribute("kind", std::string("sequences"));
    writer.write_all("values", DType::f32, {2 * kSamples, 3}, values.data());
    writer.write_all("lengths", DType::i32, {kSamples}, lengths.data());
  } else {
    writer.write_all("samples", DType::f32, {kSamples, 1, 1, 3}, values.data());
  }
  if (labels && kind == Kind::numbers) writer.write_all("labels", DType::f32, {kSamples, 2}, numbers.data());
  if (labels && kind != Kind::numbers) {
    writer.attribute("classes", std::int64_t{3});
    writer.write_all("labels", DType::i32, {kSamples}, classes.data());
  }
  writer.publish();
}

}  // namespace

TEST_CASE("data without labels takes their form from the training data, and counts none of them", "[data]") {
  const test::Folder folder;
  for (const Kind kind : {Kind::classes, Kind::numbers, Kind::sequences}) {
    INFO(static_cast<int>(kind));
    const std::string with = folder / "with.h5", without = folder / "without.h5";
    write(with, kind, true);
    write(without, kind, false);
    const Dataset trained = open_dataset(with);
    CHECK_THROWS_AS(open_dataset(without), DataError);
    CHECK_THROWS_WITH(open_dataset(without),
                      Contains("without.h5: dataset 'labels' is missing") && Contains("predict"));
    Dataset data = open_dataset(without, 0, Labels::optional);
    CHECK_FALSE(data.labelled);
    CHECK(open_dataset(with, 0, Labels::optional).labelled);
    see_as_trained(data, trained_data_of(trained), "checkpoint");
    CHECK(data.form() == trained.form());

    DataConfig config;
    config.sharding = Sharding::record;
    config.shuffle = false;
    const SamplePlan plan(plan_request(data, config, {4}, 1));
    Loader loader(data, plan, {});
    const Batch& batch = loader.next();
    const std::int64_t labels = kind == Kind::numbers ? 8 : 4;
    CHECK(batch.weight == 0);
    for (std::int64_t i = 0; i < labels; ++i) {
      CHECK(static_cast<const float*>(batch.weights)[i] == 0);
      CHECK(static_cast<const std::int32_t*>(batch.labels)[i] == 0);  // also as a float
    }
    CHECK(static_cast<const float*>(batch.samples)[11] == 0.25F);
  }
  write(folder / "with.h5", Kind::classes, true);
  write(folder / "without.h5", Kind::classes, false);
  CHECK_THROWS_WITH(open_dataset(folder.path(), 0, Labels::optional),
                    Contains("has no labels, but") && Contains("has some"));
}

}  // namespace echelon
