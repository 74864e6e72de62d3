// SPDX-License-Identifier: Apache-2.0
// `predict --layer` writes the outputs of layers of a trained model.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.hpp"
#include "h5/file.hpp"
#include "tests/run/trial.hpp"

namespace echelon::test {

TEST_CASE("predict writes what layers compute, in the dtype of the weights, on any device and ranks", "[predict]") {
  const Trial trial;
  REQUIRE(trial.train(0, {"train.steps=3"}).code == kExitOk);
  REQUIRE(trial.train(0, {"train.steps=3", "name=exact", "device.kind=reference", "device.dtype=f64"}).code == kExitOk);
  const std::vector<std::string> layers = {"conv1", "relu1", "dense1"};
  const auto predict = [&](const std::string& name, int ranks, const std::string& out,
                           const std::vector<std::string>& more) {
    std::vector<std::string> words = {"predict", trial.run(name), "test", "--out", out, "--outputs", "--batch", "64"};
    for (const std::string& layer : layers) words.insert(words.end(), {"--layer", layer});
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = trial.echelon(words, ranks);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    return h5::Reader(trial / out);
  };
  const auto values = [](const h5::Reader& reader, const std::string& name) {
    std::vector<double> all(static_cast<std::size_t>(reader.info(name).shape.elems()));
    reader.read_all(name, all.data(), DType::f64);
    return all;
  };
  const h5::Reader fast = predict("trial", 0, "fast.h5", {}),
                   plain = predict("trial", 0, "plain.h5", {"--device", "reference"}),
                   shared = predict("trial", 3, "shared.h5", {}), exact = predict("exact", 0, "exact.h5", {});
  CHECK(fast.info("layers/conv1").shape == Shape{201, 16, 8, 8});
  for (const std::string& name :
       {std::string("layers/conv1"), std::string("layers/relu1"), std::string("layers/dense1")}) {
    CAPTURE(name);
    CHECK(fast.info(name).dtype == DType::f32);
    CHECK(exact.info(name).dtype == DType::f64);
    const std::vector<double> one = values(fast, name), other = values(plain, name);
    CHECK(values(shared, name) == one);
    const double most = std::fabs(
        *std::max_element(other.begin(), other.end(), [](double a, double b) { return std::fabs(a) < std::fabs(b); }));
    for (std::size_t i = 0; i < one.size(); ++i) REQUIRE(std::fabs(one[i] - other[i]) <= 1e-5 * most);
  }
  CHECK(exact.info("outputs").dtype == DType::f64);
  const std::vector<double> conv = values(exact, "layers/conv1"), relu = values(exact, "layers/relu1");
  for (std::size_t i = 0; i < conv.size(); ++i) REQUIRE(relu[i] == std::max(0.0, conv[i]));
  CHECK(*std::min_element(conv.begin(), conv.end()) < 0);

  const Outcome unknown = trial.echelon({"predict", trial.run(), "test", "--out", "u.h5", "--layer", "cnov1"}, 2);
  CHECK(unknown.code == kExitConfig);
  CHECK_THAT(unknown.err, Catch::Contains("unknown layer 'cnov1' (did you mean 'conv1'?)"));
  const Outcome drawn = trial.echelon({"predict", trial.run(), "test", "--out", "u.h5", "--overlays", "2"});
  CHECK(drawn.code == kExitConfig);
  CHECK_THAT(drawn.err, Catch::Contains("has no class for every pixel"));
}

}  // namespace echelon::test
