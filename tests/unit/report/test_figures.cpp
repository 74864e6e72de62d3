// SPDX-License-Identifier: Apache-2.0
#include "report/figures.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "report/figures_json.hpp"
#include "report/figures_list.hpp"

namespace echelon {
namespace {

using figures::Is;
using nlohmann::json;

// Sets every member to a value that no other member has.
template <class Figures>
Figures filled() {
  Figures f;
  int n = 0;
  each(f, [&]<class T>(const Figure& figure, T& value) {
    const double x = ++n + 0.5;
    if constexpr (Is<T, double>) value = x;
    if constexpr (Is<T, int> || Is<T, std::int64_t>) value = n;
    if constexpr (Is<T, bool>) value = true;
    if constexpr (Is<T, std::string>) value = figure.name;
    if constexpr (Is<T, Quartiles>) value = {x, x - 1, x + 1};
    if constexpr (Is<T, StepTimes>) value = {100, x, 2, 3, 4, 5, 6, 7};
    if constexpr (Is<T, MeshShape>) value = {2, 3, 4, 5};
    if constexpr (Is<T, std::vector<double>> || Is<T, std::vector<std::int64_t>>)
      value = T(1, static_cast<typename T::value_type>(n));
    if constexpr (Is<T, std::vector<std::string>>) value = {figure.name};
    if constexpr (Is<T, std::optional<bool>>) value = true;
    if constexpr (Is<T, std::optional<Quartiles>>) value = {x, x - 1, x + 1};
    if constexpr (Is<T, std::optional<RankTimes>>) value = RankTimes{{x}, {2}, {3}, {4}};
    if constexpr (Is<T, std::optional<StalenessFigures>>) value = StalenessFigures{{x}, {2}, {3}, {4}, {5}};
    if constexpr (Is<T, std::optional<CodecFigures>>) value = {x, 2, 3, 4, 5};
  });
  return f;
}

template <class Figures>
void check_round_trip() {
  const auto written = to_json(filled<Figures>());
  Figures read;
  take_figures(json::parse(written.dump()), read);
  CHECK(to_json(read).dump() == written.dump());
  std::set<std::string> names;
  each(read, [&](const Figure& figure, auto&) {
    INFO(figure.name);
    CHECK(names.insert(figure.name).second);
    CHECK(written.contains(figure.name));
    CHECK(!written[figure.name].is_null());
  });
}

}  // namespace

TEST_CASE("every figure that is written is read back", "[report][figures]") {
  check_round_trip<StepFigures>();
  check_round_trip<EpochFigures>();
  check_round_trip<RunFigures>();
}

TEST_CASE("unknown figures are null, or left out", "[report][figures]") {
  StepFigures step;
  const auto row = to_json(step);
  CHECK(row["loss"].is_null());
  for (const char* name : {"tokens", "codec", "skipped", "ranks_before", "exchange_exposed_s"})
    CHECK(!row.contains(name));
  step.loss = std::nan("");
  step.skipped = false;
  CHECK(to_json(step)["loss"].is_null());
  CHECK(to_json(step)["skipped"].is_boolean());
  RunFigures read;
  read.test_loss = 3;
  take_figures(json::parse(R"({"test_loss": null})"), read);
  CHECK(read.test_loss == 3);
}

TEST_CASE("a record of what was called lenet is one of cnn_32_64, and LeNet-5 is lenet", "[report][figures]") {
  for (const auto& [parameters, name] : {std::pair(421642, "cnn_32_64"), std::pair(61706, "lenet")}) {
    RunFigures read;
    take_figures(json{{"model", "lenet"}, {"parameters", parameters}}, read);
    CHECK(read.model == name);
  }
}

TEST_CASE("figures of ranks are aggregated as the list of figures says", "[report][figures]") {
  std::vector<double> all;
  RunFigures run;
  for (int rank = 0; rank < 3; ++rank) {
    RunFigures own = filled<RunFigures>();
    own.wire_bytes_per_step = 10 * (rank + 1);
    own.formula_bytes_per_step = rank == 1 ? 60 : 0;
    own.exchange_hidden_s = own.time_split_s.forward_s = rank;
    own.start_to_first_step_s = 5 - rank;
    own.peak_rss_mb = {100.0 + rank};
    const std::vector<double> values = values_of_rank(own);
    all.insert(all.end(), values.begin(), values.end());
    if (rank == 0) run = own;
  }
  combine_ranks(run, all, 2);  // the third rank is a server
  CHECK(run.wire_bytes_per_step == 60);
  CHECK(run.formula_bytes_per_step == 60);
  CHECK(run.exchange_hidden_s == 0.5);
  CHECK(run.time_split_s.forward_s == 0.5);
  CHECK(run.time_split_s.total_s == 100);
  CHECK(run.start_to_first_step_s == 5);
  CHECK(run.peak_rss_mb == std::vector<double>{100, 101, 102});
  CHECK(run.name == "name");
}

TEST_CASE("figures of repetitions are aggregated as the list of figures says", "[report][figures]") {
  std::vector<RunFigures> runs(3, filled<RunFigures>());
  runs[0].test_loss = 1, runs[1].test_loss = kUnknown, runs[2].test_loss = 2;
  runs[0].samples_per_s.median = 5, runs[1].samples_per_s.median = 7, runs[2].samples_per_s.median = 6;
  runs[1].peak_rss_mb = {7, 900};
  const RunFigures row = combine_runs({&runs[0], &runs[1], &runs[2]});
  CHECK(row.test_loss == 1.5);
  CHECK(row.samples_per_s.median == 6);
  CHECK(largest(row.peak_rss_mb) == 900);
  CHECK(row.time_split_s.forward_s == 6);
  CHECK(row.wire_bytes_per_step == runs[0].wire_bytes_per_step);
  CHECK(combine_runs({&runs[0]}).samples_per_s.p25 == runs[0].samples_per_s.p25);
}

TEST_CASE("the list of figures names each with its unit", "[report][figures]") {
  const std::string text = figures_markdown();
  for (const char* words :
       {"`arrival_skew_s`", "`halo_bytes_per_step`", "`test_accuracy`", "`exchange_exposed_s`", "MiB"})
    CHECK(text.find(words) != std::string::npos);
}

}  // namespace echelon
