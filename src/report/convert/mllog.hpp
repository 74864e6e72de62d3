// A finished run as log lines of MLPerf training (":::MLLOG {json}"), which its tools read.
#pragma once

#include <string>
#include <vector>

#include "report/metrics_file.hpp"
#include "report/record.hpp"

namespace echelon::inline report {

// The keys that follow from the records: submission_benchmark (the model), submission_division ("open"), seed,
// global_batch_size, gradient_accumulation_steps, init_start, init_stop, run_start, epoch_start, epoch_stop,
// eval_start, eval_accuracy, eval_stop, throughput (of the run), run_stop ("success" or "aborted"). Times are those of
// provenance and of the steps. The compliance checker of mlperf-logging 4.1 (rules 4.0 of training, open division)
// wants beyond that submission_org, submission_platform, submission_status, cache_clear, train_samples, eval_samples,
// and the name of one of its benchmarks: these are the submitter's to add.
std::string mllog_lines(const RunRecord& run, const MetricsRows& rows);

// Writes <folder>/result_<n>.txt for the attempts with metrics.jsonl, in their order from 0, and returns the paths.
std::vector<std::string> write_mllog(const std::vector<RunRecord>& runs, const std::string& folder);

}  // namespace echelon::inline report
