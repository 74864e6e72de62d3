// SPDX-License-Identifier: Apache-2.0
#include "model/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "base/nearest.hpp"
#include "model/program_body.hpp"

namespace echelon::inline model {
namespace {

constexpr std::size_t kLossBytes = 3 * sizeof(double);  // size of LossSums on the device

}  // namespace

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
  const ValueId id = body_->graph.find(name);  // -1: its layer is fused into another one
  const int tensor = id < 0 ? -1 : body_->lowered.values[static_cast<std::size_t>(id)];
  const auto info_of = [&](int t) -> const LoweredTensor& {
    return body_->lowered.tensors[static_cast<std::size_t>(t)];
  };
  if (tensor < 0 || !info_of(info_of(tensor).storage).persistent)
    throw ConfigError(
        fmt::format("value '{}' shares its memory with later values; build the program with keep_values", name));
  const LoweredTensor& info = info_of(tensor);
  if (info.layout != Layout::plain)
    throw ConfigError(fmt::format("value '{}' has layout {} on device {}, but only plain values can be read", name,
                                  name_of(info.layout), body_->device.name()));
  return body_->tensor(tensor, 0);
}

void Program::forward(const PassScalars& scalars) {
  Body& b = *body_;
  ECHELON_CHECK(scalars.in_flight >= 0 && scalars.in_flight < b.options.in_flight,
                "micro-batch {} exceeds the {} in flight", scalars.in_flight, b.options.in_flight);
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

void Program::set_pace(StepPace& pace, double passes) {
  Body& b = *body_;
  ECHELON_CHECK(b.device.on_host() && !b.replay,
                "a paced program needs ops that are done when their call returns; those of device {} are not",
                b.device.name());
  std::vector<OpSpec> specs;
  for (const LoweredOp& op : b.lowered.ops)
    if (op.cut < 0) specs.push_back(op.spec);
  const std::vector<double> seconds = pace.seconds_of(specs, passes);
  b.pace = &pace;
  b.pace_s.clear();
  for (std::size_t computed = 0; const LoweredOp& op : b.lowered.ops)
    b.pace_s.push_back(op.cut < 0 ? seconds[computed++] : 0);
}

std::size_t Program::input_bytes() const {
  std::size_t bytes = 0;
  for (const Value& value : body_->graph.values())
    if (value.producer < 0) bytes += input(value.name).bytes();
  return bytes;
}

LossSums Program::losses() {
  LossSums all;
  for (int which = 0; which < body_->options.in_flight && body_->lowered.loss_sums >= 0; ++which) {
    std::array<double, 3> sums{};
    body_->device.to_host(sums.data(), body_->address(body_->lowered.loss_sums, which), kLossBytes);
    all.loss += sums[0];
    all.correct += sums[1];
    all.weight += sums[2];
  }
  return all;
}

void Program::send_losses() {
  Body& b = *body_;
  if (b.lowered.loss_sums < 0) return;
  const auto in_flight = static_cast<std::size_t>(b.options.in_flight);
  if (b.losses.data() == nullptr) b.losses = b.device.allocate_host(in_flight * kLossBytes);
  for (std::size_t which = 0; which < in_flight; ++which)
    b.device.to_host_async(b.losses.bytes_at(which * kLossBytes),
                           b.address(b.lowered.loss_sums, static_cast<int>(which)), kLossBytes);
}

LossSums Program::sent_losses() const {
  LossSums all;
  for (std::size_t at = 0; at < body_->losses.bytes(); at += kLossBytes) {
    std::array<double, 3> sums{};
    std::memcpy(sums.data(), body_->losses.bytes_at(at), kLossBytes);
    all.loss += sums[0];
    all.correct += sums[1];
    all.weight += sums[2];
  }
  return all;
}

void Program::reset_losses() {
  for (int which = 0; which < body_->options.in_flight && body_->lowered.loss_sums >= 0; ++which)
    body_->device.zero(body_->address(body_->lowered.loss_sums, which), kLossBytes);
}

bool Program::has_states() const { return !body_->lowered.states.empty(); }

void Program::reset_states() {
  if (has_states()) body_->device.zero(body_->states.data(), body_->states.bytes());
}

void Program::reset_states(int slot, std::int64_t row) {
  Body& b = *body_;
  for (int id : b.lowered.states) {
    const LoweredTensor& tensor = b.lowered.tensors[static_cast<std::size_t>(id)];
    const std::size_t bytes = tensor.bytes / static_cast<std::size_t>(tensor.shape[0]);
    b.device.zero(
        b.states.bytes_at(b.offset[static_cast<std::size_t>(id)] + static_cast<std::size_t>(slot) * tensor.bytes +
                          static_cast<std::size_t>(row) * bytes),
        bytes);
  }
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

double Program::Body::time_of(int op, const PassScalars& scalars) {
  constexpr int kRepeats = 8;
  const auto at = static_cast<std::size_t>(op);
  const bool recorded = device.records() && lowered.ops[at].op->replays();
  timed.resize(lowered.ops.size());
  if (recorded && !timed[at]) {
    run(op, scalars);  // kernels are loaded and algorithms chosen before anything is recorded
    timed[at] = device.record_ops([&] {
      for (int repeat = 0; repeat < kRepeats; ++repeat) run(op, scalars);
    });
    timed[at]->replay();
  }
  device.synchronize();
  const double start = now_s();
  recorded ? timed[at]->replay() : run(op, scalars);
  device.synchronize();
  return (now_s() - start) / (recorded ? kRepeats : 1);
}

std::vector<OpReport> Program::profile(const ProfileOptions& options) {
  std::vector<OpReport> reports = ops();
  const PassScalars scalars{.loss_scale = 1.0 / static_cast<double>(body_->options.batch)};
  const double end = now_s() + options.most_seconds;
  auto report = reports.begin();
  for (std::size_t i = 0; i < body_->lowered.ops.size(); ++i) {
    if (!body_->lowered.ops[i].op) continue;
    const bool may_repeat = options.convs_once && std::holds_alternative<ConvDims>(report->spec.dims);
    const auto alike = may_repeat ? std::find_if(reports.begin(), report,
                                                 [&](const OpReport& earlier) { return earlier.spec == report->spec; })
                                  : report;
    report->seconds = alike != report  ? alike->seconds
                      : now_s() >= end ? std::numeric_limits<double>::infinity()
                                       : body_->time_of(static_cast<int>(i), scalars);
    ++report;
  }
  return reports;
}

}  // namespace echelon::inline model
