#include "report/batch_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "report/metrics_file.hpp"

namespace echelon::inline report {
namespace {

constexpr double kUsefulWithin = 2;

// The attempts of a run, one after another, contain each step once; the last one has the summary.
BatchSweepRow row_of(const std::string& folder, double target) {
  const std::vector<RunRecord> attempts = read_runs({folder});
  const auto last = std::find_if(attempts.rbegin(), attempts.rend(), [](const RunRecord& r) { return r.has_summary; });
  if (last == attempts.rend()) throw DataError(fmt::format("{}: no attempt finished", folder));
  BatchSweepRow row{.batch = last->global_batch, .run = *last};
  for (const RunRecord& attempt : attempts)
    for (const EpochFigures& epoch : read_metrics(attempt.folder).epochs) {
      if (!(epoch.test_accuracy >= 0)) continue;
      row.best_accuracy = std::max(epoch.test_accuracy, row.best_accuracy >= 0 ? row.best_accuracy : 0.0);
      if (epoch.test_accuracy < target || row.reached()) continue;
      row.samples_to_target = static_cast<double>(epoch.step) * static_cast<double>(row.batch);
      row.seconds_to_target = row.samples_to_target / last->samples_per_s.median;
    }
  return row;
}

void find_useful(BatchSweep& sweep) {
  double fewest = 0;
  for (const BatchSweepRow& row : sweep.rows)
    if (row.reached() && (fewest == 0 || row.samples_to_target < fewest)) fewest = row.samples_to_target;
  for (const BatchSweepRow& row : sweep.rows) {
    if (!row.reached() || row.samples_to_target > kUsefulWithin * fewest) {
      if (sweep.useful_from > 0) break;
      continue;
    }
    if (sweep.useful_from == 0) sweep.useful_from = row.batch;
    sweep.useful_to = row.batch;
  }
}

Table table_of(const BatchSweep& sweep) {
  Table table({"batch", "samples/s", "epochs", "loss", "accuracy", "best",
               fmt::format("samples to {:g} %", 100 * sweep.target), "time to it"});
  for (const BatchSweepRow& row : sweep.rows) {
    const auto percent = [](double part) { return part >= 0 ? fmt::format("{:.2f} %", 100 * part) : "-"; };
    table.row({count_text(row.batch), rate_text(row.run.samples_per_s.median), count_text(row.run.epochs),
               fmt::format("{:.4g}", row.run.test_loss), percent(row.run.test_accuracy), percent(row.best_accuracy),
               row.reached() ? count_text(static_cast<std::int64_t>(row.samples_to_target)) : "not reached",
               row.reached() ? seconds_text(row.seconds_to_target) : "-"});
  }
  return table;
}

std::string useful_text(const BatchSweep& sweep) {
  if (sweep.useful_from == 0) return "no batch reached the target";
  if (sweep.useful_from == sweep.useful_to)
    return fmt::format("useful: only {} reaches the target within {:g}x the fewest samples", sweep.useful_from,
                       kUsefulWithin);
  return fmt::format("useful range: {} to {} (the target within {:g}x the fewest samples)", sweep.useful_from,
                     sweep.useful_to, kUsefulWithin);
}

}  // namespace

BatchSweep make_batch_sweep(const std::vector<std::string>& run_folders, double target) {
  BatchSweep sweep;
  sweep.target = target;
  for (const std::string& folder : run_folders) sweep.rows.push_back(row_of(folder, target));
  std::sort(sweep.rows.begin(), sweep.rows.end(),
            [](const BatchSweepRow& a, const BatchSweepRow& b) { return a.batch < b.batch; });
  find_useful(sweep);
  return sweep;
}

std::string batch_sweep_text(const BatchSweep& sweep) { return table_of(sweep).text() + useful_text(sweep) + "\n"; }

std::string batch_sweep_markdown(const BatchSweep& sweep) {
  std::string out = "# Batch sweep\n\n" + table_of(sweep).markdown() + "\n" + useful_text(sweep) + "\n\n";
  for (const BatchSweepRow& row : sweep.rows)
    out += fmt::format("- batch {}: `{}`, commit {}, {}\n", row.batch, row.run.provenance.command_line,
                       row.run.provenance.git_hash, row.run.folder);
  return out;
}

}  // namespace echelon::inline report
