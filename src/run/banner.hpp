// SPDX-License-Identifier: Apache-2.0
// The run banner: model, data, ranks, devices and exchange of a run.
#pragma once

#include <string>
#include <vector>

#include "run/built.hpp"

namespace echelon::inline run {

// Logs 10 to 20 lines, each "<label of 10 columns><facts>", then the reports of a chosen split and exchange. On rank 0;
// no effect elsewhere. Costs an estimate of the FLOPs of the graph.
void log_banner(const Phases& p);

// The launches that end with the same bits under train.reproducible: "1, 2, 4, .. 8 replicas".
std::string same_bits_text(const Config& config, const Mesh& mesh);

// "0-2: a; 3: b": equal entries of neighbouring ranks are joined. A single rank gives its entry without a number.
std::string by_rank_text(const std::vector<std::string>& entries);

}  // namespace echelon::inline run
