// SPDX-License-Identifier: Apache-2.0
// Loss and accuracy on the test data: sums over batches, so that the figures are those of one rank; figures of classes
// (evaluate.metrics) from whole counts.
//
// At meetings (ends of epochs, and evaluate.every_steps of replicas that step together) every replica takes its part,
// or with evaluate.by = "first" the first one takes all; ranks that do not train stand by, however long it takes. A
// share of the training data (evaluate.train_fraction) follows, by the same weights. With evaluate.by = "aside" nothing
// is evaluated here (cli/follow.cpp does).
//
// If replicas step at their own pace, evaluate.every_steps is a snapshot: after that many steps of its own the first
// replica evaluates the whole set alone, with the weights that its last push was answered with, and nobody stops. Its
// own next update is computed on these weights too, and is staler for it, as staleness.json shows. Under a bound of
// staleness the others wait for it, once they are that far ahead.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "comm/group.hpp"
#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "exchange/strategy.hpp"
#include "job/phase.hpp"
#include "model/program.hpp"
#include "parallel/activation_exchange.hpp"
#include "parallel/rank_groups.hpp"
#include "report/figures.hpp"
#include "train/class_counter.hpp"
#include "train/hooks/hook.hpp"
#include "train/run_plan.hpp"
#include "train/value_counter.hpp"

namespace echelon::inline train {

class EvaluateHook final : public Hook {
 public:
  // Called after an evaluation between ends of epochs: "snapshot" or "test", its step, epochs done, figures and
  // seconds.
  using Tell = std::function<void(const char* type, const EpochFigures& figures)>;

  // `group`: all ranks; `model_group`: of a split model, the ranks of this replica; null: whole ones. `tell` is called
  // on the first replica's ranks at least.
  EvaluateHook(const Config& config, const RunPlan& plan, const RankGroups& rank_groups, Arenas& arenas,
               Optimiser& optimiser, Strategy& strategy, ActivationExchange& activation_exchange, Group& group,
               Group* model_group, PhaseBoard& phase, Tell tell);

  void run_begin(std::int64_t first_step) override { seen_step_ = own_pace_ ? -1 : first_step; }
  void step_end(const StepRecord& record) override;
  void epoch_end(EpochRecord& record) override;
  double StepTimes::*time_part() const override { return &StepTimes::evaluation_s; }
  std::size_t activation_bytes() const { return part_.program ? part_.program->activation_bytes() : 0; }

 private:
  // A part of the set on this rank: its batches, and the program that takes them.
  struct Share {
    const Dataset* data;
    std::unique_ptr<SamplePlan> shards;
    int replica = 0;
    std::shared_ptr<Program> program;
  };
  struct Figures {
    double loss = -1, accuracy = -1;  // -1: the device computes nothing, or the loss counts no correct predictions
    ClassCounts classes = {};
    ValueFigures values = {};
    double train_loss = -1, train_accuracy = -1;  // of the share of the training data
  };
  // Three sums for each batch of a pass, counts, and sums of numbers for each batch.
  struct Sums {
    std::vector<double> batches;
    ClassCounts classes;
    std::vector<double> values = {};
  };

  bool due(const StepRecord& record);
  // Whether the loss weighs classes: accuracies then come from counts, in which all labels count alike.
  bool weighs_classes() const { return !plan_.train.label_weights.by_class.empty() && classes_of(plan_.graph) > 0; }
  Share make_share(const Dataset& data, SamplePlan shards, int replica) const;
  Sums no_sums(const Share& share) const;
  void pass(const Share& share, Sums& sums);
  static void add_over(Group& ranks, Sums& sums);
  Figures meet();
  Figures snapshot();
  // `common`: all ranks have the same sums.
  Figures figures_of(Sums& sums, bool common) const;
  // No more replicas do than there are samples.
  bool takes_part(const Share& share) const { return trains_ && replica_ < share.shards->replicas(); }

  const Config& config_;
  const RunPlan& plan_;
  const bool trains_;
  const int replica_;
  const bool has_loss_;
  const bool own_pace_;
  Arenas& arenas_;
  Optimiser& optimiser_;  // with optimizer.average_decay its average is evaluated
  Strategy& strategy_;
  ActivationExchange& activation_exchange_;
  Group& group_;
  Group* model_group_;
  PhaseBoard& phase_;
  Tell tell_;
  Share part_;   // of this replica, at meetings
  Share whole_;  // of snapshots; on the first replica
  Share train_;  // of the training data, at meetings; no shards: none
  std::optional<ClassCounter> counter_;
  std::optional<ValueCounter> value_counter_;
  std::optional<Figures> met_;   // of the present meeting
  std::int64_t seen_step_ = -1;  // the last one that an evaluation could have followed; -1: none yet
};

}  // namespace echelon::inline train
