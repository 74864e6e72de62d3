// SPDX-License-Identifier: Apache-2.0
// Writes a finished run as log lines of MLPerf training (":::MLLOG {json}"), which the MLPerf tools read.
#pragma once

#include <string>
#include <vector>

#include "report/metrics_file.hpp"
#include "report/record.hpp"

namespace echelon::inline report {

// Writes the keys that follow from the records: submission_benchmark (the model), submission_division ("open"), seed,
// global_batch_size, gradient_accumulation_steps, init_start, init_stop, run_start, epoch_start, epoch_stop,
// eval_start, eval_accuracy, eval_stop, throughput (of the run), run_stop ("success" or "aborted"). Times come from
// provenance and from the steps. The compliance checker of mlperf-logging 4.1 (rules 4.0 of training, open division)
// also requires submission_org, submission_platform, submission_status, cache_clear, train_samples, eval_samples and
// the name of one of its benchmarks: the submitter has to add these.
std::string mllog_lines(const RunRecord& run, const MetricsRows& rows);

// Writes <folder>/result_<n>.txt for each attempt that has metrics.jsonl, numbered from 0 in order; returns the paths.
std::vector<std::string> write_mllog(const std::vector<RunRecord>& runs, const std::string& folder);

}  // namespace echelon::inline report
