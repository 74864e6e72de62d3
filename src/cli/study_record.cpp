// SPDX-License-Identifier: Apache-2.0
#include "cli/study_record.hpp"

#include <algorithm>
#include <cmath>

#include "report/verdict.hpp"

namespace echelon::cli {
namespace {

RunRecord run_of(const StudyCell& cell, const CellRecord& record) {
  RunRecord run;
  if (!record.attempt.empty()) run = read_run(record.attempt);
  if (!run.has_summary) run.ranks = cell.ranks;
  return run;
}

}  // namespace

std::vector<CellRecord> cell_records(const StudyPlan& study, const std::vector<StudyCell>& cells) {
  std::vector<CellRecord> records;
  for (const StudyCell& cell : cells) records.push_back(read_cell(folder_of(study, cell)));
  return records;
}

std::vector<RoundControl> rounds_of(const StudyPlan& study, const std::vector<StudyCell>& cells,
                                    const std::vector<CellRecord>& records) {
  std::vector<double> rates(static_cast<std::size_t>(study.repeats), kUnknown);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!cells[i].control || records[i].state != CellState::finished || records[i].attempt.empty()) continue;
    const RunRecord run = read_run(records[i].attempt);
    rates[static_cast<std::size_t>(cells[i].repeat) - 1] =
        std::isfinite(run.samples_per_s_overall) ? run.samples_per_s_overall : run.samples_per_s.median;
  }
  while (!rates.empty() && std::isnan(rates.back())) rates.pop_back();
  return judge_rounds(rates);
}

std::vector<LabelledRun> runs_of(const std::vector<StudyCell>& cells, const std::vector<CellRecord>& records) {
  std::vector<LabelledRun> runs;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (records[i].outcome().empty()) continue;
    LabelledRun made{.label = cells[i].text,
                     .run = run_of(cells[i], records[i]),
                     .repeat = cells[i].repeat,
                     .seed = cells[i].seed,
                     .outcome = records[i].outcome(),
                     .code = records[i].exit_code,
                     .sharpness = records[i].sharpness,
                     .ranks = cells[i].ranks};
    for (const std::string& environment : cells[i].environments) {
      made.environment = environment;
      runs.push_back(made);
    }
  }
  return runs;
}

Evidence evidence_of(const StudyPlan& study, const std::vector<StudyCell>& cells,
                     const std::vector<CellRecord>& records) {
  const Config base = base_config(study);
  std::vector<std::string> environments;
  for (const StudyEnvironment& environment : study.environments) environments.push_back(environment.name);
  if (environments.empty()) environments.emplace_back();
  std::vector<ControlRate> controls;  // the same for all environments of a cell: one machine
  for (const RoundControl& round : rounds_of(study, cells, records))
    for (const std::string& environment : environments)
      controls.push_back({.environment = environment, .repeat = round.round, .samples_per_s = round.rate});
  return make_evidence(runs_of(cells, records), base.goal, base.cost, study.rules, controls);
}

bool is_decided(const StudyPlan& study, const std::vector<StudyCell>& cells, const std::vector<CellRecord>& records) {
  return decided(evidence_of(study, cells, records));
}

}  // namespace echelon::cli
