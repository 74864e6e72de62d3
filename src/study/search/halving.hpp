// SPDX-License-Identifier: Apache-2.0
// Successive halving (Jamieson and Talwalkar: Non-stochastic best arm identification and hyperparameter optimization,
// 2016). Every trial trains for a few epochs, the best 1/eta of them for eta times as many, and so on; the last rung is
// the whole run. The next step depends only on the figures so far.
//
//   synchronous    a trial continues once all trials of its rung are known, so the order of runs has no influence
//   asynchronous   a trial continues as soon as it is among the best 1/eta of those known on its rung (ASHA: Li et al.,
//                  A system for massively parallel hyperparameter tuning, 2020). No rank waits, but some trials
//                  continue that later ones would have displaced
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace echelon::inline study {

struct HalvingOptions {
  std::int64_t eta = 3;           // one of this many trials continues
  std::int64_t first_epochs = 1;  // epochs of the first rung
  bool asynchronous = false;
};

// The epochs after which trials are compared: first_epochs, eta times that, .., and last `epochs`, the whole run.
std::vector<std::int64_t> rungs_of(const HalvingOptions& options, std::int64_t epochs);

struct TrialRungs {
  std::vector<double> figures;  // by rung that it completed, to be minimised; not finite: it failed and does not
                                // continue
  bool under_way = false;       // it trains for the next rung
};

struct Promotion {
  enum class What : std::uint8_t { go_on, new_trial, wait, none };
  What what = What::none;
  std::size_t trial = 0;  // go_on: the trial that trains up to the next rung
};

// `trials` are the trials proposed so far, of `planned`. wait: trials in progress may decide; none: nothing is left
// to do.
Promotion next_promotion(const HalvingOptions& options, std::size_t rungs, const std::vector<TrialRungs>& trials,
                         std::size_t planned);

}  // namespace echelon::inline study
