// SPDX-License-Identifier: Apache-2.0
// echelon predict --generate and --beam (text written by a trained model), and BLEU for eval.
#pragma once

#include <string>

#include "cli/on_ranks.hpp"
#include "cli/opened_model.hpp"
#include "cli/options.hpp"

namespace echelon::cli {

int run_generate(const PredictOptions& options);
int run_translate(const PredictOptions& options);

// Returns the line with BLEU that eval prints for pairs of texts. Returns "" for other data, and for models that write
// no text unless --beam asks for it. Collective.
std::string bleu_line(OpenedModel& opened, const PredictOptions& options, const JointRanks& ranks);

}  // namespace echelon::cli
