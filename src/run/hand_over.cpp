// SPDX-License-Identifier: Apache-2.0
// Attempt::hand_over: an attempt that has lost ranks hands the run over to the remaining ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "checkpoint/trained_data.hpp"
#include "exchange/facets.hpp"
#include "job/agree.hpp"
#include "run/attempt.hpp"
#include "run/channels.hpp"
#include "train/positions.hpp"

namespace echelon::inline run {
namespace {

constexpr double kLockWait_s = 10;  // the holder was killed, and its end may take a moment

// Shows another visitor the state of each replica with the place that it has once the lost ones are left out.
class WithoutLost final : public StateVisitor {
 public:
  WithoutLost(StateVisitor& inner, const std::vector<int>& lost) : inner_(inner), lost_(lost) {}
  bool loading() const override { return inner_.loading(); }
  void tensor(const StateTensor& tensor) override {
    if (tensor.placement != Placement::per_replica) return inner_.tensor(tensor);
    StateTensor shown = tensor;
    shown.global_shape = tensor.global_shape.with_front(without_lost(tensor.global_shape[0]));
    shown.offset = tensor.offset.with_front(without_lost(tensor.offset[0]));
    inner_.tensor(shown);
  }
  void scalar(std::string_view name, std::int64_t& value, Absent absent) override {
    inner_.scalar(name, value, absent);
  }
  void scalar(std::string_view name, double& value, Absent absent) override { inner_.scalar(name, value, absent); }

 private:
  std::int64_t without_lost(std::int64_t replicas) const {
    return replicas - std::count_if(lost_.begin(), lost_.end(), [&](int rank) { return rank < replicas; });
  }

  StateVisitor& inner_;
  const std::vector<int>& lost_;
};

// Moves the run to the position of the furthest remaining replica, but not before `newest`. If replicas step at their
// own pace and have their shards, the state has the steps of each; those of lost ones are those of the last meeting.
void move_on(RunState& state, const RunPlan& plan, Group& living, int replica, std::int64_t newest) {
  const auto at_least = static_cast<double>(std::max(state.at.step, newest));
  state.move_to(position_at(plan.shards, static_cast<std::int64_t>(living.max(at_least))));
  state.open.clear();
  state.records = {};  // rank 0 may be lost
  const std::vector<std::int64_t> steps = steps_by_replica(living, plan.replicas, replica, state.at.step);
  for (std::size_t r = 0; r < state.replica_steps.size(); ++r)
    if (steps[r] >= 0) state.replica_steps[r] = steps[r];
}

void take_from_lost(RunLock& lock, const std::string& run) {
  for (const double until_s = now_s() + kLockWait_s;; std::this_thread::sleep_for(std::chrono::milliseconds(50))) try {
      return lock.take(run, job_id());
    } catch (const EnvironmentError&) {
      if (now_s() > until_s) throw;
    }
}

}  // namespace

std::int64_t Attempt::last_step() const {
  const std::int64_t first = agreed_ ? agreed_->start.step : 0;
  return built_ ? std::max({built_->state.step, built_->state.at.step, first}) : first;
}

// The step is not before that of the newest checkpoint, which may be the step of a lost worker: resuming takes the
// newest.
void Attempt::save_what_is_left(Group& living, const std::vector<int>& lost) {
  RunState& state = built_->state;
  const RunFolder& folder = agreed_->start.folder;
  std::int64_t newest = 0;
  if (living.rank() == 0)
    if (const auto found = glance_at_newest(folder.checkpoints())) newest = found->step;
  move_on(state, agreed_->plan, living, placed_->groups.replica(), newest);
  const VisitAll visit_left = [&](StateVisitor& visitor) {
    WithoutLost left(visitor, lost);
    ready_->visit_state(left);
  };
  const auto visit_distributed = [&](StateVisitor& visitor) {
    WithoutLost left(visitor, lost);
    built_->strategy->visit_state(left);
    ready_->stepper->visit_state(left);
  };
  const GatheredTensors rows = gather_rows(living, visit_distributed, true);
  all_or_none(living, [&] {
    if (living.rank() != 0) return;
    if (!context_.lock.held()) take_from_lost(context_.lock, folder.run);
    context_.lock.confirm();
    const CheckpointConfig& config = agreed_->config.checkpoint;
    const CheckpointInfo info =
        save_checkpoint(folder.checkpoints(), state.step, with_gathered(visit_left, rows),
                        {.training_data = to_text(trained_data_of(agreed_->plan.train)), .verify = config.verify});
    prune_checkpoints(folder.checkpoints(), config.keep, state.best.step);
    context_.board.set_checkpoint("checkpoints/" + std::filesystem::path(info.path).filename().string());
  });
  saved_ = true;
}

int Attempt::hand_over(Crew& left, const std::vector<int>& lost) {
  watchdog_.reset();
  settle_checkpoints();
  context_.phase.enter("handing over");
  std::vector<std::string> names;
  for (const int rank : lost) names.push_back(context_.options.crew->name(rank));
  const Watchdog watchdog(left.engine(), context_.phase, watching_);
  Group living(left.engine(), kControlChannel);
  StatusBoard& board = context_.board;
  const bool first = living.rank() == 0;
  leave_trace(fmt::format("{} lost", fmt::join(names, " and ")), lost, kTracePatience_s, first);
  try {
    const std::string process = living.of_first(process_id_text());
    all_or_none(living, [&] { board.pass_to(process, first); });
    const bool trained = living.max(running_ ? 0 : 1) == 0;
    auto* rescues = trained ? facet_of<Rescues>(*built_->strategy) : nullptr;
    if (trained && !(rescues && rescues->rescue(living, lost)))
      return fail(
          {lost, false,
           fmt::format(
               "{} lost, and with {} a part of the weights; the same command continues from the last checkpoint",
               fmt::join(names, " and "), lost.size() > 1 ? "them" : "it")});
    if (trained) save_what_is_left(living, lost);
    const std::string text = fmt::format("{} lost at step {}: continuing with {}", fmt::join(names, " and "),
                                         last_step(), counted(left.size(), "worker"));
    all_or_none(living, [&] {
      if (!first) return;
      log_warning("{}", text);
      flush_log();
    });
    if (board.is_open())
      context_.options.before = HandedOver{board.folder(), board.provenance(), board.checkpoint(), text, last_step()};
    context_.lock.release();
    return kExitOk;
  } catch (const LostRankError&) {
    throw;
  } catch (const CommonError& error) {
    return fail({lost, false, error.what()});
  } catch (const std::exception& error) {
    return fail(kExitInternal, error.what(), false);
  }
}

}  // namespace echelon::inline run
