// SPDX-License-Identifier: Apache-2.0
// Measures the network before a study over all ranks of the launch, stores it with the study and names it in the page.
#pragma once

#include <string>

#include "comm/engine.hpp"
#include "comm/transport.hpp"
#include "study/study.hpp"

namespace echelon::cli {

// Called by all ranks while nothing else runs. `transport`: a separate one over all ranks of the launch. Measures the
// same as `echelon bench network`, writes <study>/network_k<ranks>.json, .svg and .txt, and prints slow and blocked
// links. Returns false on every rank if a link is blocked, because no cell could use it. If a rank never answered, rank
// 0 ends the world with exit code 8. A single rank has no links: returns true and writes nothing.
bool check_network(const StudyPlan& study, Engine& launch, Transport& transport);

// Returns a section of study.md about every network stored with the study; "" if there is none.
std::string network_markdown(const StudyPlan& study);

}  // namespace echelon::cli
