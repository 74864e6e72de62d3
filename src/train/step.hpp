// SPDX-License-Identifier: Apache-2.0
// One optimiser step on one rank: batches in, micro-batches through the program, gradients to the strategy.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/hash_rng.hpp"
#include "data/loader.hpp"
#include "device/upload.hpp"
#include "exchange/facets.hpp"
#include "model/program.hpp"
#include "parallel/pipeline.hpp"
#include "train/device_times.hpp"
#include "train/micro_shards.hpp"
#include "train/recurrent_state.hpp"
#include "train/stepper.hpp"

namespace echelon::inline train {

class StepRunner final : public Stepper {
 public:
  // Opens the batches of one replica of the plan, from options.start_epoch and start_step on.
  using OpenSource = std::function<std::unique_ptr<BatchSource>(const LoaderOptions& options)>;

  // Builds the programs, one for each micro-batch size and bucket, and starts to read ahead: with a Loader of
  // plan.train, or with what `open` returns; from parts.start on, or what is drawn.
  explicit StepRunner(const StepperParts& parts, const OpenSource& open = {});

  // Called with each range of gradients that is complete, before it is sent (fault/injector.hpp).
  void damage_gradients(std::function<void(ArenaRange)> damage) { damage_ = std::move(damage); }

  // On a host device, reports the losses before the last backward. If the device runs behind, returns while backward,
  // exchange and update are still in progress there; `of_device` then has the times of the newest step for which they
  // are known, usually the one before.
  StepResult run(const StepInfo& info, const std::function<void(const LossSums&)>& on_losses) override;

  void share_by(const std::vector<std::int64_t>& batches, const Position& at) override;
  const SamplePlan& shards(const SamplePlan&) const override { return shards(); }
  void end_run() override;
  const DrawPlan* draws() const override;
  std::optional<Drawn> draw() override;
  void come_to_meeting() override { join_meeting(p_.strategy); }

  // Visits what recurrent layers carry from step to step, by rows of the global batch.
  void visit_state(StateVisitor& visitor) override;

  unsigned throttled() const override { return p_.arenas.device().throttled(); }
  std::optional<PaceRecord> pace() const override;
  std::uint64_t bytes_read() const override;
  std::uint64_t bytes_used() const override;
  std::size_t spared_bytes() const override;
  // The activations of all programs, for the micro-batches that are held at once.
  std::size_t activation_bytes() const;

 private:
  struct Source {  // the samples of one replica
    std::unique_ptr<BatchSource> batches;
    std::int64_t micro_batch = 0;
    int first_slot = 0;            // of the program's recurrent states
    const Batch* batch = nullptr;  // of the step under way
  };
  struct ProgramKey {
    std::int64_t micro_batch;
    std::int64_t bucket;  // what sequences are padded to; 0: no buckets
    auto operator<=>(const ProgramKey&) const = default;
  };

  // A micro-batch of the step, as far as it is known yet.
  struct Micro {
    Source* source = nullptr;
    std::int64_t first = 0;  // sample of the source's batch
  };
  struct Step;  // under way

  const SamplePlan& shards() const { return shared_ ? *shared_ : p_.plan.shards; }
  void make_programs();
  void list_micros();
  void open_sources(const Position& at);
  void report_losses(Step& step, const LossSums& losses);
  void send_losses();
  LossSums sent_losses();
  void take_batch(Source& source, const StepInfo& info);
  StepInfo weighed(const StepInfo& planned);
  // Sum of the weights of a micro-batch's labels, over all spatial shards.
  double weight_of(int micro) const;
  double own_weight_of(int micro, std::int64_t labels) const;
  const Shape& label_shape(const Batch& batch) const;
  void forward(Step& step, int micro);
  void backward(Step& step, int micro);
  void end_behind(Step& step, double drawn_s);
  std::int64_t samples_of_group() const;
  PassScalars scalars_of(const Step& step, int micro) const;
  Program& program_of(const ProgramKey& key) { return *programs_.at(key); }
  Program& program_of(const Source& source);  // of its batch
  LossSums losses();

  const StepperParts p_;
  const std::vector<int> replicas_;   // whose samples this rank takes
  std::optional<SamplePlan> shared_;  // since share_by
  LoaderOptions loading_;             // but for the replica and the position
  OpenSource open_;
  bool replay_;        // ops run from recordings
  bool whole_passes_;  // on one rank, no callback cuts recordings: waits come before a pass, gradients after it
  HashRng random_;     // of the run: every replica has the same
  std::function<void(ArenaRange)> damage_;  // empty: none
  double drawing_s_ = 0;                    // the wait for the batch of the next step
  std::map<ProgramKey, std::unique_ptr<Program>> programs_;
  std::unique_ptr<Upload> upload_;           // of the batches
  std::optional<DeviceTimes> device_times_;  // where the device runs behind
  std::unique_ptr<Event> losses_sent_;       // there: the losses of all passes of this step are on the host
  std::optional<StepPace> pace_;             // where device.pace_ms sets one
  std::unique_ptr<MicroShards> tree_;        // where the run is reproducible
  std::vector<Source> sources_;
  std::vector<Micro> micros_;                         // of a step
  std::vector<double> micro_weights_;                 // if labels weigh differently and spatial shards have some each
  std::vector<Pass> passes_;                          // of a step, in the order in which this rank runs them
  int in_flight_ = 1;                                 // micro-batches whose activations are held at once
  std::vector<RecurrentStateRows> recurrent_states_;  // empty where the model carries no state
  std::int64_t first_row_ = 0, own_rows_ = 0;         // of the global batch
};

}  // namespace echelon::inline train
