// SPDX-License-Identifier: Apache-2.0
#include "report/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/scaling.hpp"
#include "report/verdict.hpp"

namespace echelon::inline report {
namespace {

std::string label_of(const RunRecord& run) {
  std::string label = exchange_name(run);
  if (run.codec_text != "none") label += ", " + run.codec_text;
  if (run.mesh.parts() > 1) label += fmt::format(", {} ranks a replica", run.mesh.parts());
  return label;
}

}  // namespace

std::vector<std::string> answers_of(const std::vector<RunRecord>& counted) {
  std::vector<std::string> experiments, answers;  // in the order in which they first appear
  for (const RunRecord& run : counted)
    if (std::find(experiments.begin(), experiments.end(), run.experiment) == experiments.end())
      experiments.push_back(run.experiment);
  for (const std::string& experiment : experiments) {
    std::vector<const RunRecord*> runs;
    std::set<int> sizes;
    for (const RunRecord& run : counted)
      if (run.experiment == experiment) runs.push_back(&run), sizes.insert(run.ranks + run.servers);
    if (sizes.size() < 2) continue;
    std::stable_sort(runs.begin(), runs.end(),
                     [](const RunRecord* a, const RunRecord* b) { return a->provenance.seed < b->provenance.seed; });
    std::vector<LabelledRun> cells;
    for (const RunRecord* run : runs)
      cells.push_back({.label = label_of(*run), .run = *run, .seed = run->provenance.seed});
    const auto& config = runs.front()->config;
    const std::string headline =
        make_verdict(make_evidence(cells, config ? config->goal : GoalConfig{}, config ? config->cost : CostConfig{}))
            .headline;
    answers.push_back(experiments.size() == 1 ? headline
                                              : fmt::format("{}, global batch {}: {}", runs.front()->model,
                                                            runs.front()->global_batch, headline));
  }
  return answers;
}

}  // namespace echelon::inline report
