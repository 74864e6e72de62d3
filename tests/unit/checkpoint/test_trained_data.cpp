// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "checkpoint/trained_data.hpp"

namespace echelon {
namespace {

Dataset images() {
  Dataset data;
  data.shards = {{.path = "train/shard-0.h5", .samples = 300, .bytes = 19200}};
  data.sample_shape = {3, 8, 8};
  data.classes = 2;
  data.class_names = {"cat", "dog"};
  data.mean = {0.1, 1.0 / 3, 0.7};
  data.std = {0.2, 0.3, 1e-7 / 3};
  return data;
}

TEST_CASE("what a checkpoint holds of its training data comes back to the bit", "[train]") {
  const TrainedData data = trained_data_of(images());
  const TrainedData back = read_trained_data(to_text(data), "file");
  CHECK(back.mean == data.mean);
  CHECK(back.std == data.std);
  CHECK(back.class_names == data.class_names);
  CHECK(back.sample_shape == std::vector<std::int64_t>{3, 8, 8});
  CHECK(to_text(back) == to_text(data));
  CHECK_THROWS_AS(read_trained_data("{\"kind\": 3", "file"), DataError);
  CHECK_THROWS_AS(read_trained_data("{\"kind\": 3}", "file"), DataError);
}

TEST_CASE("data are seen as the training data were, which need not be there", "[train]") {
  const TrainedData trained = trained_data_of(images());
  Dataset test = images();
  test.mean = {0, 0, 0};
  test.std = {1, 1, 1};
  test.class_names.clear();
  see_as_trained(test, trained, "step-1.h5");
  CHECK(test.mean == images().mean);
  CHECK(test.std == images().std);
  CHECK(test.class_names == images().class_names);
  SECTION("another shape") { test.sample_shape = {3, 9, 8}; }
  SECTION("other classes") { test.classes = 3; }
  SECTION("another kind") { test.kind = DataKind::sequences; }
  SECTION("the same classes in another order") { test.class_names = {"dog", "cat"}; }
  SECTION("a vocabulary") { test.vocabulary = Vocabulary({"a", "b"}); }
  CHECK_THROWS_AS(see_as_trained(test, trained, "step-1.h5"), DataError);
  CHECK_THROWS_WITH(see_as_trained(test, trained, "step-1.h5"), Catch::Contains("step-1.h5"));
}

TEST_CASE("data that were moved are the same data, other data are not", "[train]") {
  const std::string same = trained_data_of(images()).fingerprint;
  Dataset moved = images();
  moved.shards[0].path = "/elsewhere/shard-0.h5";
  CHECK(trained_data_of(moved).fingerprint == same);
  Dataset other = images();
  other.shards[0].samples = 301;
  CHECK(trained_data_of(other).fingerprint != same);
  other = images();
  other.mean[0] = 0.2;
  CHECK(trained_data_of(other).fingerprint != same);
}

}  // namespace
}  // namespace echelon
