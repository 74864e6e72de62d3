// Records of a run as event files of TensorBoard.
//
// An event file is a row of TFRecords (length, masked CRC-32C of the length, data, masked CRC-32C of the data), each a
// protobuf message tensorflow.Event with one Summary of scalars (tensorflow/core/util/event.proto,
// tensorflow/core/framework/summary.proto, tensorflow/core/lib/io/record_writer.cc).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/metrics_file.hpp"
#include "report/record.hpp"

namespace echelon::inline report {

// The rows of an attempt: tags "step/loss", .. (known numbers of a step; rates where ranks step together), "time/..",
// (seconds of its parts), "epoch/train_loss", "epoch/test_accuracy", "test/test_loss", .., "run/samples_per_s"; the
// horizontal axis is the step, the wall time that of provenance with the times of the steps added (0 where unknown).
std::string tensorboard_events(const RunRecord& run, const MetricsRows& rows);

// Writes <folder>/<name>/<run>/<attempt>/events.out.tfevents.<start>.echelon for every attempt with metrics.jsonl,
// whole or not at all, and returns the paths. Throws EnvironmentError, DataError as read_metrics.
std::vector<std::string> write_tensorboard(const std::vector<RunRecord>& runs, const std::string& folder);

}  // namespace echelon::inline report
