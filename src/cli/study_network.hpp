// The network before a study: measured over all ranks of the launch, stored with the study, named in its page.
#pragma once

#include <string>

#include "comm/engine.hpp"
#include "comm/transport.hpp"
#include "study/study.hpp"

namespace echelon::cli {

// All ranks; nothing else is under way. `transport`: one of its own over all ranks of the launch. What `echelon bench
// network` measures, into <study>/network_k<ranks>.json, .svg and .txt; prints slow and blocked links. False on every
// rank where a link is blocked: no cell could use it. Where a rank never answered rank 0 ends the world, with 8. One
// rank has no links: true, and nothing is written.
bool check_network(const StudyPlan& study, Engine& launch, Transport& transport);

// A section of study.md on every network that is stored with the study; "" where none is.
std::string network_markdown(const StudyPlan& study);

}  // namespace echelon::cli
