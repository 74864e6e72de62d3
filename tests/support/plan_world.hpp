// SPDX-License-Identifier: Apache-2.0
// Runs the plans of all ranks to the end in one thread on a local world. There is no scheduler, so a plan that cannot
// go on is seen at once. Helper threads take part in every other call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/dtype.hpp"
#include "comm/collective/plan_flows.hpp"
#include "comm/collective/wire_form.hpp"
#include "comm/transport.hpp"

namespace echelon::test {

// buffers[r] is rank r's data, forms[r] the form of its messages (none: plain values). Returns each rank's counters.
// Throws where no rank can move before all are done.
std::vector<WireCounters> run_plans(const RankPlans& plans, const std::vector<void*>& buffers, DType dtype, int window,
                                    const std::vector<WireForm*>& forms = {});

// Checks the rules of comm/collective/plan.hpp that show without running; throws at the first broken one.
void check_rules(const RankPlans& plans, std::int64_t elems);

}  // namespace echelon::test
