// SPDX-License-Identifier: Apache-2.0
#include "verify/trainer.hpp"

#include <numeric>

#include "base/check.hpp"
#include "base/hash_rng.hpp"

namespace echelon::verify {
namespace {

template <class T>
void fill_as(Device& device, const Tensor& tensor, const std::vector<double>& values) {
  const std::vector<T> converted(values.begin(), values.end());
  device.to_device(tensor.data, converted.data(), tensor.bytes());
}

void fill(Device& device, const Tensor& tensor, const std::vector<double>& values) {
  ECHELON_CHECK_EQ(static_cast<std::int64_t>(values.size()), tensor.elems());
  if (tensor.dtype == DType::i32) return fill_as<std::int32_t>(device, tensor, values);
  with_float(tensor.dtype, [&]<class T>(T) { fill_as<T>(device, tensor, values); });
}

// The range of the indices that the graph reads: rows of an embedding's weights.
std::int64_t vocabulary_of(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (node.inputs.front() == 0 && !node.parameters.empty())
      return graph.parameters()[node.parameters.front()].shape[0];
  ECHELON_CHECK(false, "no layer learns from the samples");
}

}  // namespace

double PlainBatch::weight() const { return std::accumulate(weights.begin(), weights.end(), 0.0); }

SampleForm form_of(const Graph& graph) {
  const auto value = [&](const char* name) -> const Value& {
    return graph.values()[static_cast<std::size_t>(graph.find(name))];
  };
  const Node& loss = graph.nodes()[static_cast<std::size_t>(graph.loss())];
  const Shape& output = graph.values()[static_cast<std::size_t>(loss.outputs[0])].shape;
  SampleForm form{.shape = value("samples").shape, .label = value("labels").shape};
  if (value("samples").type == ValueType::index) form.vocabulary = vocabulary_of(graph);
  form.dense = loss.layer->has_class_planes();
  if (value("labels").type == ValueType::index)
    form.classes = std::max<std::int64_t>(2, output[form.dense ? 0 : output.rank() - 1]);
  form.lengths = graph.find("lengths") >= 0;
  if (graph.find("target") >= 0) form.target = value("target").shape[0];
  return form;
}

PlainBatch hashed_batch(const SampleForm& form, std::int64_t first_id, std::int64_t n, std::uint64_t name) {
  PlainBatch batch;
  for (std::int64_t id = first_id; id < first_id + n; ++id) {
    const HashRng rng = HashRng(name, "sample").at(static_cast<std::uint64_t>(id));
    std::uint64_t drawn = 0;
    const auto draw = [&](std::vector<double>& values, std::int64_t count, std::int64_t below) {
      for (std::int64_t i = 0; i < count; ++i, ++drawn)
        values.push_back(below > 0 ? static_cast<double>(rng.below(drawn, static_cast<std::uint64_t>(below)))
                                   : 2 * rng.uniform(drawn) - 1);
    };
    draw(batch.samples, form.shape.elems(), form.vocabulary);
    draw(batch.labels, form.label.elems(), form.classes);
    draw(batch.target, form.target, form.classes);
    if (form.lengths) {
      draw(batch.lengths, 1, form.shape[0]);
      batch.lengths.back() += 1;
    }
    for (std::int64_t i = 0; i < form.label.elems(); ++i) batch.weights.push_back(1);
    batch.ids.push_back(static_cast<double>(id));
  }
  return batch;
}

PlainBatch part_of(const PlainBatch& batch, std::int64_t first, std::int64_t n) {
  const auto slice = [&](const std::vector<double>& all) {
    const auto row = static_cast<std::ptrdiff_t>(all.size()) / batch.n();
    return std::vector<double>(all.begin() + first * row, all.begin() + (first + n) * row);
  };
  return {.samples = slice(batch.samples),
          .labels = slice(batch.labels),
          .weights = slice(batch.weights),
          .target = slice(batch.target),
          .lengths = slice(batch.lengths),
          .ids = slice(batch.ids)};
}

std::vector<double> fetch(Device& device, const void* data, std::int64_t elems, DType dtype) {
  return with_float(dtype, [&]<class T>(T) {
    std::vector<T> values(static_cast<std::size_t>(elems));
    device.to_host(values.data(), data, values.size() * sizeof(T));
    return std::vector<double>(values.begin(), values.end());
  });
}

std::uint64_t step_key(std::int64_t step) { return HashRng(1, "trainee").at(static_cast<std::uint64_t>(step)).key(); }

void load_batch(Device& device, const Program& program, const PlainBatch& batch, int in_flight) {
  const auto give = [&](const char* name, const std::vector<double>& values) {
    if (program.has_input(name)) fill(device, program.input(name, in_flight), values);
  };
  give("samples", batch.samples);
  give("labels", batch.labels);
  give("weights", batch.weights);
  give("target", batch.target);
  give("lengths", batch.lengths);
  give("ids", batch.ids);
}

Trainer::Trainer(const Graph& graph, std::int64_t batch, const TrainerOptions& options)
    : Trainer(graph, batch, options, open_device(options.device, {})) {}

Trainer::Trainer(const Graph& graph, std::int64_t batch, const TrainerOptions& options, std::unique_ptr<Device> device)
    : graph_(graph),
      device_(std::move(device)),
      arenas_(std::make_unique<Arenas>(*device_, graph.parameters(), options.dtype)) {
  arenas_->initialise(options.seed);
  program_ = std::make_unique<Program>(
      graph_, *arenas_,
      ProgramOptions{.batch = batch,
                     .training = options.training,
                     .dtype = is_half(options.activations) ? options.activations : options.dtype,
                     .keep_values = options.keep_values,
                     .replay = options.replay});
}

PassScalars Trainer::scalars() const {
  PassScalars scalars;
  scalars.samples = samples_;
  scalars.key = step_key(step_);
  return scalars;
}

double Trainer::loss(const PlainBatch& batch) {
  load(batch);
  program_->reset_losses();
  program_->forward(scalars());
  return program_->losses().loss;
}

void Trainer::gradients(const PlainBatch& batch, double step_weight, bool first,
                        const std::function<void(ArenaRange)>& ready) {
  load(batch);
  PassScalars pass = scalars();
  pass.loss_scale = loss_scale_ / step_weight;
  pass.group_weight = batch.weight() / step_weight;
  pass.first = first;
  program_->forward(pass);
  program_->backward(pass, ready);
}

void Trainer::write_weight(std::int64_t elem, double value) {
  with_float(arenas_->dtype(), [&]<class T>(T) {
    const T narrow = static_cast<T>(value);
    device_->to_device(arenas_->weights_at(elem), &narrow, sizeof(T));
  });
  arenas_->touch();
}

std::vector<double> Trainer::read(const Tensor& tensor) const {
  return fetch(*device_, tensor.data, tensor.elems(), tensor.dtype);
}

std::vector<double> Trainer::read(const void* arena) const {
  return fetch(*device_, arena, arenas_->elems(), arenas_->dtype());
}

}  // namespace echelon::verify
