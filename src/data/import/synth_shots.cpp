// SPDX-License-Identifier: Apache-2.0
#include "data/import/synth_shots.hpp"

#include <cmath>

#include "base/error.hpp"
#include "base/hash_rng.hpp"

namespace echelon::inline data {
namespace {

constexpr std::int64_t kSignals = 14, kFewestSteps = 60, kStepsDrawn = 241, kWarning = 30;
constexpr double kGrowth = 10, kDecay = 3;  // steps in which a precursor grows, and a burst decays, by a factor of e

class Shots final : public SequenceSource {
 public:
  Shots(std::int64_t samples, std::uint64_t seed) : samples_(samples), draws_(seed, "synth shots") {
    info_.features = kSignals;
    info_.class_names = {"quiet", "disruption ahead"};
    info_.step_labels = true;
  }

  const SequenceInfo& info() const override { return info_; }
  void rewind() override { next_ = 0; }

  bool next(SequenceRecord& record) override {
    if (next_ == samples_) return false;
    const HashRng draws = draws_.at(static_cast<std::uint64_t>(next_++));
    const auto steps = kFewestSteps + static_cast<std::int64_t>(draws.below(0, kStepsDrawn));
    const bool disrupts = draws.uniform(1) < 0.4;
    const auto burst = static_cast<std::int64_t>(draws.below(2, static_cast<std::uint64_t>(steps)));
    std::vector<double> noise(kSignals, 0.0);
    record.values.clear(), record.labels.clear();
    for (std::int64_t t = 0; t < steps; ++t) {
      const HashRng of_step = draws.at(static_cast<std::uint64_t>(3 + t));
      const double left = static_cast<double>(steps - 1 - t), since = static_cast<double>(t - burst);
      const double precursor = disrupts ? 4 * std::exp(-left / kGrowth) : 0;
      const double disturbed = since >= 0 ? 3 * std::exp(-since / kDecay) : 0;
      for (std::int64_t signal = 0; signal < kSignals; ++signal) {
        double& x = noise[static_cast<std::size_t>(signal)];
        x = 0.8 * x + 0.6 * hash_normal(of_step, static_cast<std::uint64_t>(signal));
        const double seen = signal < 3 ? precursor + disturbed : 0;
        record.values.push_back(static_cast<float>(x + seen));
      }
      record.labels.push_back(disrupts && left < kWarning ? 1 : 0);
    }
    return true;
  }

 private:
  std::int64_t samples_, next_ = 0;
  HashRng draws_;
  SequenceInfo info_;
};

}  // namespace

std::unique_ptr<SequenceSource> make_shots(std::int64_t samples, std::uint64_t seed) {
  if (samples < 1) throw ConfigError("--samples must be 1 or more");
  return std::make_unique<Shots>(samples, seed);
}

}  // namespace echelon::inline data
