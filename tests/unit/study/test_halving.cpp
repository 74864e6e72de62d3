// SPDX-License-Identifier: Apache-2.0
// Successive halving: which trials go on, in whatever order they ran; and a search resumed from its file.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <random>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "study/search.hpp"
#include "tests/support/process.hpp"

namespace echelon {
namespace {

using What = Promotion::What;

// The figure of a trial on a rung: it improves with each rung, but trials change their order.
double figure(std::size_t trial, std::size_t rung) {
  if (trial % 7 == 5 && rung == 0) return std::nan("");  // diverges
  return static_cast<double>((trial * 37 + rung * rung * 11) % 101) - 10.0 * static_cast<double>(rung);
}

// Returns the rungs of each trial in the end, with `side_by_side` trials at a time; `seed` draws which ends first.
std::vector<TrialRungs> run_all(const HalvingOptions& options, std::size_t rungs, std::size_t planned,
                                std::size_t side_by_side, unsigned seed) {
  std::mt19937 draws(seed);
  std::vector<TrialRungs> trials;
  std::vector<std::size_t> running;
  for (;;) {
    const Promotion next =
        running.size() < side_by_side ? next_promotion(options, rungs, trials, planned) : Promotion{What::wait};
    if (next.what == What::new_trial || next.what == What::go_on) {
      if (next.what == What::new_trial) trials.emplace_back();
      const std::size_t t = next.what == What::new_trial ? trials.size() - 1 : next.trial;
      REQUIRE_FALSE(trials[t].under_way);
      trials[t].under_way = true;
      running.push_back(t);
      continue;
    }
    if (running.empty()) {
      CHECK(next.what == What::none);
      return trials;
    }
    const std::size_t at = draws() % running.size(), t = running[at];
    trials[t].figures.push_back(figure(t, trials[t].figures.size()));
    trials[t].under_way = false;
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

// Returns how far each trial gets in the paper's loop: run all on one rung, sort, cut.
std::vector<std::size_t> reached_by_loop(std::size_t eta, std::size_t rungs, std::size_t planned) {
  std::vector<std::size_t> reached(planned, 0), members(planned);
  std::iota(members.begin(), members.end(), std::size_t{0});
  for (std::size_t rung = 0; rung < rungs; ++rung) {
    const std::size_t keep = std::max<std::size_t>(1, members.size() / eta);
    for (const std::size_t t : members) reached[t] = rung + 1;
    std::erase_if(members, [&](std::size_t t) { return std::isnan(figure(t, rung)); });
    std::sort(members.begin(), members.end(),
              [&](std::size_t a, std::size_t b) { return figure(a, rung) < figure(b, rung); });
    members.resize(std::min(members.size(), keep));
  }
  return reached;
}

StudyPlan plan_in(const test::TempFolder& folder, const std::string& study) {
  write_file_whole(folder / "s.toml",
                   "name = \"s\"\n[model]\nzoo = \"lenet\"\n[data]\ntrain = \"x\"\ntest = \"x\"\n[batch]\nglobal = 8\n"
                   "[train]\nepochs = 18\n[goal]\nmetric = \"test_loss\"\ntarget = 0.1\n[run]\nresults = \"" +
                       (folder / "results") + "\"\n" + study);
  return load_study(folder / "s.toml", {});
}

constexpr const char* kSearch = R"([study]
ranks = [1]
search = "bayesian"
trials = 12
halving = { eta = 3, first_epochs = 2 }
[study.ranges]
"optimizer.learning_rate" = { low = 1e-3, high = 1.0, log = true }
)";

}  // namespace

TEST_CASE("rungs grow by eta up to the whole run", "[study][halving]") {
  CHECK(rungs_of({.eta = 3, .first_epochs = 2}, 18) == std::vector<std::int64_t>{2, 6, 18});
  CHECK(rungs_of({.eta = 4, .first_epochs = 1}, 50) == std::vector<std::int64_t>{1, 4, 16, 50});
  CHECK(rungs_of({.first_epochs = 5}, 5) == std::vector<std::int64_t>{5});
}

TEST_CASE("synchronous halving trains what the paper's loop trains, however many side by side", "[study][halving]") {
  for (const std::size_t planned : {1, 2, 9, 27, 40})
    for (const std::int64_t eta : {2, 3}) {
      const std::vector<std::size_t> wanted = reached_by_loop(static_cast<std::size_t>(eta), 3, planned);
      for (const std::size_t side_by_side : {1, 4, 50})
        for (unsigned seed = 0; seed < 5; ++seed) {
          CAPTURE(planned, eta, side_by_side, seed);
          const auto trials = run_all({.eta = eta}, 3, planned, side_by_side, seed);
          REQUIRE(trials.size() == planned);
          for (std::size_t t = 0; t < planned; ++t) CHECK(trials[t].figures.size() == wanted[t]);
        }
    }
}

TEST_CASE("more trials later: all are compared anew, and nothing is trained twice", "[study][halving]") {
  const HalvingOptions options{.eta = 3};
  std::vector<TrialRungs> trials = run_all(options, 3, 9, 1, 0);
  CHECK(next_promotion(options, 3, trials, 9).what == What::none);
  CHECK(next_promotion(options, 3, trials, 10).what == What::new_trial);
}

TEST_CASE("asynchronous halving never waits while trials are left, and brings the best to the end",
          "[study][halving]") {
  const HalvingOptions options{.eta = 3, .asynchronous = true};
  for (const std::size_t side_by_side : {1, 4})
    for (unsigned seed = 0; seed < 5; ++seed) {
      const auto trials = run_all(options, 3, 27, side_by_side, seed);
      std::size_t on_rung[4] = {};
      for (const TrialRungs& trial : trials) ++on_rung[trial.figures.size()];
      CAPTURE(side_by_side, seed, on_rung[1], on_rung[2], on_rung[3]);
      CHECK(on_rung[0] == 0);
      CHECK(on_rung[3] >= 1);
      // The best of each rung go on, and few promotions are "wrong" (Li et al., section 3.3).
      CHECK(on_rung[2] + on_rung[3] >= 9);
      CHECK(on_rung[2] + on_rung[3] <= 15);
    }
  std::vector<TrialRungs> three(3);
  for (std::size_t t = 0; t < 3; ++t) three[t].figures = {static_cast<double>(t)};
  CHECK(next_promotion(options, 3, three, 27).what == What::go_on);
  CHECK(next_promotion(options, 3, three, 27).trial == 0);
  three[0].under_way = true;
  CHECK(next_promotion(options, 3, three, 27).what == What::new_trial);
  CHECK(next_promotion({.eta = 3}, 3, three, 27).what == What::new_trial);
  CHECK(next_promotion({.eta = 3}, 3, three, 3).what == What::wait);
  CHECK(next_promotion(options, 3, run_all(options, 3, 2, 1, 0), 2).what == What::none);
}

TEST_CASE("a search goes on from its file with the trials that it had", "[study][search]") {
  const test::TempFolder folder;
  const StudyPlan plan = plan_in(folder, kSearch);
  CHECK(plan.rungs == std::vector<std::int64_t>{2, 6, 18});
  StudySearch search(plan);
  std::vector<CellRecord> records;
  for (int t = 0; t < 7; ++t) {
    REQUIRE(search.propose(records));
    records.emplace_back();
    if (t % 2 == 0) {  // the other trials are still running
      records.back().state = CellState::stopped;
      records.back().rungs = {{.epochs = 2, .figure = 1.0 + t}};
    }
  }
  StudySearch again(plan);
  REQUIRE(again.cells().size() == 7);
  for (std::size_t t = 0; t < 7; ++t) CHECK(again.cells()[t].id == search.cells()[t].id);
  REQUIRE(search.propose(records));
  REQUIRE(again.propose(records));
  CHECK(again.cells().back().id == search.cells().back().id);
  std::vector<std::string> ids;
  for (const StudyCell& cell : search.cells()) ids.push_back(cell.id);
  std::sort(ids.begin(), ids.end());
  CHECK(std::adjacent_find(ids.begin(), ids.end()) == ids.end());  // running trials are not proposed again

  std::string text = read_file_whole(folder / "s.toml");
  text.replace(text.find("1e-3"), 4, "1e-2");
  write_file_whole(folder / "s.toml", text);
  CHECK(StudySearch(load_study(folder / "s.toml", {})).cells().empty());
  write_file_whole(plan.folder + "/trials.json", "{");
  CHECK_THROWS_AS(StudySearch(plan), DataError);
}

TEST_CASE("a trial trains up to its rung with the learning rates of the whole run", "[study][halving]") {
  const test::TempFolder folder;
  const StudyPlan plan = plan_in(folder, std::string("[optimizer]\nschedule = \"cosine\"\n") + kSearch);
  const StudyCell trial = make_cell(plan, {.text = "x", .sets = {}}, 1, 1);
  const auto sets = at_rung(plan, trial, 1).sets;
  CHECK(std::find(sets.begin(), sets.end(), "train.epochs=6") != sets.end());
  CHECK(std::find(sets.begin(), sets.end(), "optimizer.schedule_epochs=18") != sets.end());
}

TEST_CASE("figures of rungs are kept with the cell, missing ones too", "[study][halving]") {
  const test::TempFolder folder;
  CellRecord record;
  record.state = CellState::stopped;
  record.step = 40;
  record.rungs = {{.epochs = 2, .figure = 0.5}, {.epochs = 6, .figure = std::nan("")}};
  write_cell(folder / "cell", record);
  const CellRecord read = read_cell(folder / "cell");
  CHECK(read.over());
  CHECK(read.step == 40);
  REQUIRE(read.rungs.size() == 2);
  CHECK(read.rungs[0].figure == 0.5);
  CHECK(std::isnan(read.rungs[1].figure));
  StudyPlan plan;
  plan.rungs = {2, 6, 18};
  plan.goal.metric = GoalMetric::test_accuracy;
  CHECK(trial_rungs(plan, record).figures.size() == 2);
  CHECK(trial_rungs(plan, record).figures[0] == -0.5);
  record.rungs.pop_back();
  record.state = CellState::diverged;
  CHECK(std::isnan(trial_rungs(plan, record).figures.back()));
  record.state = CellState::finished;  // finished when the run was shorter
  CHECK(trial_rungs(plan, record).figures == std::vector<double>{-0.5, -0.5, -0.5});
}

}  // namespace echelon
