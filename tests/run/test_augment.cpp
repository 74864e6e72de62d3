// Images moved and mirrored in training, whatever the number of replicas.
#include <catch2/catch.hpp>

#include "tests/run/trial.hpp"
#include "tests/support/random.hpp"

namespace echelon {

TEST_CASE("images moved and mirrored: k replicas are one replica", "[run]") {
  const test::Trial trial;
  const test::Sets sets = {
      "device.kind=reference",       "device.dtype=f64",       "train.steps=6", "evaluate.every_epochs=0",
      "data.augment_crop_padding=2", "data.augment_flip=true", "data.test="};
  const auto train = [&](int ranks, const std::string& name, const std::string& more) {
    test::Sets all = sets;
    all.push_back("name=" + name);
    all.push_back(more);
    const test::Outcome outcome = trial.train(ranks, all);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == 0);
    return test::last_weights(trial, name);
  };
  const std::vector<double> one = train(1, "one", "seed=7");
  CHECK(test::relative_distance(train(2, "two", "seed=7"), one) < 1e-8);
  CHECK(test::relative_distance(train(4, "four", "seed=7"), one) < 1e-8);
  CHECK(test::relative_distance(train(1, "still", "data.augment_flip=false"), one) > 1e-4);
}

}  // namespace echelon
