// SPDX-License-Identifier: Apache-2.0
#include "inference/sharpness.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/hash_rng.hpp"
#include "model/program.hpp"
#include "train/run_plan.hpp"
#include "train/set_inputs.hpp"

namespace echelon::inline inference {
namespace {

// The loss and its gradient over a fixed set of batches.
class Landscape {
 public:
  Landscape(LoadedModel& model, const Dataset& data, const Config& config, std::int64_t samples)
      : model_(model),
        data_(data),
        plan_(evaluation_plan(data, config, 1)),
        passes_(std::max<std::int64_t>(1, std::min(samples, data.samples()) / plan_.batch(0))),
        program_(model.graph(), model.arenas(), {.batch = plan_.batch(0), .training = true}),
        loading_(evaluation_loading(config, model.arenas().dtype())) {}

  std::int64_t samples() const { return passes_ * plan_.batch(0); }
  // Returns the mean loss at the current weights, and puts the gradient into the arena.
  double loss() {
    Loader loader(data_, plan_, loading_);
    program_.reset_losses();
    program_.reset_states();
    for (std::int64_t pass = 0; pass < passes_; ++pass) {
      const Batch& batch = loader.next();
      set_inputs(model_.device(), program_, batch);
      begin_series(program_, batch);
      PassScalars scalars;
      scalars.key = HashRng(1, "sharpness").at(static_cast<std::uint64_t>(pass)).key();
      scalars.first = pass == 0;
      program_.forward(scalars);
      program_.backward(scalars);
    }
    const LossSums sums = program_.losses();
    return sums.loss / sums.weight;
  }

 private:
  LoadedModel& model_;
  const Dataset& data_;
  SamplePlan plan_;
  std::int64_t passes_;
  Program program_;
  LoaderOptions loading_;
};

template <class T>
std::vector<T> fetch(Arenas& arenas, const void* from) {
  std::vector<T> values(static_cast<std::size_t>(arenas.elems()));
  arenas.device().to_host(values.data(), from, values.size() * sizeof(T));
  return values;
}

template <class T>
void put(Arenas& arenas, const std::vector<T>& weights) {
  arenas.device().to_device(arenas.weights_at(0), weights.data(), weights.size() * sizeof(T));
  arenas.touch();
}

// Takes one step uphill inside the box around `centre`; running averages do not change.
template <class T>
void climb(const ParameterSet& parameters, const std::vector<T>& centre, const std::vector<T>& gradient, double epsilon,
           std::vector<T>& at) {
  for (const Parameter& p : parameters.all()) {
    if (p.kind != ParameterKind::weight) continue;
    for (std::int64_t e = p.begin; e < p.end(); ++e) {
      const auto i = static_cast<std::size_t>(e);
      const double middle = static_cast<double>(centre[i]), reach = epsilon * (std::fabs(middle) + 1);
      const double slope = static_cast<double>(gradient[i]);
      const double next = static_cast<double>(at[i]) + (slope > 0 ? 0.2 : slope < 0 ? -0.2 : 0.0) * reach;
      at[i] = static_cast<T>(std::clamp(next, middle - reach, middle + reach));
    }
  }
}

}  // namespace

Sharpness measure_sharpness(LoadedModel& model, const Dataset& data, const Config& config,
                            const SharpnessOptions& options) {
  Landscape landscape(model, data, config, options.samples);
  Arenas& arenas = model.arenas();
  return with_float(arenas.dtype(), [&]<class T>(T) {
    const std::vector<T> centre = fetch<T>(arenas, arenas.weights_at(0));
    std::vector<T> at = centre;
    Sharpness result{.loss = landscape.loss(), .steps = options.steps, .samples = landscape.samples()};
    result.highest = result.loss;
    for (int step = 0; step < options.steps; ++step) {
      climb(arenas.parameters(), centre, fetch<T>(arenas, arenas.gradients_at(0)), options.epsilon, at);
      put(arenas, at);
      result.highest = std::max(result.highest, landscape.loss());
    }
    put(arenas, centre);
    result.value = 100 * (result.highest - result.loss) / (1 + result.loss);
    return result;
  });
}

}  // namespace echelon::inline inference
