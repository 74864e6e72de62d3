// Successive halving (Jamieson and Talwalkar: Non-stochastic best arm identification and hyperparameter optimization,
// 2016): every trial trains for a few epochs, the best 1/eta of them for eta times as many, and so on; the best of all
// for the whole run. What is trained next is a function of the figures so far alone.
//
//   synchronous    a trial goes on once all trials of its rung are known: the same ones in whatever order they ran
//   asynchronous   a trial goes on as soon as it is among the best 1/eta of those known on its rung (ASHA: Li et al.,
//                  A system for massively parallel hyperparameter tuning, 2020); no rank waits, and some trials go on
//                  that later ones would have displaced
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace echelon::inline study {

struct HalvingOptions {
  std::int64_t eta = 3;           // one trial of so many goes on
  std::int64_t first_epochs = 1;  // of the first rung
  bool asynchronous = false;
};

// Epochs after which trials are compared: first_epochs, eta times as many, ..; the last one is `epochs`, the whole run.
std::vector<std::int64_t> rungs_of(const HalvingOptions& options, std::int64_t epochs);

struct TrialRungs {
  std::vector<double> figures;  // by rung that it went through, to be minimised; not finite: it failed, and goes no
                                // further
  bool under_way = false;       // it trains for the rung after these
};

struct Promotion {
  enum class What : std::uint8_t { go_on, new_trial, wait, none };
  What what = What::none;
  std::size_t trial = 0;  // go_on: this one trains up to the next rung
};

// `trials`: proposed so far, of `planned`. wait: what is under way may decide what is next; none: nothing is left.
Promotion next_promotion(const HalvingOptions& options, std::size_t rungs, const std::vector<TrialRungs>& trials,
                         std::size_t planned);

}  // namespace echelon::inline study
