// SPDX-License-Identifier: Apache-2.0
#include "tests/run/compare.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/support/random.hpp"

namespace echelon::test {
namespace {

// Returns the numbers of a run's records of this type that do not depend on time, a row per record.
std::vector<std::vector<double>> figures_of(const TrainedRun& run, const char* type) {
  std::vector<std::vector<double>> rows;
  for (const nlohmann::json& record : run.trial.metrics(run.name)) {
    if (record["type"] != type) continue;
    rows.emplace_back();
    for (const char* key : {"step", "epoch", "lr", "loss", "gradient_norm", "train_loss", "test_loss", "test_accuracy"})
      rows.back().push_back(record.contains(key) && !record[key].is_null() ? record[key].get<double>() : -1);
  }
  return rows;
}

void check_records(const TrainedRun& run, const TrainedRun& expected, const char* type, std::size_t count) {
  if (count == 0) return;
  const auto figures = figures_of(run, type);
  CHECK(figures.size() == count);
  CHECK((figures == figures_of(expected, type)));
}

// Counts the values that differ; zeros of either sign are equal.
std::size_t count_different(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::max(a.size(), b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
  return count;
}

}  // namespace

std::vector<double> TrainedRun::values(const std::string& prefix) const { return last_values(trial, prefix, name); }

TrainedRun train_run(const Trial& trial, const std::string& name, const std::vector<Leg>& legs, const Sets& all) {
  TrainedRun run{trial, name, {}};
  for (const Leg& leg : legs) {
    const Outcome outcome = trial.train(leg.ranks, with(with({"name=" + name}, all), leg.sets));
    INFO(name << " on " << leg.ranks << " ranks\n" << outcome.out << outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK_THAT(outcome.out, Catch::Contains(leg.says));
    run.out = outcome.out;
  }
  return run;
}

void check_equal(const TrainedRun& run, const TrainedRun& expected, const Compared& compared) {
  INFO(run.name << " compared with " << expected.name);
  const std::vector<double> values = run.values(compared.part), others = expected.values(compared.part);
  CHECK(!values.empty());
  if (compared.within > 0)
    CHECK(relative_distance(values, others) < compared.within);
  else
    CHECK(count_different(values, others) == 0);
  if (compared.evaluation) {
    const nlohmann::json summary = run.summary(), other = expected.summary();
    CHECK(summary["test_accuracy"] == other["test_accuracy"]);
    CHECK(summary["test_loss"].get<double>() ==
          Approx(other["test_loss"].get<double>()).epsilon(compared.within > 0 ? 1e-9 : 0));
  }
  check_records(run, expected, "step", compared.steps);
  check_records(run, expected, "epoch", compared.epochs);
}

}  // namespace echelon::test
