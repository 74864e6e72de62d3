#include "train/step.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "train/feed.hpp"

namespace echelon {
namespace {

// Sum of the weights of labels [first, first + n) of a batch.
double weight_of(const Batch& batch, DType dtype, std::int64_t first, std::int64_t n) {
  return with_float(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* weights = static_cast<const T*>(batch.weights) + first;
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(weights[i]);
    return sum;
  });
}

}  // namespace

StepRunner::StepRunner(const Config& config, const RunPlan& plan, int rank, Arenas& arenas, Strategy& strategy,
                       const Optimiser& optimiser, ReplicaSum& replica_sum, const Engine& engine, PhaseBoard& phase,
                       const RunState& start)
    : plan_(plan),
      dtype_(config.device.dtype),
      replay_(config.device.cuda_graphs),
      whole_passes_(replay_ && engine.size() == 1),
      random_(config.seed, "step"),
      arenas_(arenas),
      strategy_(strategy),
      optimiser_(optimiser),
      replica_sum_(replica_sum),
      engine_(engine),
      phase_(phase) {
  const std::vector<int> replicas = plan.sources(rank);
  make_programs(replicas);
  if (config.train.reproducible) shards_ = std::make_unique<MicroShards>(arenas, plan.batch.accumulation);
  for (const int replica : replicas) {
    LoaderOptions options;
    options.replica = replica;
    options.dtype = arenas.dtype();
    options.prefetch = static_cast<int>(config.data.prefetch);
    options.buffer_bytes =
        static_cast<std::int64_t>(config.data.buffer_mb * (1 << 20)) / static_cast<std::int64_t>(replicas.size());
    options.augmentation = {
        .crop_padding = config.data.augment_crop_padding, .flip = config.data.augment_flip, .seed = config.seed};
    options.start_epoch = start.epoch;
    options.start_step = start.step_in_epoch;
    sources_[static_cast<std::size_t>(replica - replicas.front())].loader =
        std::make_unique<Loader>(plan.train, plan.shards, options);
  }
}

// One a micro-batch size and bucket; each micro-batch of a step has a slot of its own for what is carried.
void StepRunner::make_programs(const std::vector<int>& replicas) {
  const auto accumulation = static_cast<int>(plan_.batch.accumulation);
  std::map<std::int64_t, int> slots;  // by micro-batch size
  for (const int replica : replicas) {
    const std::int64_t micro = plan_.batch.micro[static_cast<std::size_t>(replica)];
    sources_.push_back({.loader = nullptr, .micro_batch = micro, .first_slot = slots[micro]});
    slots[micro] += accumulation;
  }
  std::vector<std::int64_t> buckets = plan_.shards.buckets();
  if (buckets.empty()) buckets.push_back(0);
  for (const auto& [micro, count] : slots)
    for (const std::int64_t bucket : buckets) {
      auto& program = programs_[{micro, bucket}];
      program = std::make_unique<Program>(
          plan_.graph_for(bucket), arenas_,
          ProgramOptions{.batch = micro, .dtype = dtype_, .state_slots = count, .replay = replay_});
      if (engine_.size() > 1) program->set_sum_over_replicas([this](const Tensor& sums) { replica_sum_(sums); });
      if (!whole_passes_) program->set_wait_parameters([this](ArenaRange range) { strategy_.wait_parameters(range); });
    }
  first_row_ = plan_.shards.row_of(replicas.front());
  for (const Source& source : sources_)
    for (int m = 0; m < accumulation; ++m, own_rows_ += source.micro_batch)
      if (Program& program = program_of({source.micro_batch, buckets.front()}); program.has_states())
        carried_.push_back({.program = &program, .slot = source.first_slot + m, .row = own_rows_});
}

void StepRunner::visit_state(StateVisitor& visitor) {
  visit_carried(carried_, first_row_, own_rows_, plan_.shards.global_batch(), visitor);
}

LossSums StepRunner::losses() {
  if (shards_) return shards_->losses();
  LossSums all;
  for (auto& [key, program] : programs_) {
    const LossSums sums = program->losses();
    all.loss += sums.loss;
    all.correct += sums.correct;
    all.weight += sums.weight;
  }
  return all;
}

StepResult StepRunner::run(const StepInfo& info, const std::function<void(const LossSums&)>& on_losses) {
  StepResult result;
  const bool losses_at_once = arenas_.device().on_host();  // elsewhere the device would be waited for
  const auto tell_losses = [&] {
    result.losses = losses();
    on_losses(result.losses);
  };
  strategy_.begin_step(info);
  for (auto& [key, program] : programs_) program->reset_losses();
  if (shards_) shards_->begin_step();
  const ArenaRange all{0, arenas_.elems()};
  bool first_pass = true;
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    Source& source = sources_[s];
    const std::int64_t micro = source.micro_batch;
    const Batch* batch = nullptr;
    {
      phase_.enter("data");
      const ScopedTimer timer(result.times.data_wait_s);
      batch = &source.loader->next();
    }
    if (s == 0 && batch->step == 0)  // streams begin anew
      for (auto& [key, of_any] : programs_) of_any->reset_states();
    ECHELON_CHECK_EQ(batch->n % micro, 0, "a batch is a whole number of micro-batches");
    Program& program = program_of({micro, plan_.shards.length(batch->epoch, batch->step)});
    const std::int64_t labels = program.input("weights").shape.row_elems();
    for (std::int64_t first = 0; first < batch->n; first += micro) {
      {
        phase_.enter("data");
        const ScopedTimer timer(result.times.data_wait_s);
        feed(arenas_.device(), program, *batch, first);
      }
      PassScalars scalars;
      scalars.loss_scale = optimiser_.loss_scale() / info.weight;
      scalars.group_weight = weight_of(*batch, arenas_.dtype(), first * labels, micro * labels) / info.weight;
      scalars.samples = static_cast<double>(plan_.batch.global);
      scalars.key = random_.at(static_cast<std::uint64_t>(info.step)).key();
      scalars.first = first_pass || shards_;
      scalars.slot = source.first_slot + static_cast<int>(first / micro);
      first_pass = false;
      const bool last = s + 1 == sources_.size() && first + micro == batch->n;
      {
        phase_.enter("forward");
        const ScopedTimer timer(result.times.forward_s);
        if (whole_passes_) strategy_.wait_parameters(all);
        program.forward(scalars);
      }
      if (shards_) {
        shards_->add_losses(program.losses());
        program.reset_losses();
      }
      if (last && losses_at_once) tell_losses();
      phase_.enter("backward");
      const ScopedTimer timer(result.times.backward_s);
      const auto ready = [this](ArenaRange range) {
        if (shards_) shards_->complete_gradients(range);
        strategy_.gradient_ready(range);
      };
      if (last && !whole_passes_)
        program.backward(scalars, ready);
      else
        program.backward(scalars);
      if (last && whole_passes_) ready(all);
      if (!last && shards_) shards_->keep_gradients();
    }
  }
  phase_.enter("exchange");
  result.outcome = strategy_.end_step();
  result.times.forward_s -= result.outcome.in_forward_s;
  result.times.exchange_s += result.outcome.exchange_wait_s;
  result.times.optimiser_s += result.outcome.optimiser_s;
  if (!losses_at_once) {
    const ScopedTimer timer(result.times.backward_s);  // where a device runs ahead, this waits for it
    tell_losses();
  }
  return result;
}

std::uint64_t StepRunner::bytes_read() const {
  std::uint64_t sum = 0;
  for (const Source& source : sources_) sum += source.loader->bytes_read();
  return sum;
}

std::uint64_t StepRunner::bytes_used() const {
  std::uint64_t sum = 0;
  for (const Source& source : sources_) sum += source.loader->bytes_used();
  return sum;
}

std::size_t StepRunner::activation_bytes() const {
  std::size_t sum = 0;
  for (const auto& [key, program] : programs_) sum += program->activation_bytes() + program->scratch_bytes();
  return sum;
}

}  // namespace echelon
