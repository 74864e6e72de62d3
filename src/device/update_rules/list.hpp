// Every update rule; device bodies and optim/ loop over this list.
#pragma once

#include "device/update_rules/sgd.hpp"

#define ECHELON_UPDATE_RULES(X) X(SgdRule) X(RunningAverageRule)
