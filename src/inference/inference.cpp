// SPDX-License-Identifier: Apache-2.0
#include "inference/inference.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/progress.hpp"
#include "comm/collective/message.hpp"
#include "comm/group.hpp"
#include "train/class_counter.hpp"
#include "train/run_plan.hpp"
#include "train/set_inputs.hpp"

namespace echelon::inline inference {
namespace {

// Whether the outputs of the model, the first input of the loss, are class logits.
bool gives_classes(const Graph& graph) {
  return graph.nodes()[static_cast<std::size_t>(graph.loss())].layer->reads_logits();
}

const Value& outputs_of(const Graph& graph) {
  const Node& loss = graph.nodes()[static_cast<std::size_t>(graph.loss())];
  return graph.values()[static_cast<std::size_t>(loss.inputs.front())];
}

// An empty tensor of a batch for the value of this name.
LayerValues layer_values(const Graph& graph, const std::string& name, DType dtype) {
  const Value& value = graph.values()[static_cast<std::size_t>(graph.find(name))];
  return {.name = name, .shape = value.shape, .dtype = dtype, .bytes = {}};
}

std::size_t bytes_each(const LayerValues& values) {
  return static_cast<std::size_t>(values.shape.elems()) * size_of(values.dtype);
}

// Fills in the first `n` samples of the program's batch.
void fetch(Device& device, const Program& program, std::size_t n, LayerValues& values) {
  const Tensor tensor = program.value(values.name);
  ECHELON_CHECK_EQ(name_of(tensor.dtype), name_of(values.dtype), "dtype of '{}'", values.name);
  values.bytes.resize(n * bytes_each(values));
  device.to_host(values.bytes.data(), tensor.data, values.bytes.size());
}

bool has_class_planes(const Graph& graph) {
  return graph.nodes()[static_cast<std::size_t>(graph.loss())].layer->has_class_planes();
}

// The shape of the classes of one sample.
Shape places_of(const Graph& graph) {
  const Shape& output = outputs_of(graph).shape;
  if (has_class_planes(graph)) return output.without_front();
  return Shape(output.extents().first(static_cast<std::size_t>(output.rank() - 1)));
}

// Turns logits (.., classes, places) into probabilities; returns the likeliest class of each place.
template <class T>
std::vector<std::int32_t> to_probabilities(T* values, std::size_t count, std::int64_t classes, std::int64_t places) {
  std::vector<std::int32_t> chosen(count / static_cast<std::size_t>(classes));
  for (std::size_t at = 0; at < chosen.size(); ++at) {
    const auto place = static_cast<std::int64_t>(at);
    T* const row = values + place / places * places * classes + place % places;
    std::int64_t most = 0;
    for (std::int64_t k = 1; k < classes; ++k)
      if (row[k * places] > row[most * places]) most = k;
    const T top = row[most * places];
    double sum = 0;
    for (std::int64_t k = 0; k < classes; ++k)
      sum += static_cast<double>(row[k * places] = std::exp(row[k * places] - top));
    for (std::int64_t k = 0; k < classes; ++k)
      row[k * places] = static_cast<T>(static_cast<double>(row[k * places]) / sum);
    chosen[at] = static_cast<std::int32_t>(most);
  }
  return chosen;
}

// Runs a first, untimed pass, in which a program builds the library's primitives.
void warm_up(Device& device, Program& program, const Batch& batch) {
  set_inputs(device, program, batch);
  program.forward({});
  program.reset_states();
  program.reset_losses();
}

constexpr int kSumsChannel = 0;
constexpr int kResultsChannel = 1;  // and the following ones, one per rank

// Sends predictions of other ranks to rank 0, one message per batch: the chosen classes, then the outputs and layers.
class Results {
 public:
  // `empty`: a batch without samples, of the model's shapes.
  Results(Engine* ranks, const Graph& graph, InferenceBatch empty, bool outputs)
      : ranks_(ranks), empty_(std::move(empty)), classes_(gives_classes(graph)), outputs_(outputs || !classes_) {}

  // Waits until the last batch has been sent.
  void send(const InferenceBatch& batch) {
    sent_.wait();
    message_.resize(bytes_of(batch.ids.size()));
    std::byte* to = message_.data();
    const auto put = [&](std::span<const std::byte> from) { to = std::copy(from.begin(), from.end(), to); };
    put(std::as_bytes(std::span(batch.chosen)));
    if (outputs_) put(batch.outputs.bytes);
    for (const LayerValues& layer : batch.layers) put(layer.bytes);
    sent_ = submit(make_send_to(0, static_cast<std::int64_t>(message_.size())), ranks_->rank());
  }
  void finish() { sent_.wait(); }

  InferenceBatch receive(int rank, std::vector<std::int64_t> ids) {
    message_.resize(bytes_of(ids.size()));
    submit(make_receive_from(rank, static_cast<std::int64_t>(message_.size())), rank).wait();
    InferenceBatch batch = empty_;
    batch.ids = std::move(ids);
    const std::byte* from = message_.data();
    const auto take = [&](std::span<std::byte> to) {
      std::copy_n(from, to.size(), to.begin());
      from += to.size();
    };
    const auto take_values = [&](LayerValues& values) {
      values.bytes.resize(batch.ids.size() * bytes_each(values));
      take(values.bytes);
    };
    if (classes_) batch.chosen.resize(batch.ids.size() * rows());
    take(std::as_writable_bytes(std::span(batch.chosen)));
    if (outputs_) take_values(batch.outputs);
    for (LayerValues& layer : batch.layers) take_values(layer);
    return batch;
  }

 private:
  std::size_t rows() const { return static_cast<std::size_t>(empty_.places.elems()); }
  std::size_t bytes_of(std::size_t samples) const {
    std::size_t each = (classes_ ? rows() * sizeof(std::int32_t) : 0) + (outputs_ ? bytes_each(empty_.outputs) : 0);
    for (const LayerValues& layer : empty_.layers) each += bytes_each(layer);
    return samples * each;
  }
  Ticket submit(std::shared_ptr<const Plan> plan, int rank) {
    return ranks_->submit({.plan = std::move(plan),
                           .data = message_.data(),
                           .dtype = DType::u8,
                           .channel = kResultsChannel + rank,
                           .priority = 0,
                           .after = nullptr});
  }

  Engine* ranks_;
  InferenceBatch empty_;
  bool classes_, outputs_;
  std::vector<std::byte> message_;
  Ticket sent_;
};

// One rank's share of the pass.
class Share {
 public:
  // `empty`: a batch without samples, of the model's shapes.
  Share(LoadedModel& model, const Dataset& data, const Config& config, const SamplePlan& plan, int rank,
        const InferenceBatch& empty, const std::vector<std::string>& layers)
      : model_(model),
        empty_(empty),
        labelled_(data.labelled),
        counter_(model.graph()),
        value_counter_(model.graph()),
        plan_(plan),
        rank_(rank),
        loader_(data, plan, evaluation_loading(config, model.arenas().dtype(), rank)),
        program_(model.graph(), model.arenas(), {.batch = plan.batch(rank), .training = false, .read = layers}) {}

  // Returns the next batch; sets `figures`: loss, correct predictions, weight, seconds; adds its labels to `classes`;
  // sets `values`, if not null, to its sums of numbers.
  InferenceBatch next(std::int64_t step, double* figures, ClassCounts& classes, double* values) {
    const Batch& given = loader_.next();
    if (step == 0) warm_up(model_.device(), program_, given);
    const double start = now_s();
    set_inputs(model_.device(), program_, given);
    begin_series(program_, given);
    program_.reset_losses();
    program_.forward({});
    InferenceBatch result = empty_;
    result.ids = counted_ids(plan_, step, rank_);
    LayerValues& outputs = result.outputs;
    fetch(model_.device(), program_, result.ids.size(), outputs);
    figures[3] = now_s() - start;
    for (LayerValues& layer : result.layers) fetch(model_.device(), program_, result.ids.size(), layer);
    if (gives_classes(model_.graph()))
      result.chosen = with_float(outputs.dtype, [&]<class T>(T) {
        return to_probabilities(reinterpret_cast<T*>(outputs.bytes.data()), outputs.bytes.size() / sizeof(T),
                                outputs.shape.elems() / result.places.elems(),
                                has_class_planes(model_.graph()) ? result.places.elems() : 1);
      });
    const LossSums sums = program_.losses();
    if (classes.any() && labelled_) counter_.count(model_.device(), program_, given, classes);
    if (values != nullptr) value_counter_.count(model_.device(), program_, given, values);
    figures[0] = sums.loss, figures[1] = sums.correct, figures[2] = sums.weight;
    return result;
  }

 private:
  LoadedModel& model_;
  const InferenceBatch& empty_;
  bool labelled_;
  ClassCounter counter_;
  ValueCounter value_counter_;
  const SamplePlan& plan_;
  int rank_;
  Loader loader_;
  Program program_;
};

}  // namespace

void demand_layers(const Graph& graph, const std::vector<std::string>& layers) {
  std::vector<std::string> known;
  for (const Value& value : graph.values())
    if (value.producer >= 0 && value.producer != graph.loss() && value.type == ValueType::real)
      known.push_back(value.name);
  for (const std::string& name : layers)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw ConfigError(unknown_name("layer", name, known));
}

double InferenceSummary::latency(double part) const {
  if (latencies.empty()) return 0;
  const auto last = static_cast<double>(latencies.size() - 1);
  return latencies[static_cast<std::size_t>(std::lround(part * last))];
}

SamplePlan inference_plan(const Dataset& data, const Config& config, int ranks) {
  const SamplePlan alone = evaluation_plan(data, config, 1);
  const auto parts = static_cast<int>(std::min<std::int64_t>(ranks, alone.stream() ? 1 : alone.steps_per_epoch()));
  if (parts == 1) return alone;
  DataConfig in_order;
  in_order.sharding = Sharding::record;
  in_order.ragged = Ragged::zero_weight;
  in_order.shuffle = false;
  const std::vector<std::int64_t> batches(static_cast<std::size_t>(parts), alone.batch(0));
  return SamplePlan(plan_request(data, in_order, batches, 0));
}

std::vector<std::int64_t> counted_ids(const SamplePlan& plan, std::int64_t step, int rank) {
  std::vector<std::int64_t> ids;
  for (const SampleSlot& slot : plan.ids(0, step, rank))  // samples that only fill up the last step come last
    if (slot.counts) ids.push_back(slot.id);
  return ids;
}

InferenceSummary infer(LoadedModel& model, const Dataset& data, const Config& config, const InferenceOptions& options) {
  constexpr std::size_t kFigures = 4;
  const int rank = options.ranks != nullptr ? options.ranks->rank() : 0;
  const SamplePlan plan = inference_plan(data, config, options.ranks != nullptr ? options.ranks->size() : 1);
  const auto parts = static_cast<std::size_t>(plan.replicas());
  std::vector<double> figures(static_cast<std::size_t>(plan.steps_per_epoch()) * parts * kFigures);  // by batch
  ClassCounts classes;
  if (const std::int64_t count = data.labelled ? classes_of(model.graph()) : 0; count > 0)
    classes = ClassCounts(count, options.confusion && count <= ClassCounts::kMostConfused, count == 2);
  const ValueCounter value_counter(model.graph());
  const std::size_t each = data.labelled && gives_numbers(model.graph()) ? value_counter.sums() : 0;
  std::vector<double> values(figures.size() / kFigures * each);  // by batch
  const DType dtype = model.arenas().dtype();
  InferenceBatch empty{.ids = {},
                       .places = places_of(model.graph()),
                       .chosen = {},
                       .outputs = layer_values(model.graph(), outputs_of(model.graph()).name, dtype),
                       .layers = {}};
  for (const std::string& layer : options.layers) empty.layers.push_back(layer_values(model.graph(), layer, dtype));
  Results results(options.ranks, model.graph(), empty, options.outputs);
  std::optional<Share> share;
  if (rank < plan.replicas()) share.emplace(model, data, config, plan, rank, empty, options.layers);

  LongWork work("evaluation", "batches", plan.steps_per_epoch(),
                rank == 0 ? progress_style(config.run.progress) : ProgressStyle::none, config.run.heartbeat_s);
  for (std::int64_t step = 0; share && step < plan.steps_per_epoch(); ++step) {
    work.at(step);
    if (counted_ids(plan, step, rank).empty()) break;  // the last step has fewer batches than ranks
    const std::size_t batch = static_cast<std::size_t>(step) * parts + static_cast<std::size_t>(rank);
    const InferenceBatch own = share->next(step, figures.data() + batch * kFigures, classes,
                                           each > 0 ? values.data() + batch * each : nullptr);
    if (!options.take) continue;
    if (rank > 0) {
      results.send(own);
      continue;
    }
    options.take(own);
    for (int other = 1; other < plan.replicas(); ++other)
      if (std::vector<std::int64_t> ids = counted_ids(plan, step, other); !ids.empty())
        options.take(results.receive(other, std::move(ids)));
  }
  results.finish();
  if (options.ranks != nullptr) {
    Group ranks(*options.ranks, kSumsChannel);
    ranks.sum(figures);
    if (classes.any()) ranks.sum(classes.values());
    if (each > 0) ranks.sum(values);
  }

  InferenceSummary summary{.samples = data.samples(),
                           .ranks = plan.replicas(),
                           .sums = {},
                           .classes = std::move(classes),
                           .values = {},
                           .latencies = {}};
  if (each > 0) summary.values = value_counter.figures(values);
  for (std::size_t at = 0; at < figures.size(); at += kFigures) {
    summary.sums.loss += figures[at];
    summary.sums.correct += figures[at + 1];
    summary.sums.weight += figures[at + 2];
    if (figures[at + 3] > 0) summary.latencies.push_back(figures[at + 3]);
  }
  summary.accuracy = data.label_weights.by_class.empty() || !summary.classes.any()
                         ? summary.sums.correct / summary.sums.weight
                         : summary.classes.accuracy();
  std::sort(summary.latencies.begin(), summary.latencies.end());
  return summary;
}

}  // namespace echelon::inline inference
