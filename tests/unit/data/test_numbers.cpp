// SPDX-License-Identifier: Apache-2.0
// Labels that are regression targets: reading, batching and weighting.
#include <catch2/catch.hpp>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "data/describe.hpp"
#include "data/loader.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;

float number_of(std::int64_t id, std::int64_t k) { return static_cast<float>(id) * 0.5f - static_cast<float>(k); }

// Writes `samples` samples of (1, 1, 3) with labels (N, K), or (N) if K is 0.
void write_numbers(const std::string& path, std::int64_t samples, std::int64_t K, bool classes = false,
                   std::optional<float> last = std::nullopt) {
  std::vector<float> values(static_cast<std::size_t>(samples * 3), 0.25f), labels;
  for (std::int64_t id = 0; id < samples; ++id)
    for (std::int64_t k = 0; k < std::max<std::int64_t>(1, K); ++k) labels.push_back(number_of(id, k));
  if (last) labels.back() = *last;
  h5::Writer writer(path);
  if (classes) writer.attribute("classes", std::int64_t{3});
  writer.write_all("samples", DType::f32, {samples, 1, 1, 3}, values.data());
  writer.write_all("labels", DType::f32, K > 0 ? Shape{samples, K} : Shape{samples}, labels.data());
  writer.publish();
}

}  // namespace

TEST_CASE("regression targets come in the model's type, as many a sample as they are, each with its weight", "[data]") {
  const test::Folder folder;
  for (std::int64_t K : {0, 1, 2}) {
    const std::string path = folder / ("numbers" + std::to_string(K) + ".h5");
    write_numbers(path, 7, K);
    const Dataset dataset = open_dataset(path);
    const std::int64_t each = std::max<std::int64_t>(1, K);
    CHECK(dataset.form() == SampleForm{.shape = {1, 1, 3}, .label = K > 0 ? Shape{K} : Shape{}, .classes = 0});
    CHECK_THAT(content_text(dataset), Contains(K == 2 ? "2 regression targets" : "1 regression target"));
    DataConfig config;
    config.sharding = Sharding::record;
    config.ragged = Ragged::zero_weight;
    config.shuffle = false;
    const SamplePlan plan(plan_request(dataset, config, {4}, 1));
    CHECK(plan.weight(0, 1) == static_cast<double>(3 * each));
    for (DType dtype : {DType::f32, DType::f64}) {
      LoaderOptions options;
      options.dtype = dtype;
      Loader loader(dataset, plan, options);
      for (std::int64_t step = 0; step < 2; ++step) {
        const Batch& batch = loader.next();
        CHECK(batch.weight == plan.weight(0, step));
        with_float(dtype, [&]<class T>(T) {
          for (std::int64_t row = 0; row < 4; ++row)
            for (std::int64_t k = 0; k < each; ++k) {
              const bool counts = step * 4 + row < 7;
              if (counts)
                CHECK(static_cast<const T*>(batch.labels)[row * each + k] ==
                      static_cast<T>(number_of(step * 4 + row, k)));
              CHECK(static_cast<const T*>(batch.weights)[row * each + k] == static_cast<T>(counts ? 1 : 0));
            }
        });
      }
    }
  }
}

TEST_CASE("targets that are not finite, and classes beside targets, are refused", "[data]") {
  const test::Folder folder;
  write_numbers(folder / "both.h5", 3, 0, true);
  CHECK_THROWS_WITH(open_dataset(folder / "both.h5"), Contains("attribute 'classes'"));
  write_numbers(folder / "nan.h5", 3, 2, false, std::numeric_limits<float>::quiet_NaN());
  const Dataset dataset = open_dataset(folder / "nan.h5");
  const SamplePlan plan(plan_request(dataset, {}, {3}, 1));
  Loader loader(dataset, plan, {});
  CHECK_THROWS_WITH(loader.next(), Contains("record 2") && Contains("not a finite number"));
}

TEST_CASE("the loss bce takes targets from 0 to 1, and others are named with file and record", "[data]") {
  for (const auto& [last, refused] : std::vector<std::pair<float, std::string>>{
           {1.0f, ""}, {0.0f, ""}, {255.0f, "has the label 255"}, {-1.0f, "has the label -1"}, {1.001f, "1.001"}}) {
    const test::Folder folder;
    write_numbers(folder / "targets.h5", 3, 0, false, last);
    Dataset dataset = open_dataset(folder / "targets.h5");
    const SamplePlan plan(plan_request(dataset, {}, {3}, 1));
    (void)Loader(dataset, plan, {}).next();  // suits any loss
    ModelConfig model;
    model.loss = "mse";
    demand_labels(dataset, model);
    (void)Loader(dataset, plan, {}).next();
    model.loss = "bce";
    demand_labels(dataset, model);
    Loader loader(dataset, plan, {});
    if (refused.empty())
      (void)loader.next();
    else
      CHECK_THROWS_WITH(loader.next(), Contains("targets.h5: record 2") && Contains(refused) && Contains("\"mse\""));
  }
}

}  // namespace echelon
