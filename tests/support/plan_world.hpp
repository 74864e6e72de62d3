// The plans of all ranks, run to the end by one thread on a local world: no scheduler, so a plan that cannot go on is
// seen at once. Every other call has threads that help it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/dtype.hpp"
#include "comm/collective/plan_flows.hpp"
#include "comm/collective/wire_form.hpp"
#include "comm/transport.hpp"

namespace echelon::test {

// buffers[r] is rank r's data, forms[r] what its messages look like (none: values as they are). Returns each rank's
// counters. Throws where no rank can move before all are done.
std::vector<WireCounters> run_plans(const RankPlans& plans, const std::vector<void*>& buffers, DType dtype, int window,
                                    const std::vector<WireForm*>& forms = {});

// The rules of comm/collective/plan.hpp that can be seen without running: throws at the first broken one.
void check_rules(const RankPlans& plans, std::int64_t elems);

}  // namespace echelon::test
