// SPDX-License-Identifier: Apache-2.0
// Writes the records of a run as event files of TensorBoard.
//
// An event file is a sequence of TFRecords (length, masked CRC-32C of the length, data, masked CRC-32C of the data).
// Each holds a protobuf message tensorflow.Event with one Summary of scalars (tensorflow/core/util/event.proto,
// tensorflow/core/framework/summary.proto, tensorflow/core/lib/io/record_writer.cc).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/metrics_file.hpp"
#include "report/record.hpp"

namespace echelon::inline report {

// Converts the rows of an attempt. Tags: "step/loss", .. (known numbers of a step; rates if ranks step together),
// "time/..", (seconds of its parts), "epoch/train_loss", "epoch/test_accuracy", "test/test_loss", ..,
// "run/samples_per_s". The horizontal axis is the step. The wall time is that of provenance plus the times of the steps
// (0 where unknown).
std::string tensorboard_events(const RunRecord& run, const MetricsRows& rows);

// Writes <folder>/<name>/<run>/<attempt>/events.out.tfevents.<start>.echelon for every attempt that has metrics.jsonl,
// each file whole or not at all, and returns the paths. Throws EnvironmentError, and DataError as read_metrics does.
std::vector<std::string> write_tensorboard(const std::vector<RunRecord>& runs, const std::string& folder);

}  // namespace echelon::inline report
