// SPDX-License-Identifier: Apache-2.0
#include "inference/step_model.hpp"

#include <cstring>

#include "base/check.hpp"
#include "checkpoint/quantise.hpp"

namespace echelon::inline inference {
namespace {

// Repeats each row of `values` `times` times.
std::vector<std::byte> repeated(const std::vector<std::byte>& values, std::int64_t rows, std::int64_t times) {
  const std::size_t row = values.size() / static_cast<std::size_t>(rows);
  std::vector<std::byte> all(values.size() * static_cast<std::size_t>(times));
  auto to = all.begin();
  for (auto from = values.begin(); from != values.end(); from += static_cast<std::ptrdiff_t>(row))
    for (std::int64_t i = 0; i < times; ++i) to = std::copy_n(from, row, to);
  return all;
}

void fill(Device& device, const Tensor& input, const void* values, std::size_t bytes) {
  ECHELON_CHECK_EQ(input.bytes(), bytes, "an input of a step has the wrong size");
  device.to_device(input.data, values, bytes);
}

}  // namespace

StepwiseModel::StepwiseModel(StepGraphs graphs, Device& device, DType dtype, std::int64_t sentences, std::int64_t beams)
    : graphs_(std::move(graphs)), device_(device), sentences_(sentences), beams_(beams) {
  const auto program = [&](const Graph& graph, std::unique_ptr<Arenas>& arenas, std::int64_t batch) {
    arenas = std::make_unique<Arenas>(device_, graph.parameters(), wide_of(dtype));
    return std::make_unique<Program>(graph, *arenas,
                                     ProgramOptions{.batch = batch, .training = false, .keep_values = true});
  };
  if (graphs_.encoder) encoder_ = program(*graphs_.encoder, encoder_arenas_, sentences_);
  step_ = program(graphs_.step, step_arenas_, rows());
  begin();
}

void StepwiseModel::visit_weights(StateVisitor& visitor) {
  for (Arenas* arenas : {encoder_arenas_.get(), step_arenas_.get()}) {
    if (arenas == nullptr) continue;
    arenas->visit_state(visitor);
    arenas->touch();
  }
}

void StepwiseModel::quantise_weights() {
  if (graphs_.encoder) quantise(*encoder_arenas_, *graphs_.encoder);
  quantise(*step_arenas_, graphs_.step);
}

std::int64_t StepwiseModel::classes() const { return step_->value(graphs_.logits).elems() / rows(); }

void StepwiseModel::begin() {
  states_.clear();
  for (const StepState& state : graphs_.states)
    states_.emplace_back(static_cast<std::size_t>(rows() * state.units) * size_of(step_arenas_->dtype()));
}

void StepwiseModel::begin(const SourceTexts& sources) {
  begin();
  if (encoder_ != nullptr) encode(sources);
}

std::vector<std::byte> StepwiseModel::value_of(Program& program, const std::string& name) {
  const Tensor tensor = program.value(name);
  std::vector<std::byte> values(tensor.bytes());
  device_.to_host(values.data(), tensor.data, tensor.bytes());
  return values;
}

void StepwiseModel::encode(const SourceTexts& sources) {
  const Tensor samples = encoder_->input("samples");
  fill(device_, samples, sources.tokens, samples.bytes());
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(sentences_),
                                    static_cast<std::int32_t>(samples.elems() / sentences_));
  if (sources.lengths != nullptr) std::copy_n(sources.lengths, lengths.size(), lengths.begin());
  if (encoder_->has_input("lengths"))
    fill(device_, encoder_->input("lengths"), lengths.data(), lengths.size() * sizeof(std::int32_t));
  encoder_->forward({});
  for (const std::string& name : graphs_.handed) {
    const std::vector<std::byte> values = repeated(value_of(*encoder_, name), sentences_, beams_);
    fill(device_, step_->input(name), values.data(), values.size());
  }
  if (graphs_.lengths) {
    std::vector<std::int32_t> all;
    for (const std::int32_t length : lengths) all.insert(all.end(), static_cast<std::size_t>(beams_), length);
    fill(device_, step_->input("lengths"), all.data(), all.size() * sizeof(std::int32_t));
  }
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (const std::string& initial = graphs_.states[i].initial; !initial.empty())
      states_[i] = repeated(value_of(*encoder_, initial), sentences_, beams_);
}

std::span<const double> StepwiseModel::read(std::span<const std::int32_t> tokens) {
  fill(device_, step_->input(graphs_.token), tokens.data(), tokens.size_bytes());
  for (std::size_t i = 0; i < states_.size(); ++i)
    fill(device_, step_->input(graphs_.states[i].input), states_[i].data(), states_[i].size());
  step_->forward({});
  for (std::size_t i = 0; i < states_.size(); ++i) states_[i] = value_of(*step_, graphs_.states[i].output);
  const std::vector<std::byte> values = value_of(*step_, graphs_.logits);
  with_float(step_->value(graphs_.logits).dtype, [&]<class T>(T) {
    std::vector<T> logits(values.size() / sizeof(T));
    std::memcpy(logits.data(), values.data(), values.size());
    logits_.assign(logits.begin(), logits.end());
  });
  return logits_;
}

void StepwiseModel::go_on_from(std::span<const std::int64_t> from) {
  ECHELON_CHECK_EQ(std::ssize(from), rows(), "there must be one row to continue for each row of the model");
  for (std::vector<std::byte>& state : states_) {
    const std::vector<std::byte> before = state;
    const std::size_t row = state.size() / from.size();
    for (std::size_t r = 0; r < from.size(); ++r)
      std::memcpy(state.data() + r * row, before.data() + static_cast<std::size_t>(from[r]) * row, row);
  }
}

}  // namespace echelon::inline inference
