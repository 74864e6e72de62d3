// SPDX-License-Identifier: Apache-2.0
#include "report/field.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.hpp"

namespace echelon::inline report {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

bool equally_long(const std::vector<const Setting*>& members, const Setting& base) {
  const double first = base.trained.median;
  return std::all_of(members.begin(), members.end(), [&](const Setting* s) {
    return s->finished() == 0 || (s->trained.low == first && s->trained.high == first);
  });
}

}  // namespace

Field::Field(const Evidence& all, const std::string& name) : evidence(all), environment(name) {
  for (const Setting& s : all.settings)
    if (s.environment == name) members.push_back(&s);
  base = &at(all.baseline_of(*members.front()));
  by_time =
      all.has_goal() && std::any_of(members.begin(), members.end(), [](const Setting* s) { return s->reached > 0; });
  equal_runs = equally_long(members, *base);
  samples = equal_runs ? base->trained.median : all.common_point(&Evaluation::samples, name);
  const bool deadline = all.goal.deadline_h > 0;
  seconds = deadline ? 3600 * all.goal.deadline_h : all.common_point(&Evaluation::seconds, name);

  const bool more = goal_rises(shown()), whole = equal_runs, to_goal = by_time;
  const double point = samples, moment = seconds;
  rate = {.name = "samples/s", .value = [](const Setting&, const Repetition& r) { return r.samples_per_s; }};
  speed = rate;
  const auto seconds_to = [](const Repetition& r) { return r.reached() ? r.seconds_to_target : kNever; };
  if (by_time)
    speed = {.name = "seconds to the target",
             .more_is_better = false,
             .value = [=](const Setting&, const Repetition& r) { return seconds_to(r); }};
  samples_to_goal = {
      .name = "samples to the target", .more_is_better = false, .value = [](const Setting&, const Repetition& r) {
        return r.reached() ? r.samples_to_target : kNever;
      }};
  metric = {.name = goal_metric_name(shown()),
            .ratio = false,
            .more_is_better = more,
            .tested = Tested::figure,
            .value = [&all, whole, point](const Setting&, const Repetition& r) {
              return whole ? all.final_figure(r) : all.figure_at(r, &Evaluation::samples, point);
            }};
  metric_in_time = metric;
  metric_in_time.value = [&all, moment](const Setting&, const Repetition& r) {
    return all.figure_at(r, &Evaluation::seconds, moment);
  };
  const bool priced = has_price(all.cost);
  cost = {.name = priced ? "price" : "node-hours",
          .more_is_better = false,
          .value = [=, &all](const Setting& s, const Repetition& r) {
            const double spent = to_goal ? seconds_to(r) : whole ? r.wall_s : Evidence::seconds_after(r, point);
            return priced ? all.price(s, spent) : all.node_hours(s, spent);
          }};
  margin = margin_of(all, *base, metric);
  has_metric = std::isfinite(margin.value);
}

std::string Field::metric_name() const { return replaced(goal_metric_name(shown()), "_", " "); }

}  // namespace echelon::inline report
