// SPDX-License-Identifier: Apache-2.0
// Records the order in which this rank's asynchronous servers apply updates, in a file of the attempt
// (asynchronous/ledger_file.hpp).
//
// If replicas are asynchronous, every rank has this hook, even one that serves nothing: it drains the strategy at each
// meeting, so that the file holds all updates that came before it. Memory is bounded: kLedgerBlock, and the updates
// between two steps.
#pragma once

#include <optional>
#include <string>

#include "exchange/asynchronous/ledger_file.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline train {

class UpdateOrderHook final : public Hook {
 public:
  // `path` empty: this rank serves nothing. EnvironmentError of the file, here and below.
  UpdateOrderHook(Strategy& strategy, const std::string& path, const LedgerHeader& header);
  ~UpdateOrderHook() override;

  void step_end(const StepRecord& record) override;
  void waiting() override { take(); }

 private:
  void take();

  Strategy& strategy_;
  std::optional<LedgerWriter> file_;
};

}  // namespace echelon::inline train
