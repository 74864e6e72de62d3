// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/update_order.hpp"

#include "base/log.hpp"
#include "exchange/facets.hpp"

namespace echelon::inline train {

UpdateOrderHook::UpdateOrderHook(Strategy& strategy, const std::string& path, const LedgerHeader& header)
    : strategy_(strategy) {
  if (!path.empty()) file_.emplace(path, header);
}

// If the run ends with an error, what is recorded helps to repeat it.
UpdateOrderHook::~UpdateOrderHook() {
  try {
    take();
  } catch (const std::exception& error) {
    log_warning("the order of arrivals is incomplete: {}", error.what());
  }
}

void UpdateOrderHook::take() {
  if (file_) file_->add(take_ledgers(strategy_));
}

void UpdateOrderHook::step_end(const StepRecord& record) {
  if (record.meets) strategy_.drain();
  take();
  if (record.meets && file_) file_->met(record.call);
}

}  // namespace echelon::inline train
