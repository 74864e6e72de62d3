// SPDX-License-Identifier: Apache-2.0
#include "data/reading_rate.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "data/loader.hpp"
#include "data/sample_plan.hpp"

namespace echelon::inline data {

double reading_rate(const Dataset& set) {
  constexpr double kMost_s = 1;
  const SamplePlan plan(plan_request(set, DataConfig{}, {std::min<std::int64_t>(64, set.samples())}, 1));
  const double begun_s = now_s();
  Loader loader(set, plan, {.end_epoch = 1});
  std::int64_t samples = 0;
  for (std::int64_t step = 0; step < plan.steps_in(0) && now_s() - begun_s < kMost_s; ++step)
    samples += loader.next().n;
  return static_cast<double>(samples) / (now_s() - begun_s);
}

}  // namespace echelon::inline data
