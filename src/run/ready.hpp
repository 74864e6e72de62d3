// SPDX-License-Identifier: Apache-2.0
// A phase of an attempt: weights and state are those of its first step; what trains and what observes it is made.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "run/built.hpp"
#include "run/trace_recording.hpp"
#include "train/batch_draws.hpp"
#include "train/hooks/agreement.hpp"
#include "train/hooks/balance.hpp"
#include "train/hooks/checkpoint.hpp"
#include "train/hooks/divergence.hpp"
#include "train/hooks/evaluate.hpp"
#include "train/hooks/fault.hpp"
#include "train/hooks/goal.hpp"
#include "train/hooks/metrics.hpp"
#include "train/hooks/monitor.hpp"
#include "train/hooks/progress.hpp"
#include "train/hooks/statistics.hpp"
#include "train/hooks/status.hpp"
#include "train/hooks/trace.hpp"
#include "train/stepper.hpp"

namespace echelon::inline run {

// Hooks and stepper hold references into it and into the phases before it.
struct Ready : Phases {
  // After `restore`. `batches`: null if each replica has its shard. Sends no message. Throws ConfigError if the
  // weights are not those that run.replay begins with, EnvironmentError and DataError for files.
  Ready(const Phases& before, std::unique_ptr<BatchDraws> batches);
  Ready(const Ready&) = delete;

  // Visits everything that a checkpoint holds, in its order.
  void visit_state(StateVisitor& visitor);
  // Returns the rows that are distributed over the replicas of this rank's part of the model. Collective.
  GatheredTensors gather_rows();

  std::unique_ptr<BatchDraws> draws;  // null if each replica has its shard
  std::string checksum_at_start;      // of this rank's weights; empty if the device computes nothing
  std::unique_ptr<Stepper> stepper;

  std::optional<TraceRecording> recording;  // if run.trace asks for it; so is `trace`
  std::optional<TraceHook> trace;
  std::optional<WeightFaultHook> weight_faults;  // if this rank has faults that flip weights
  std::optional<MetricsHook> metrics;            // on rank 0, as is `progress`
  AgreementHook agreement;
  GoalHook goal;
  MonitorHook monitor;
  EvaluateHook evaluation;
  DivergenceHook divergence;
  CheckpointHook checkpoints;
  std::optional<BalanceHook> balance;  // with data.balance = "speed"
  StatisticsHook statistics;
  StatusHook status;
  std::optional<ProgressHook> progress;
  std::vector<Hook*> hooks;  // in the order in which the loop calls them
};

}  // namespace echelon::inline run
