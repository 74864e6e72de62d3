// SPDX-License-Identifier: Apache-2.0
// All update rules; devices and optim/ loop over this list.
#pragma once

#include "device/update_rules/adam.hpp"
#include "device/update_rules/adamw.hpp"
#include "device/update_rules/lamb.hpp"
#include "device/update_rules/lars.hpp"
#include "device/update_rules/rmsprop.hpp"
#include "device/update_rules/sgd.hpp"

#define ECHELON_UPDATE_RULES(X) \
  X(SgdRule)                    \
  X(PlainSgdRule)               \
  X(RunningAverageRule) X(AdamRule) X(AdamWRule) X(RmspropRule) X(LarsRule) X(LambRule) X(DescendRule)
