// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/run_state.hpp"

#include <string_view>

#include "h5/file.hpp"

namespace echelon::inline checkpoint {
namespace {

constexpr const char* kRecordsAttempt = "records_attempt";
constexpr const char* kRecordsBytes = "records_bytes";

// (rows, columns) of whole numbers, as f64; if there are none, only their number.
void visit_rows(StateVisitor& visitor, std::string_view count, std::string_view name, std::vector<double>& values,
                std::int64_t columns) {
  auto rows = static_cast<std::int64_t>(values.size()) / columns;
  visitor.scalar(count, rows, Absent::kept);
  values.resize(static_cast<std::size_t>(rows * columns));
  if (rows == 0) return;
  StateTensor tensor;
  tensor.name = name, tensor.data = values.data(), tensor.dtype = DType::f64;
  tensor.shape = columns == 1 ? Shape{rows} : Shape{rows, columns};
  visitor.tensor(tensor);
}

std::int64_t whole(double value) { return static_cast<std::int64_t>(value); }

}  // namespace

void RunState::visit_state(StateVisitor& visitor) {
  visitor.scalar("step", step);
  visitor.scalar("epoch", epoch);
  visitor.scalar("step_in_epoch", step_in_epoch);
  visitor.scalar("epochs_over", epochs_over, Absent::kept);
  visitor.scalar("global_batch", global_batch);
  visitor.scalar("replicas", replicas);
  visitor.scalar("steps_per_epoch", steps_per_epoch);
  visitor.scalar("epoch_loss", epoch_loss);
  visitor.scalar("epoch_weight", epoch_weight);
  visitor.scalar("first_loss", first_loss);
  visitor.scalar("best_metric", best.metric, Absent::kept);
  visitor.scalar("best_step", best.step, Absent::kept);
  visitor.scalar("best_figure", best.figure, Absent::kept);
  visitor.scalar(kRecordsAttempt, records.attempt, Absent::kept);
  visitor.scalar(kRecordsBytes, records.bytes, Absent::kept);
  std::vector<double> steps(replica_steps.begin(), replica_steps.end()), ranges;
  visit_rows(visitor, "replica_positions", "positions/steps", steps, 1);
  for (const OpenSamples& range : open)
    for (const std::int64_t number : {range.epoch, range.first, range.end})
      ranges.push_back(static_cast<double>(number));
  visit_rows(visitor, "open_ranges", "positions/open", ranges, 3);
  if (!visitor.loading()) return;
  replica_steps.clear(), open.clear();
  for (const double step_of_one : steps) replica_steps.push_back(whole(step_of_one));
  for (std::size_t i = 0; i < ranges.size(); i += 3)
    open.push_back({.epoch = whole(ranges[i]), .first = whole(ranges[i + 1]), .end = whole(ranges[i + 2])});
}

RecordsEnd records_end_in(const std::string& checkpoint) {
  const h5::Reader reader(checkpoint);
  if (!reader.has_attribute(kRecordsBytes)) return {};  // written by an earlier version
  return {.attempt = reader.attribute_int(kRecordsAttempt), .bytes = reader.attribute_int(kRecordsBytes)};
}

}  // namespace echelon::inline checkpoint
