// echelon predict --generate and --beam: text written by a trained model; BLEU of eval.
#pragma once

#include <string>

#include "cli/on_ranks.hpp"
#include "cli/opened_model.hpp"
#include "cli/options.hpp"

namespace echelon::cli {

int run_generate(const PredictOptions& options);
int run_translate(const PredictOptions& options);

// The line with BLEU that eval prints of pairs of texts; "" for other data, and for models that write no text unless
// --beam asks for it. Collective.
std::string bleu_line(OpenedModel& opened, const PredictOptions& options, const JointRanks& ranks);

}  // namespace echelon::cli
