// SPDX-License-Identifier: Apache-2.0
// The order of arrivals at this rank's asynchronous servers, written into the attempt (asynchronous/ledger_file.hpp).
//
// If replicas meet on call, every rank has this hook, also one that serves nothing: it drains the strategy at each
// meeting, so that the file holds all that came before it. Bounded memory: kLedgerBlock, and what comes between two
// steps.
#pragma once

#include <optional>
#include <string>

#include "exchange/asynchronous/ledger_file.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline train {

class ArrivalsHook final : public Hook {
 public:
  // `path` empty: this rank serves nothing. EnvironmentError of the file, here and below.
  ArrivalsHook(Strategy& strategy, const std::string& path, const LedgerHeader& header);
  ~ArrivalsHook() override;

  void step_end(const StepRecord& record) override;
  void waiting() override { take(); }

 private:
  void take();

  Strategy& strategy_;
  std::optional<LedgerWriter> file_;
};

}  // namespace echelon::inline train
