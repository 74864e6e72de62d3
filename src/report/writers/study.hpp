// The page of a study: its verdict, then the evidence in tables. Pure functions.
#pragma once

#include <string>

#include "report/evidence.hpp"
#include "report/verdict.hpp"
#include "report/writers/writers.hpp"

namespace echelon::inline report {

// What the loss budget's columns mean.
inline constexpr const char* kBudgetText =
    "Where k times the best single worker went, in percent of the wall clock of a run: achieved is its efficiency "
    "with start-up, evaluation and checkpoints counted; micro-batch: forward and backward beyond their share (smaller "
    "micro-batches, shared cores and memory); exchange: exposed, its codec included; skew: waits for slower ranks. "
    "Ranks that only serve are not among the k.";

// Ranks, rate, speed-up, efficiency, figure, samples and time to the target, cost; one row a setting.
Table settings_table(const Evidence& evidence);
// Percent of k times the best single worker, by cause, summing to 100.
Table budget_table(const Evidence& evidence);

std::string study_text(const Evidence& evidence, const StudyVerdict& verdict);  // for the terminal
std::string study_markdown(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source);

}  // namespace echelon::inline report
