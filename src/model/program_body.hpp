// SPDX-License-Identifier: Apache-2.0
// The parts of a program: the lowered graph, the addresses of its tensors, and the execution of its ops. Included only
// by program.cpp and program_body.cpp.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/lowered.hpp"
#include "model/program.hpp"
#include "model/replay.hpp"

namespace echelon::inline model {

struct Program::Body {
  Body(const Graph& graph_, Arenas& arenas_, const ProgramOptions& options_);

  void place_tensors();
  void place_states();
  void clear_zeros();
  void bind_ops();
  void* address(int tensor, int in_flight) const;
  Tensor tensor(int id, int in_flight) const;
  void choose_slot(int next);
  void transfer(const LoweredOp& op, int in_flight);
  void run(int op, const PassScalars& scalars);
  void compute(int op, const PassScalars& scalars);
  void run_range(int begin, int end, const PassScalars& scalars);
  void run_traced(int begin, int end, const PassScalars& scalars);
  double time_of(int op, const PassScalars& scalars);
  ArenaRange range_of(int node) const;

  std::vector<std::string> names;  // names of the values of the graph before fusion
  Graph graph;
  Arenas& arenas;
  Device& device;
  ProgramOptions options;
  Lowered lowered;
  Memory activations, scratch, states;
  Memory losses;                                                   // on the host: losses of each micro-batch in flight
  int slot = 0;                                                    // the state slot that `pointers` refer to
  std::vector<std::size_t> offset;                                 // by tensor, of its storage
  std::size_t activations_each = 0;                                // bytes of one micro-batch in flight
  std::vector<std::vector<std::array<void*, kMaxArgs>>> pointers;  // by micro-batch in flight, then op
  std::vector<ArenaRange> ranges;                                  // by node: range of the parameters that it owns
  std::vector<std::uint64_t> node_keys;                            // by node: hash of its layer's name
  std::vector<int> ready_node;  // by op: node whose gradients are written after it; -1
  std::function<void(ArenaRange)> wait_parameters;
  std::function<void(const Tensor&)> sum_over_replicas;
  std::function<void(const Transfer&)> on_transfer;
  std::optional<Replay> replay;
  std::vector<std::unique_ptr<Recording>> timed;  // by op: repeated runs of it, for profile()
  StepPace* pace = nullptr;
  std::vector<double> pace_s;  // by op; empty: no pace
};

}  // namespace echelon::inline model
