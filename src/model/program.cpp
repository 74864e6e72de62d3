#include "model/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "base/nearest.hpp"
#include "model/fuse.hpp"
#include "model/in_place.hpp"
#include "model/lowered.hpp"
#include "model/memory.hpp"
#include "model/replay.hpp"

namespace echelon {

struct Program::Body {
  Body(const Graph& graph_, Arenas& arenas_, const ProgramOptions& options_);

  void place_tensors();
  void place_states();
  void clear_zeros();
  void bind_ops();
  void* address(int tensor, int in_flight) const;
  Tensor tensor(int id, int in_flight) const;
  void choose_slot(int wanted);
  void transfer(const LoweredOp& op, int in_flight);
  void run(int op, const PassScalars& scalars);
  void compute(int op, const PassScalars& scalars);
  void run_range(int begin, int end, const PassScalars& scalars);
  ArenaRange range_of(int node) const;

  std::vector<std::string> names;  // of the values of the graph as given
  Graph graph;
  Arenas& arenas;
  Device& device;
  ProgramOptions options;
  Lowered lowered;
  Memory activations, scratch, states;
  int slot = 0;                                                    // that `pointers` hold
  std::vector<std::size_t> offset;                                 // by tensor, of its storage
  std::size_t activations_each = 0;                                // bytes of one micro-batch in flight
  std::vector<std::vector<std::array<void*, kMaxArgs>>> pointers;  // by micro-batch in flight, then op
  std::vector<ArenaRange> ranges;                                  // by node: of the parameters that it owns
  std::vector<std::uint64_t> node_keys;                            // by node: hash of its layer's name
  std::vector<int> ready_node;  // by op: node whose gradients are written after it; -1
  std::function<void(ArenaRange)> wait_parameters;
  std::function<void(const Tensor&)> sum_over_replicas;
  std::function<void(const Transfer&)> on_transfer;
  std::optional<Replay> replay;
};

Program::Body::Body(const Graph& graph_, Arenas& arenas_, const ProgramOptions& options_)
    : names(graph_.value_names()),
      graph(options_.keep_values ? graph_ : fused(graph_)),
      arenas(arenas_),
      device(arenas_.device()),
      options(options_) {
  ECHELON_CHECK_GE(options.batch, 1);
  ECHELON_CHECK_GE(options.in_flight, 1);
  ECHELON_CHECK_EQ(graph.parameters().elems(), arenas.elems(), "graph and arenas are of different models");
  const DType dtype = options.dtype.value_or(arenas.dtype());
  ECHELON_CHECK_EQ(name_of(wide_of(dtype)), name_of(arenas.dtype()), "of arenas beside activations in {}",
                   name_of(dtype));
  lowered = lower(graph, device, dtype,
                  {.batch = options.batch, .training = options.training, .keep_values = options.keep_values});
  overlay_in_place(lowered);
  place_tensors();
  place_states();
  clear_zeros();
  bind_ops();
  for (int node = 0; node < static_cast<int>(graph.nodes().size()); ++node) ranges.push_back(range_of(node));
  for (const Node& node : graph.nodes()) node_keys.push_back(hash_name(node.of));
  if (options.replay)
    replay.emplace(device, lowered.ops, [this](int op, const PassScalars& scalars) { run(op, scalars); });
}

void Program::Body::place_tensors() {
  const int end = static_cast<int>(lowered.ops.size());
  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> owner;  // tensors with memory of their own
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

// Each state tensor has its slots behind one another.
void Program::Body::place_states() {
  ECHELON_CHECK_GE(options.state_slots, 1);
  std::size_t bytes = 0;
  for (int id : lowered.states) {
    offset[static_cast<std::size_t>(id)] = bytes;
    bytes += lowered.tensors[static_cast<std::size_t>(id)].bytes * static_cast<std::size_t>(options.state_slots);
  }
  if (bytes > 0) states = device.allocate(bytes, "carried states");
}

void Program::Body::clear_zeros() {
  for (std::size_t id = 0; id < lowered.tensors.size(); ++id) {
    const LoweredTensor& tensor = lowered.tensors[id];
    if (!tensor.zeros || tensor.storage != static_cast<int>(id)) continue;
    for (int which = 0; which < options.in_flight; ++which)
      device.zero(address(static_cast<int>(id), which), tensor.bytes);
  }
}

// Ops read and write the states of this slot from now on.
void Program::Body::choose_slot(int wanted) {
  ECHELON_CHECK(wanted >= 0 && wanted < options.state_slots, "slot {} of {}", wanted, options.state_slots);
  if (wanted == slot || lowered.states.empty()) return;
  slot = wanted;
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

// Nothing: a tensor of no data.
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
  const std::vector<int>& own = graph.nodes()[static_cast<std::size_t>(node)].parameters;
  if (own.empty() || graph.nodes()[static_cast<std::size_t>(node)].owner != node) return {};
  for (std::size_t j = 1; j < own.size(); ++j)
    ECHELON_CHECK_EQ(graph.parameters()[own[j]].begin, graph.parameters()[own[j - 1]].end(),
                     "parameters of a node lie side by side");
  return {graph.parameters()[own.front()].begin, graph.parameters()[own.back()].end()};
}

void Program::Body::transfer(const LoweredOp& op, int in_flight) {
  ECHELON_CHECK(on_transfer, "nobody takes what travels at cut {}", op.cut);
  on_transfer({.cut = op.cut,
               .backward = op.backward,
               .from = tensor(op.tensors[0], in_flight),
               .to = tensor(op.tensors[1], in_flight)});
}

void Program::Body::run(int index, const PassScalars& scalars) {
  const LoweredOp& op = lowered.ops[static_cast<std::size_t>(index)];
  op.cut >= 0 ? transfer(op, scalars.in_flight) : compute(index, scalars);
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

// Ops [begin, end), with no callback of the caller's between them but sums over replicas.
void Program::Body::run_range(int begin, int end, const PassScalars& scalars) {
  if (replay) return replay->run(begin, end, scalars);
  for (int i = begin; i < end; ++i) run(i, scalars);
}

Program::Program(const Graph& graph, Arenas& arenas, const ProgramOptions& options)
    : body_(std::make_unique<Body>(graph, arenas, options)) {}
Program::~Program() = default;

std::int64_t Program::batch() const { return body_->options.batch; }

bool Program::has_input(std::string_view name) const {
  const ValueId id = body_->graph.find(name);
  return id >= 0 && body_->graph.values()[static_cast<std::size_t>(id)].producer < 0;
}

Tensor Program::input(std::string_view name, int in_flight) const {
  ECHELON_CHECK(has_input(name), "the graph has no input '{}'", name);
  const ValueId id = body_->graph.find(name);
  return body_->tensor(body_->lowered.values[static_cast<std::size_t>(id)], in_flight);
}

Tensor Program::value(std::string_view name) const {
  if (std::find(body_->names.begin(), body_->names.end(), name) == body_->names.end())
    throw ConfigError(unknown_name("value", name, body_->names));
  const ValueId id = body_->graph.find(name);  // none: its layer runs as part of another
  const int tensor = id < 0 ? -1 : body_->lowered.values[static_cast<std::size_t>(id)];
  const auto info_of = [&](int t) -> const LoweredTensor& {
    return body_->lowered.tensors[static_cast<std::size_t>(t)];
  };
  if (tensor < 0 || !info_of(info_of(tensor).storage).persistent)
    throw ConfigError(
        fmt::format("value '{}' shares its memory with later ones; build the program with keep_values", name));
  const LoweredTensor& info = info_of(tensor);
  if (info.layout != Layout::plain)
    throw ConfigError(
        fmt::format("value '{}' lies {} on {}, not plain", name, name_of(info.layout), body_->device.name()));
  return body_->tensor(tensor, 0);
}

void Program::forward(const PassScalars& scalars) {
  Body& b = *body_;
  ECHELON_CHECK(scalars.in_flight >= 0 && scalars.in_flight < b.options.in_flight, "micro-batch {} of {} in flight",
                scalars.in_flight, b.options.in_flight);
  b.choose_slot(scalars.slot);
  int begin = 0;
  const auto run_until = [&](int end) { b.run_range(std::exchange(begin, end), end, scalars); };
  for (std::size_t node = 0; node < b.graph.nodes().size(); ++node) {
    if (!b.wait_parameters || b.ranges[node].elems() == 0) continue;
    run_until(b.lowered.forward_begin[node]);
    b.wait_parameters(b.ranges[node]);
  }
  run_until(b.lowered.forward_ops);
}

void Program::backward(const PassScalars& scalars, const std::function<void(ArenaRange)>& ready) {
  Body& b = *body_;
  ECHELON_CHECK(b.options.training, "an evaluation program has no backward pass");
  b.choose_slot(scalars.slot);
  if (scalars.first && !b.arenas.tracks_rows()) b.arenas.clear_tables();
  int begin = b.lowered.forward_ops;
  const auto run_until = [&](int end) { b.run_range(std::exchange(begin, end), end, scalars); };
  const int end = static_cast<int>(b.lowered.ops.size());
  for (int i = begin; i < end && ready; ++i)
    if (const int node = b.ready_node[static_cast<std::size_t>(i)]; node >= 0) {
      run_until(i + 1);
      ready(b.ranges[static_cast<std::size_t>(node)]);
    }
  run_until(end);
}

void Program::set_sum_over_replicas(std::function<void(const Tensor&)> sum) {
  body_->sum_over_replicas = std::move(sum);
}

void Program::set_wait_parameters(std::function<void(ArenaRange)> wait) { body_->wait_parameters = std::move(wait); }

void Program::set_transfer(std::function<void(const Transfer&)> transfer) { body_->on_transfer = std::move(transfer); }

LossSums Program::losses() {
  LossSums all;
  for (int which = 0; which < body_->options.in_flight && body_->lowered.loss_sums >= 0; ++which) {
    std::array<double, 3> sums{};
    body_->device.to_host(sums.data(), body_->address(body_->lowered.loss_sums, which), sizeof(sums));
    all.loss += sums[0];
    all.correct += sums[1];
    all.weight += sums[2];
  }
  return all;
}

void Program::reset_losses() {
  for (int which = 0; which < body_->options.in_flight && body_->lowered.loss_sums >= 0; ++which)
    body_->device.zero(body_->address(body_->lowered.loss_sums, which), 3 * sizeof(double));
}

bool Program::has_states() const { return !body_->lowered.states.empty(); }

void Program::reset_states() {
  if (has_states()) body_->device.zero(body_->states.data(), body_->states.bytes());
}

void Program::visit_state(StateVisitor& visitor) {
  Body& b = *body_;
  for (int id : b.lowered.states) {
    const LoweredTensor& tensor = b.lowered.tensors[static_cast<std::size_t>(id)];
    void* data = b.states.bytes_at(b.offset[static_cast<std::size_t>(id)]);
    std::vector<std::byte> host(tensor.bytes * static_cast<std::size_t>(b.options.state_slots));
    b.device.to_host(host.data(), data, host.size());
    visitor.tensor({.name = tensor.name,
                    .data = host.data(),
                    .dtype = tensor.dtype,
                    .shape = tensor.shape.prepended(b.options.state_slots),
                    .placement = Placement::per_replica,
                    .global_shape = {},
                    .offset = {},
                    .other_k = OtherK::reset});
    if (visitor.loading()) b.device.to_device(data, host.data(), host.size());
  }
}

std::size_t Program::activation_bytes() const { return body_->activations.bytes(); }
std::size_t Program::scratch_bytes() const { return body_->scratch.bytes(); }

std::vector<OpReport> Program::ops() const {
  std::vector<OpReport> reports;
  for (const LoweredOp& op : body_->lowered.ops)
    if (op.op)
      reports.push_back({.node = body_->graph.nodes()[static_cast<std::size_t>(op.node)].name,
                         .backward = op.backward,
                         .spec = op.spec,
                         .implementation = op.op->implementation()});
  return reports;
}

std::vector<OpReport> Program::profile() {
  std::vector<OpReport> reports = ops();
  const PassScalars scalars{.loss_scale = 1.0 / static_cast<double>(body_->options.batch)};
  std::size_t report = 0;
  for (std::size_t i = 0; i < body_->lowered.ops.size(); ++i) {
    if (!body_->lowered.ops[i].op) continue;
    body_->device.synchronize();
    const double start = now_s();
    body_->run(static_cast<int>(i), scalars);
    body_->device.synchronize();
    reports[report++].seconds = now_s() - start;
  }
  return reports;
}

}  // namespace echelon
