// SPDX-License-Identifier: Apache-2.0
// The exchange that a run uses: that of its config, or, with exchange.algorithm = "auto", the choice of autotune.
//
// The choice is saved in every checkpoint and kept by a run that resumes from it while the number of replicas and the
// hosts are the same, so that its sums keep their order; else tuning is repeated, with a line in the log. The
// measurements are in autotune.txt of the attempt.
#pragma once

#include <cstdint>
#include <string>

#include "base/state.hpp"
#include "comm/engine.hpp"
#include "config/schema.hpp"
#include "device/parameter.hpp"
#include "run/choice_text.hpp"
#include "run/resume.hpp"

namespace echelon::inline run {

class Tuning {
 public:
  // Collective over `replicas` and `model`, blocking; returns `config` without messages unless its algorithm is "auto".
  // Rank 0 of `world` writes autotune.txt (EnvironmentError). If the model is split, every part tunes on its own
  // replicas, all at the same time as in training, and all use the choice of the largest part, because parameters that
  // several ranks hold must be summed in one order. `model`: the ranks of one replica; null if the model is not split.
  // Throws as load_checkpoint does.
  ExchangeConfig settle(const ExchangeConfig& config, const Decision& start, Engine& replicas, Engine* model,
                        const Transport& world, int first_channel, const ParameterSet& parameters, DType dtype);
  // Logs the choice and its reasons, on rank 0; no effect if nothing was chosen.
  void log_choice() const;
  // Visits the choice as tensor "exchange/choice", with replicas and hosts; nothing if nothing was chosen.
  void visit_state(StateVisitor& visitor);

 private:
  bool chose_ = false, logs_ = false;
  std::string report_;
  ChoiceText<256> choice_;  // choice_text
  std::int64_t replicas_ = 0, hosts_ = 0;
};

}  // namespace echelon::inline run
