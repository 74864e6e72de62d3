// SPDX-License-Identifier: Apache-2.0
// Tests the config space by pairs: every two values of two axes are in a row that `check` and `train` refuse alike with
// a reason, or that trains, resumes to the same bits, is evaluated, predicts, is exported and reported.
//
// To run one row by hand (CONFIG_ROW_FOLDER=<an empty folder> keeps its data, config and results):
//   CONFIG_ROW="split=pipeline codec=int8" OMP_WAIT_POLICY=passive build/release/tests/contract "[config-row]"
//
// Each row runs in a process of its own (this executable, with the hidden test below), so that one that crashes or
// hangs is a failure of that row only.
#include <fmt/format.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/atomic_file.hpp"
#include "base/clock.hpp"
#include "base/hash_rng.hpp"
#include "tests/support/config_rows.hpp"
#include "tests/support/process.hpp"
#include "tests/support/random.hpp"

namespace echelon::test {
namespace {

constexpr double kRow_s = 60;  // limit of a row

std::string env(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Returns the verdict of run_experiment, or how its process ended.
std::string verdict_of(const std::string& row, const std::string& folder, std::size_t number) {
  const std::string name = fmt::format("row-{}", number), file = folder + "/" + name + ".verdict";
  const Outcome outcome = run_process({.argv = {"/proc/self/exe", "[config-row]"},
                                       .cwd = folder,
                                       .env = {{"ECHELON_TEST_SUMMARY", ""},
                                               {"ECHELON_TEST_TIMES", ""},
                                               {"OMP_WAIT_POLICY", "passive"},
                                               {"CONFIG_ROW", row},
                                               {"CONFIG_ROW_FOLDER", folder},
                                               {"CONFIG_ROW_NAME", name}},
                                       .limit_s = kRow_s});
  std::filesystem::remove_all(folder + "/" + name);
  if (outcome.timed_out) return fmt::format("failed: still running after {} s\n{}", kRow_s, outcome.err);
  if (!std::filesystem::exists(file))
    return fmt::format("failed: ended with {}\n{}", outcome.code, outcome.err.substr(0, 1000));
  const std::string verdict = read_file_whole(file);
  return verdict.starts_with("failed") ? verdict + "\n" + outcome.err.substr(0, 1000) : verdict;
}

struct RowCounts {
  std::size_t trained = 0, refused = 0;
  std::vector<std::string> failures;
};

// Runs the rows in this order, two at a time, until `limit_s` is over.
RowCounts run_rows(const std::vector<Axis>& axes, const std::vector<PairwiseRow>& rows, double limit_s) {
  const TempFolder folder;
  write_row_data(folder.path());
  RowCounts counts;
  std::mutex mutex;
  std::atomic<std::size_t> next = 0;
  const double start = now_s();
  const auto work = [&] {
    for (std::size_t i = next++; i < rows.size() && now_s() - start < limit_s; i = next++) {
      const std::string verdict = verdict_of(text_of(axes, rows[i]), folder.path(), i);
      const std::lock_guard lock(mutex);
      ++(verdict.starts_with("refused") ? counts.refused : counts.trained);
      if (verdict.starts_with("failed")) counts.failures.push_back(text_of(axes, rows[i]) + "\n    " + verdict);
    }
  };
  std::thread other(work);
  work();
  other.join();
  return counts;
}

// All pairs that may run, and those that may not, with the reason.
struct Space {
  std::vector<Axis> axes = config_axes();
  PairwiseTable table;

  Space() {
    const TempFolder folder;
    write_row_data(folder.path());
    table = pairwise_table(axes, 1, [&](const PairwiseRow& row) {
      return test::plan_refusal(experiment_of(axes, row, folder.path())).empty();
    });
    std::printf("%zu pairs of %zu axes: %zu rows, %zu pairs refused\n", count_pairs(axes), axes.size(),
                table.rows.size(), table.forbidden.size());
  }
  // Returns the neutral row with a forbidden pair.
  PairwiseRow row_of(const ValuePair& pair) const {
    PairwiseRow row(axes.size(), 0);
    row[pair.axis] = pair.value, row[pair.other] = pair.of_other;
    return row;
  }
};

void check_tally(const RowCounts& counts) {
  std::printf("%zu rows trained, %zu refused, %zu failed\n", counts.trained - counts.failures.size(), counts.refused,
              counts.failures.size());
  for (const std::string& failure : counts.failures) std::printf("%s\n", failure.c_str());
  CHECK(counts.failures.empty());
}

}  // namespace

TEST_CASE("a row of the config space", "[.][config-row]") {
  const std::vector<Axis> axes = config_axes();
  const TempFolder own;
  const std::string folder = env("CONFIG_ROW_FOLDER").empty() ? own.path() : env("CONFIG_ROW_FOLDER");
  const std::string name = env("CONFIG_ROW_NAME").empty() ? "row" : env("CONFIG_ROW_NAME");
  if (!std::filesystem::exists(folder + "/images")) write_row_data(folder);
  const std::string verdict =
      run_experiment(experiment_of(axes, row_of(axes, env("CONFIG_ROW")), folder), folder, name);
  write_file_whole(folder + "/" + name + ".verdict", verdict);
  std::printf("%s\n", verdict.c_str());
  CHECK(!verdict.empty());
}

TEST_CASE("pairs of the config space, a sample of each run", "[pairs][slow]") {
  const Space space;
  const HashRng rng(test_seed(), "pairs");
  std::vector<PairwiseRow> rows = space.table.rows;
  for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[rng.below(i, i)]);
  check_tally(run_rows(space.axes, rows, 8));
}

TEST_CASE("all pairs of the config space", "[.][soak][pairs]") {
  const Space space;
  std::vector<PairwiseRow> rows = space.table.rows;
  for (const ValuePair& pair : space.table.forbidden) rows.push_back(space.row_of(pair));
  const RowCounts counts = run_rows(space.axes, rows, 1e9);
  check_tally(counts);
  CHECK(counts.trained + counts.refused == rows.size());
}

}  // namespace echelon::test
