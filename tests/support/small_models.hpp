// SPDX-License-Identifier: Apache-2.0
// The models on which a strategy has to equal synchronous training.
#pragma once

#include <vector>

#include "tests/support/replicas.hpp"

namespace echelon::test {

// Every model of sequences in the zoo, CNNs, and nets with batch norm and with dropout.
std::vector<NamedGraph> small_models();

}  // namespace echelon::test
