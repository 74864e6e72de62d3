// SPDX-License-Identifier: Apache-2.0
#include "train/class_counter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/dtype.hpp"
#include "config/refuse.hpp"
#include "train/host_values.hpp"
#include "train/value_counter.hpp"

namespace echelon::inline train {
namespace {

constexpr std::int64_t kNo = 0, kYes = 1;

const Node& loss_of(const Graph& graph) { return graph.nodes()[static_cast<std::size_t>(graph.loss())]; }
const Value& outputs_of(const Graph& graph) {
  return graph.values()[static_cast<std::size_t>(loss_of(graph).inputs.front())];
}
bool is_softmax(const Graph& graph) { return loss_of(graph).layer->reads_logits(); }
bool has_class_planes(const Graph& graph) { return loss_of(graph).layer->has_class_planes(); }
std::int64_t last_extent(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[shape.rank() - 1]; }

bool is_of_classes(const std::string& metric) { return metric != "mae" && metric != "r2"; }

template <class T>
std::int64_t first_largest(const T* row, std::int64_t count) {
  return std::max_element(row, row + count) - row;
}

// Counts the outputs before `output` in descending order. It stands at `own`; if it is an output of another shard,
// before or behind all of them.
template <class T>
std::int64_t position_of(T output, std::int64_t own, const T* row, std::int64_t count) {
  std::int64_t above = 0, equal = 0;
  for (std::int64_t k = 0; k < count; ++k) above += row[k] > output ? 1 : 0;
  for (std::int64_t k = 0; k < std::clamp<std::int64_t>(own, 0, count); ++k) equal += row[k] == output ? 1 : 0;
  return above + equal;
}

}  // namespace

// The labels of a batch and their weights.
struct ClassCounter::Rows {
  std::int64_t count;
  const void* labels;
  DType label_dtype;
  const void* weights;
  DType dtype;

  std::int64_t label(std::int64_t row) const {
    if (label_dtype == DType::i32) return static_cast<const std::int32_t*>(labels)[row];
    return value(labels, row) > 0.5 ? kYes : kNo;
  }
  bool counts(std::int64_t row) const { return value(weights, row) > 0; }

 private:
  double value(const void* values, std::int64_t at) const {
    return dtype == DType::f64 ? static_cast<const double*>(values)[at]
                               : static_cast<double>(static_cast<const float*>(values)[at]);
  }
};

std::int64_t classes_of(const Graph& whole) {
  if (has_class_planes(whole)) return outputs_of(whole).shape[0];
  if (is_softmax(whole)) return last_extent(outputs_of(whole).shape);
  return whole.counts_correct() ? 2 : 0;
}

bool asks_for(const Config& config, std::string_view metric) {
  const std::vector<std::string>& metrics = config.evaluate.metrics;
  return std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
}

bool asks_for_classes(const Config& config) {
  return std::any_of(config.evaluate.metrics.begin(), config.evaluate.metrics.end(), is_of_classes);
}

bool asks_for_values(const Config& config) { return asks_for(config, "mae") || asks_for(config, "r2"); }

void check_metrics(const Config& config, const Graph& whole) {
  const std::int64_t classes = classes_of(whole);
  for (const std::string& metric : config.evaluate.metrics) {
    if (is_of_classes(metric) && classes == 0)
      refuse(config, "evaluate.metrics",
             fmt::format("evaluate.metrics = \"{}\" counts predictions of classes, and the outputs of this model are "
                         "real numbers; nearest valid: [\"mae\", \"r2\"]",
                         metric));
    if (!is_of_classes(metric) && !gives_numbers(whole))
      refuse(config, "evaluate.metrics",
             fmt::format("evaluate.metrics = \"{}\" is an error of real numbers, and the outputs of this model are "
                         "scores of classes; leave it out",
                         metric));
  }
  if (asks_for(config, "auc") && classes != 2)
    refuse(config, "evaluate.metrics",
           fmt::format("evaluate.metrics = \"auc\" is a figure of 2 classes, and this model has {}; nearest valid: "
                       "[\"macro_f1\"]",
                       classes));
  if (asks_for(config, "confusion") && classes > ClassCounts::kMostConfused)
    refuse(config, "evaluate.metrics",
           fmt::format("evaluate.metrics = \"confusion\" is a matrix of {} x {} classes, at most {} are kept; nearest "
                       "valid: [\"class_recall\", \"class_precision\"]",
                       classes, classes, ClassCounts::kMostConfused));
}

ClassCounter::ClassCounter(const Graph& whole, const Graph& part, const Place& place)
    : whole_(whole), part_(part), place_(place), classes_(classes_of(whole)) {}

// Shards that hold some of the classes have fewer outputs than there are.
void ClassCounter::find_shards() {
  known_ = true;
  if (place_.replica == nullptr || !is_softmax(whole_) || has_class_planes(whole_)) return;
  const std::array<double, 2> own = {
      static_cast<double>(place_.shard),
      place_.has_outputs ? static_cast<double>(last_extent(outputs_of(part_).shape)) : 0};
  const std::vector<double> all = place_.replica->gather(own);
  std::vector<std::int64_t> counts;
  for (std::size_t r = 0; r < all.size(); r += own.size()) {
    const auto shard = static_cast<std::size_t>(all[r]);
    const auto held = static_cast<std::int64_t>(all[r + 1]);
    if (held == 0 || held == classes_) continue;
    if (counts.size() <= shard) counts.resize(shard + 1);
    counts[shard] = held;
  }
  for (const std::int64_t count : counts) ends_.push_back(count + (ends_.empty() ? 0 : ends_.back()));
}

void ClassCounter::count(Device& device, const Program& program, const Batch& batch, ClassCounts& counts) {
  if (!known_) find_shards();
  const bool spread = !ends_.empty();
  if (!spread && !place_.counts) return;
  const Graph& here = place_.has_outputs ? part_ : whole_;
  const Value& labels = here.values()[static_cast<std::size_t>(loss_of(here).inputs[1])];
  Rows rows{.count = batch.n * labels.shape.elems(),
            .labels = batch.labels,
            .label_dtype = labels.type == ValueType::index ? DType::i32 : DType::f32,
            .weights = batch.weights,
            .dtype = DType::f32};
  if (!place_.has_outputs) return count_spread<float>(nullptr, rows, counts);
  rows.dtype = program.input("weights").dtype;
  const Tensor outputs = program.value(outputs_of(part_).name);
  const void* values = host_values(device, outputs, host_);
  with_float(outputs.dtype, [&]<class T>(T) {
    if (spread)
      count_spread(static_cast<const T*>(values), rows, counts);
    else
      count_whole(static_cast<const T*>(values), rows, counts);
  });
}

template <class T>
void ClassCounter::count_whole(const T* outputs, const Rows& rows, ClassCounts& counts) const {
  const bool softmax = is_softmax(whole_), planes = has_class_planes(whole_);
  const std::int64_t places = planes ? outputs_of(part_).shape.row_elems() : 1;
  std::vector<T> gathered(static_cast<std::size_t>(planes ? classes_ : 0));
  for (std::int64_t row = 0; row < rows.count; ++row) {
    if (!rows.counts(row)) continue;
    const std::int64_t label = rows.label(row);
    if (!softmax) {
      if (counts.has_curve()) counts.add_score(label, static_cast<double>(outputs[row]));
      const std::int64_t chosen = outputs[row] > 0 ? kYes : kNo;
      counts.add(label, chosen, chosen == label ? 0 : 1);
      continue;
    }
    const T* own = outputs + row / places * places * classes_ + (planes ? row % places : 0);
    if (planes) {
      for (std::int64_t k = 0; k < classes_; ++k) gathered[static_cast<std::size_t>(k)] = own[k * places];
      own = gathered.data();
    }
    if (counts.has_curve()) counts.add_score(label, static_cast<double>(own[1]) - static_cast<double>(own[0]));
    const std::int64_t position = position_of(own[label], label, own, classes_);
    counts.add(label, position == 0 ? label : first_largest(own, classes_), position);
  }
}

// First sum: by row the label's output; by row and shard its largest output and the class of that. Second: by row the
// outputs before the label's.
template <class T>
void ClassCounter::count_spread(const T* outputs, const Rows& rows, ClassCounts& counts) {
  const auto n = static_cast<std::size_t>(rows.count), shards = ends_.size();
  const auto shard = static_cast<std::size_t>(place_.shard);
  const std::int64_t first = shard == 0 ? 0 : ends_[shard - 1], held = ends_[shard] - first;
  values_.assign(n * (1 + 2 * shards), 0);
  for (std::size_t row = 0; outputs != nullptr && row < n; ++row) {
    const T* const own = outputs + static_cast<std::int64_t>(row) * held;
    const std::int64_t label = rows.label(static_cast<std::int64_t>(row)) - first;
    if (label >= 0 && label < held) values_[row] = static_cast<double>(own[label]);
    const std::int64_t most = first_largest(own, held);
    values_[n + (row * shards + shard) * 2] = static_cast<double>(own[most]);
    values_[n + (row * shards + shard) * 2 + 1] = static_cast<double>(first + most);
  }
  place_.replica->sum(values_);
  std::vector<double> positions(n);
  for (std::size_t row = 0; outputs != nullptr && row < n; ++row)
    positions[row] = static_cast<double>(position_of(static_cast<T>(values_[row]),
                                                     rows.label(static_cast<std::int64_t>(row)) - first,
                                                     outputs + static_cast<std::int64_t>(row) * held, held));
  place_.replica->sum(positions);
  for (std::size_t row = 0; place_.counts && row < n; ++row) {
    if (!rows.counts(static_cast<std::int64_t>(row))) continue;
    std::size_t best = 0;
    const auto largest = [&](std::size_t s) { return values_[n + (row * shards + s) * 2]; };
    for (std::size_t s = 1; s < shards; ++s)
      if (largest(s) > largest(best)) best = s;
    if (counts.has_curve())  // each of two shards has one class
      counts.add_score(rows.label(static_cast<std::int64_t>(row)), largest(1) - largest(0));
    counts.add(rows.label(static_cast<std::int64_t>(row)),
               static_cast<std::int64_t>(values_[n + (row * shards + best) * 2 + 1]),
               static_cast<std::int64_t>(positions[row]));
  }
}

}  // namespace echelon::inline train
