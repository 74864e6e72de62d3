// SPDX-License-Identifier: Apache-2.0
#include "model/program_body.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "base/spans.hpp"
#include "model/fuse.hpp"
#include "model/in_place.hpp"
#include "model/memory.hpp"

namespace echelon::inline model {

Program::Body::Body(const Graph& graph_, Arenas& arenas_, const ProgramOptions& options_)
    : names(graph_.value_names()),
      graph(options_.keep_values || !options_.read.empty() ? graph_ : fused(graph_)),
      arenas(arenas_),
      device(arenas_.device()),
      options(options_) {
  ECHELON_CHECK_GE(options.batch, 1);
  ECHELON_CHECK_GE(options.in_flight, 1);
  ECHELON_CHECK_EQ(graph.parameters().elems(), arenas.elems(), "the graph and the arenas belong to different models");
  ECHELON_CHECK_EQ(graph.parameters().frozen_elems(), arenas.parameters().frozen_elems(),
                   "the graph and the arenas belong to different models");
  const DType dtype = options.dtype.value_or(arenas.dtype());
  ECHELON_CHECK_EQ(name_of(wide_of(dtype)), name_of(arenas.dtype()),
                   "the arenas have the wrong dtype for activations in {}", name_of(dtype));
  lowered = lower(
      graph, device, dtype,
      {.batch = options.batch, .training = options.training, .keep_values = options.keep_values, .read = options.read});
  overlay_in_place(lowered);
  place_tensors();
  place_states();
  clear_zeros();
  bind_ops();
  for (int node = 0; node < static_cast<int>(graph.nodes().size()); ++node) ranges.push_back(range_of(node));
  for (const Node& node : graph.nodes()) node_keys.push_back(hash_name(node.of));
  if (options.replay && device.records())
    replay.emplace(device, lowered.ops, [this](int op, const PassScalars& scalars) { run(op, scalars); });
}

void Program::Body::place_tensors() {
  const int end = static_cast<int>(lowered.ops.size());
  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> owner;  // tensors with their own memory
  for (std::size_t id = 0; id < lowered.tensors.size(); ++id) {
    const LoweredTensor& tensor = lowered.tensors[id];
    const bool own = tensor.home == Home::activation && tensor.storage == static_cast<int>(id);
    if (!own || (tensor.first < 0 && !tensor.persistent)) continue;
    lifetimes.push_back(tensor.persistent ? Lifetime{tensor.bytes, 0, end}
                                          : Lifetime{tensor.bytes, tensor.first, tensor.last});
    owner.push_back(id);
  }
  const MemoryPlan plan = plan_memory(lifetimes);
  check_memory_plan(lifetimes, plan);
  offset.assign(lowered.tensors.size(), 0);
  for (std::size_t i = 0; i < owner.size(); ++i) offset[owner[i]] = plan.offsets[i];
  activations_each = (plan.bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  activations = device.allocate(activations_each * static_cast<std::size_t>(options.in_flight), "activations");
  if (lowered.scratch_bytes > 0) scratch = device.allocate(lowered.scratch_bytes, "scratch");
}

// The slots of a state tensor are consecutive.
void Program::Body::place_states() {
  ECHELON_CHECK_GE(options.state_slots, 1);
  std::size_t bytes = 0;
  for (int id : lowered.states) {
    offset[static_cast<std::size_t>(id)] = bytes;
    bytes += lowered.tensors[static_cast<std::size_t>(id)].bytes * static_cast<std::size_t>(options.state_slots);
  }
  if (bytes > 0) states = device.allocate(bytes, "recurrent states");
}

void Program::Body::clear_zeros() {
  for (std::size_t id = 0; id < lowered.tensors.size(); ++id) {
    const LoweredTensor& tensor = lowered.tensors[id];
    if (!tensor.zeros || tensor.storage != static_cast<int>(id)) continue;
    for (int which = 0; which < options.in_flight; ++which)
      device.zero(address(static_cast<int>(id), which), tensor.bytes);
  }
}

// Binds the state tensors of all ops to this slot.
void Program::Body::choose_slot(int next) {
  ECHELON_CHECK(next >= 0 && next < options.state_slots, "slot {} is not one of {} state slots", next,
                options.state_slots);
  if (next == slot || lowered.states.empty()) return;
  slot = next;
  bind_ops();
}

void* Program::Body::address(int id, int in_flight) const {
  const LoweredTensor& tensor = lowered.tensors[static_cast<std::size_t>(id)];
  switch (tensor.home) {
    case Home::weight: return arenas.weight(tensor.parameter).data;
    case Home::gradient: return arenas.gradient(tensor.parameter).data;
    case Home::row_marks: return arenas.row_marks(tensor.parameter).words;
    case Home::state:
      return states.bytes_at(offset[static_cast<std::size_t>(id)] + static_cast<std::size_t>(slot) * tensor.bytes);
    case Home::activation: break;
  }
  return activations.bytes_at(static_cast<std::size_t>(in_flight) * activations_each +
                              offset[static_cast<std::size_t>(tensor.storage)]);
}

// The data is null for id -1.
Tensor Program::Body::tensor(int id, int in_flight) const {
  if (id < 0) return {};
  const LoweredTensor& tensor = lowered.tensors[static_cast<std::size_t>(id)];
  return {.data = address(id, in_flight), .shape = tensor.shape, .dtype = tensor.dtype, .layout = tensor.layout};
}

void Program::Body::bind_ops() {
  ready_node.assign(lowered.ops.size(), -1);
  for (std::size_t node = 0; node < lowered.gradients_done.size(); ++node)
    if (lowered.gradients_done[node] >= 0)
      ready_node[static_cast<std::size_t>(lowered.gradients_done[node])] = static_cast<int>(node);
  pointers.resize(static_cast<std::size_t>(options.in_flight));
  for (int which = 0; which < options.in_flight; ++which) {
    auto& bound = pointers[static_cast<std::size_t>(which)];
    bound.resize(lowered.ops.size());
    for (std::size_t i = 0; i < lowered.ops.size(); ++i)
      for (std::size_t a = 0; lowered.ops[i].cut < 0 && a < lowered.ops[i].tensors.size(); ++a)
        bound[i][a] = address(lowered.ops[i].tensors[a], which);
  }
}

ArenaRange Program::Body::range_of(int node) const {
  std::vector<int> own = graph.nodes()[static_cast<std::size_t>(node)].parameters;
  std::erase_if(own, [&](int p) {
    return graph.parameters()[p].frozen || !graph.declares(graph.nodes()[static_cast<std::size_t>(node)], p);
  });
  if (own.empty() || graph.nodes()[static_cast<std::size_t>(node)].owner != node) return {};
  for (std::size_t j = 1; j < own.size(); ++j)
    ECHELON_CHECK_EQ(graph.parameters()[own[j]].begin, graph.parameters()[own[j - 1]].end(),
                     "the parameters of a node must be contiguous");
  return {graph.parameters()[own.front()].begin, graph.parameters()[own.back()].end()};
}

void Program::Body::transfer(const LoweredOp& op, int in_flight) {
  ECHELON_CHECK(on_transfer, "Program::set_transfer was not called, but cut {} needs it", op.cut);
  on_transfer({.cut = op.cut,
               .backward = op.backward,
               .from = tensor(op.tensors[0], in_flight),
               .to = tensor(op.tensors[1], in_flight)});
}

void Program::Body::run(int index, const PassScalars& scalars) {
  const LoweredOp& op = lowered.ops[static_cast<std::size_t>(index)];
  if (op.cut >= 0)
    transfer(op, scalars.in_flight);
  else if (pace)
    pace->run(pace_s[static_cast<std::size_t>(index)], [&] { compute(index, scalars); });
  else
    compute(index, scalars);
  if (op.summed >= 0 && sum_over_replicas) sum_over_replicas(tensor(op.summed, scalars.in_flight));
}

void Program::Body::compute(int index, const PassScalars& scalars) {
  const LoweredOp& op = lowered.ops[static_cast<std::size_t>(index)];
  OpArgs args;
  args.tensors = pointers[static_cast<std::size_t>(scalars.in_flight)][static_cast<std::size_t>(index)].data();
  args.accumulate = op.accumulate | (scalars.first ? 0U : op.first_writes);
  args.saved = op.saved >= 0 ? address(op.saved, scalars.in_flight) : nullptr;
  args.scratch = scratch.data();
  args.scale = op.scale == ScaleSource::loss_scale     ? scalars.loss_scale
               : op.scale == ScaleSource::group_weight ? scalars.group_weight
                                                       : 1.0;
  args.key = hash_combine(scalars.key, node_keys[static_cast<std::size_t>(op.node)]);
  args.parameter_version = arenas.version();
  args.count = op.count_per_sample > 0 ? op.count_per_sample * scalars.samples : op.count;
  op.op->run(args);
}

// Runs ops [begin, end), between which there is no callback except sums over replicas.
void Program::Body::run_range(int begin, int end, const PassScalars& scalars) {
  if (replay) return replay->run(begin, end, scalars);
  if (open_spans() && options.training && device.on_host()) return run_traced(begin, end, scalars);
  for (int i = begin; i < end; ++i) run(i, scalars);
}

// Records a span for each layer, or for each part of a layer that a callback interrupts.
void Program::Body::run_traced(int begin, int end, const PassScalars& scalars) {
  for (int i = begin; i < end;) {
    const int node = lowered.ops[static_cast<std::size_t>(i)].node;
    const SpanScope span(SpanKind::layer,
                         node < 0 ? nullptr : graph.nodes()[static_cast<std::size_t>(node)].name.c_str());
    for (; i < end && lowered.ops[static_cast<std::size_t>(i)].node == node; ++i) run(i, scalars);
  }
}

}  // namespace echelon::inline model
