// SPDX-License-Identifier: Apache-2.0
// The page of a study: its verdict, followed by the evidence in tables. Pure functions.
#pragma once

#include <string>

#include "report/evidence.hpp"
#include "report/verdict.hpp"
#include "report/writers/writers.hpp"

namespace echelon::inline report {

// Explains the columns of the loss budget.
inline constexpr const char* kBudgetText =
    "Where the ideal speed, k times that of the best single worker, went, in percent of the wall time of a run: "
    "achieved is the efficiency with start-up, evaluation and checkpoints included; micro-batch is time of forward and "
    "backward passes beyond their ideal share (smaller micro-batches, shared cores and memory); exchange is exposed "
    "exchange; codec is the part of it that coding takes; skew is waiting for slower ranks. Ranks that only serve are "
    "not among the k.";

// Returns kBudgetText and, if any steps were left out as warm-up, says which.
std::string budget_text(const Evidence& evidence);

// Explains the columns of compute_table.
inline constexpr const char* kComputeText =
    "Floating-point operations that the model needs, over the time of the phase; in brackets the share of the peak, "
    "the rate of large matrix products on all ranks at once. FLOP per weight and step, over all ranks: the fewer there "
    "are, the more the exchange of weights costs. Card: the largest bytes per second of any rank in its busiest tenth "
    "of a second, over the largest mean. Memory: the largest of any rank.";

// Exposed exchange as a share of the step's time without hooks, evaluations and checkpoints.
double exposed_share(const ScalingRow& row);

// The compute figures of a rank; unknown if not measured.
struct RankCompute {
  double forward_flops_per_s = kUnknown, backward_flops_per_s = kUnknown;  // over the time of the phase
  double flops_per_weight_and_step = kUnknown;                             // over all ranks
  double card_peak_over_mean = kUnknown;  // card with the highest peak (a server's, if there are servers)
};
RankCompute compute_of(const ScalingRow& row);

// Returns the setting whose wire matrix the page shows: the recommended one, else the fastest on the most ranks.
// Requires a finished run.
const Setting& shown_setting(const Evidence& evidence, const StudyVerdict& verdict);

// "Yes: 4 ranks, ring." and the rest of the headline.
struct HeadlineParts {
  std::string head, rest;
};
HeadlineParts headline_parts(const std::string& headline);
// "to test accuracy 0.95", "8 settings, 3 repetitions": the question of the study in a few words.
std::vector<std::string> study_facts(const Evidence& evidence, const ReportSource& source);
// Rows "If you want .. then ..": setting, value, gain over one worker with its interval, ties.
Table wants_table(const Evidence& evidence, const StudyVerdict& verdict);
// "3.9x (3.7 to 4.1)", "+0.012 (+0.004 to +0.020)": with the 95 % interval. "-" for one worker.
std::string gain_cell(const Effect& effect);
// Lists settings of all environments that are faster but not as good as one worker.
std::vector<std::string> faster_lines(const StudyVerdict& verdict);

// Rate, speed-up, efficiency, figure, samples and time to the target, and cost; one row per setting.
Table settings_table(const Evidence& evidence);
// The loss budget per setting, in percent of k times the best single worker; each row sums to 100.
Table budget_table(const Evidence& evidence);
// Returns the columns of budget_table: the parts that some setting has.
std::vector<BudgetPart> shown_parts(const Evidence& evidence);
// Rates of the phases against the peak, compute per weight, hidden share of the exchange, memory.
Table compute_table(const Evidence& evidence);
// The evaluations that curve_plot draws, as numbers.
inline constexpr const char* kEvaluationsText =
    "Medians over the repetitions, with the smallest and the largest value, of the largest size and of the best single "
    "worker; those of all settings are in study.json. Times are in seconds since the start of the run, start-up and "
    "evaluations included.";
Table evaluations_table(const Evidence& evidence);
// Returns the variant's name, else the strategy.
std::string what_of(const Setting& s);
// The first columns of every table: variant, environment if there are several, ranks ("8 + 2" with servers), hosts.
std::vector<std::string> identity_header(const Evidence& evidence);
std::vector<std::string> identity_of(const Evidence& evidence, const Setting& s);
std::string known_or_dash(double value, std::string text);

// The answer for the first lines of `echelon scale` and `echelon report`.
std::string headline_text(const StudyVerdict& verdict);
// The page for the terminal: the answer first, in lines of at most 120 columns.
std::string study_text(const Evidence& evidence, const StudyVerdict& verdict);
std::string study_markdown(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source);

}  // namespace echelon::inline report
