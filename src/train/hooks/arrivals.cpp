// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/arrivals.hpp"

#include "base/log.hpp"
#include "exchange/facets.hpp"

namespace echelon::inline train {

ArrivalsHook::ArrivalsHook(Strategy& strategy, const std::string& path, const LedgerHeader& header)
    : strategy_(strategy) {
  if (!path.empty()) file_.emplace(path, header);
}

// If the run ends with an error, what is recorded helps to repeat it.
ArrivalsHook::~ArrivalsHook() {
  try {
    take();
  } catch (const std::exception& error) {
    log_warning("the order of arrivals is incomplete: {}", error.what());
  }
}

void ArrivalsHook::take() {
  if (file_) file_->add(take_ledgers(strategy_));
}

void ArrivalsHook::step_end(const StepRecord& record) {
  if (record.meets) strategy_.drain();
  take();
  if (record.meets && file_) file_->met(record.call);
}

}  // namespace echelon::inline train
