// SPDX-License-Identifier: Apache-2.0
// Groups attempts into experiments and pairs the experiments of two sides.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "report/record.hpp"

namespace echelon::inline report {

// Attempts whose keys and facts are equal, not counting the seed, the name, [run] and [checkpoint].
struct Experiment {
  Config config;
  std::vector<const RunRecord*> attempts;
  const RunRecord& first() const { return *attempts.front(); }
};

struct ExperimentPair {
  Experiment base, fresh;
  std::vector<std::string> allowed;  // the differences between the two: "threads: 1, then 2"
};

struct PairedExperiments {
  std::vector<ExperimentPair> pairs;    // in the order of `base`
  std::vector<std::string> unanswered;  // titles of experiments that only `fresh` has
};

// `base` and `fresh` are the attempts that count; they must outlive the result. Every experiment of `base` needs a
// counterpart: otherwise throws ConfigError with the differences from the nearest one. Throws ConfigError too for a
// name in `allowed` that is neither a key, a section nor a fact, and DataError if an attempt has no config.toml.
PairedExperiments pair_experiments(const std::vector<const RunRecord*>& base,
                                   const std::vector<const RunRecord*>& fresh, const std::vector<std::string>& allowed);

// "lenet: data 2, synchronous, ring, 2 ranks on 1 host, global batch 64"
std::string title_of_run(const RunRecord& run);

}  // namespace echelon::inline report
