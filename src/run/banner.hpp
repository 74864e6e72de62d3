// The run banner: model, data, ranks, devices and exchange of a run.
#pragma once

#include <string>
#include <vector>

#include "exchange/strategy.hpp"
#include "run/opened.hpp"

namespace echelon::inline run {

// Logs 10 to 20 lines, each "<label of 10 columns><facts>", then the reports of a chosen split and exchange. On rank 0;
// no effect elsewhere. Costs an estimate of the FLOPs of the graph.
void log_banner(const AttemptContext& context, const Placed& placed, const Agreed& agreed, const Opened& opened,
                const Strategy& strategy);

// The launches that end with the same bits under train.reproducible: "1, 2, 4, .. 8 replicas".
std::string same_bits_text(const Config& config, const Mesh& mesh);

// "0-2: a; 3: b": equal entries of neighbouring ranks together; of one rank its entry alone.
std::string by_rank_text(const std::vector<std::string>& entries);

}  // namespace echelon::inline run
