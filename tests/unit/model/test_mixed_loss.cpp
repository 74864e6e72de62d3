// SPDX-License-Identifier: Apache-2.0
// The loss of samples with two labels is the sum of two losses, and so is its gradient.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/support/random.hpp"
#include "tests/support/trainer.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

Graph classifier(bool mixes, double smoothing) {
  LayerConfig flat, dense;
  flat.type = "flatten";
  dense.type = "dense", dense.units = 5;
  SampleForm form = labelled({2, 3, 3}, 5);
  form.mixes = mixes;
  return build_layers({flat, dense}, form, {"softmax", smoothing});
}

// Gives the labels and weights of `batch` as the second ones.
void load_others(Trainer& trainer, const PlainBatch& batch) {
  Device& device = trainer.arenas().device();
  const std::vector<std::int32_t> labels(batch.labels.begin(), batch.labels.end());
  const Tensor others = trainer.program().input("others"), weights = trainer.program().input("other_weights");
  device.to_device(others.data, labels.data(), others.bytes());
  with_float(weights.dtype, [&]<class T>(T) {
    const std::vector<T> values(batch.weights.begin(), batch.weights.end());
    device.to_device(weights.data, values.data(), weights.bytes());
  });
}

}  // namespace

TEST_CASE("a sample with two labels has the sum of their weighted losses and gradients", "[model][mix]") {
  const double smoothing = GENERATE(0.0, 0.1);
  const std::string device = GENERATE("reference", "onednn");
  const DType dtype = device == "reference" ? DType::f64 : DType::f32;
  const double within = device == "reference" ? 1e-12 : 1e-5;
  const TrainerOptions options{.device = device, .dtype = dtype, .activations = dtype};
  Trainer plain(classifier(false, smoothing), 6, options), mixed(classifier(true, smoothing), 6, options);
  PlainBatch first = hashed_batch(labelled({2, 3, 3}, 5), 0, 6, test_seed()), second = first;
  for (std::size_t i = 0; i < 6; ++i) {
    first.weights[i] = 0.1 * static_cast<double>(i);
    second.weights[i] = 1 - first.weights[i];
    second.labels[i] = static_cast<double>((i * 3 + 1) % 5);
  }
  const auto sums_of = [](Trainer& trainer, const PlainBatch& batch) {
    trainer.program().reset_losses();
    trainer.gradients(batch, 1, true);
    return trainer.program().losses();
  };
  std::vector<double> expected;
  LossSums loss{};
  for (const PlainBatch& batch : {first, second}) {
    const LossSums sums = sums_of(plain, batch);
    loss.loss += sums.loss, loss.correct += sums.correct, loss.weight += sums.weight;
    const std::vector<double> gradients = plain.read_gradients();
    expected.resize(gradients.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) expected[i] += gradients[i];
  }
  load_others(mixed, second);
  const LossSums sums = sums_of(mixed, first);
  CHECK(sums.loss == Approx(loss.loss).epsilon(within));
  CHECK(sums.weight == Approx(6).epsilon(within));
  CHECK(sums.correct == Approx(loss.correct).epsilon(within).margin(within));
  CHECK(relative_distance(mixed.read_gradients(), expected) < within);

  // Evaluation reads the first label alone.
  TrainerOptions still = options;
  still.training = false;
  Trainer evaluated(classifier(true, smoothing), 6, still), alone(classifier(false, smoothing), 6, still);
  CHECK(evaluated.loss(first) == alone.loss(first));
}
