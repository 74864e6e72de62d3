// SPDX-License-Identifier: Apache-2.0
// A phase of an attempt: its folder and the device of this rank are open, and the exchange is chosen.
#pragma once

#include <memory>

#include "parallel/activation_exchange.hpp"
#include "run/agreed.hpp"
#include "run/layout_choice.hpp"
#include "run/tuning.hpp"

namespace echelon::inline run {

struct Opened {
  int threads = 1;  // of the device
  std::unique_ptr<Device> device;
  LayoutChoice layouts;  // of convolutions on that device
  Provenance provenance;
  Tuning tuning;
  ExchangeConfig exchange;  // that of the config, or the choice of `tuning` if exchange.algorithm = "auto"
  std::unique_ptr<ActivationExchange> activations;
};

// Collective. Writes config.toml of the attempt and starts its status board, both on rank 0. Throws on all ranks:
// ConfigError if the device does not fit the config, EnvironmentError if a file cannot be written, and the errors of
// Tuning::settle.
Opened open_run(AttemptContext& context, Placed& placed, const Agreed& agreed);

}  // namespace echelon::inline run
