// SPDX-License-Identifier: Apache-2.0
// The layouts of convolutions that a run uses: those of the device's rule, or, with device.measure_layouts, the choice
// of rank 0 by time.
//
// The choice is saved in every checkpoint and kept by a run that resumes from it on the same kind of processor, so that
// sums keep their order; else it is measured again. A split model keeps the rule, because its ranks have different
// parts of it.
#pragma once

#include <cstdint>
#include <string>

#include "base/state.hpp"
#include "device/conv_table.hpp"
#include "run/agreed.hpp"
#include "run/choice_text.hpp"

namespace echelon::inline run {

class LayoutChoice {
 public:
  // Collective. Throws as measure_layouts and load_checkpoint do, on all ranks.
  ConvTable settle(AttemptContext& context, const Agreed& agreed, bool split);
  // Logs the choice on rank 0; no effect if nothing was measured.
  void log_choice() const;
  // Visits the choice as tensor "device/layouts", with its processor; nothing if nothing was measured.
  void visit_state(StateVisitor& visitor);

 private:
  bool chose_ = false, logs_ = false;
  std::string report_;
  ChoiceText<8192> choice_;     // ConvTable::text
  std::int64_t processor_ = 0;  // a mark of its description
};

}  // namespace echelon::inline run
