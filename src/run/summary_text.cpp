// SPDX-License-Identifier: Apache-2.0
// The last lines of a run.
#include <fmt/format.h>

#include <cmath>

#include "base/text.hpp"
#include "config/goal.hpp"
#include "config/traits/algorithms.hpp"
#include "run/summary.hpp"
#include "train/codec_record.hpp"
#include "train/hooks/progress.hpp"

namespace echelon::inline run {

std::string pace_warning(const RunFigures& run, std::int64_t steps) {
  constexpr double kFew = 0.05;
  std::string ranks;
  for (std::size_t r = 0; run.computes_at_pace() && r < run.pace_s.size(); ++r)
    if (run.pace_over_steps[r] > kFew * static_cast<double>(steps))
      ranks += fmt::format("{}rank {}: {:.0f} steps, the longest {:.1f}x", ranks.empty() ? "" : "; ", r,
                           run.pace_over_steps[r], run.pace_worst[r]);
  if (ranks.empty()) return {};
  return fmt::format(
      "forward and backward took longer than their pace (device.pace_ms), so that times are those of this machine: {}; "
      "use a longer pace or fewer ranks per core",
      ranks);
}

namespace {

// Says how much was read for the samples that were trained, and how much of the data set an epoch has.
std::string data_text(const RunFigures& s) {
  std::string text;
  if (s.bytes_used > 0)
    text = fmt::format("{} read, {:.2f} times the bytes trained on", bytes_text(s.bytes_read),
                       s.bytes_read / s.bytes_used);
  if (s.samples_once >= 0)
    text += fmt::format("{}samples of an epoch: {} once, {} more often, {} never", text.empty() ? "" : "; ",
                        count_text(static_cast<std::int64_t>(s.samples_once)),
                        count_text(static_cast<std::int64_t>(s.samples_repeated)),
                        count_text(static_cast<std::int64_t>(s.samples_never)));
  return text.empty() ? "" : "data: " + text + "\n";
}

// Says the rate, the wall time that it is of, and the times that are not part of it.
std::string rate_lines(const RunFigures& s) {
  constexpr double kShown_s = 5e-4;
  const double rate = s.tokens_per_s ? s.tokens_per_s->median : s.samples_per_s.median;
  std::string text =
      fmt::format("{} {}/s ({} samples of all replicas in {}", rate_text(rate), s.tokens_per_s ? "tokens" : "samples",
                  count_text(std::llround(s.rate_samples)), seconds_text(s.rate_s));
  if (s.steps_together())
    text += fmt::format("; a step takes {}, median of {}, {} to {}", seconds_text(s.step_s.median), s.timed_steps,
                        seconds_text(s.step_s.p25), seconds_text(s.step_s.p75));
  text += s.paced ? "), PACED: ops sleep for tabulated times, computed values are meaningless" : ")";
  if (!s.shaped.empty()) text += fmt::format(", SHAPED: messages were slowed down to {}", s.shaped);
  text += fmt::format("\nnot in the rate: first step {:.2f} s after the start", s.start_to_first_step_s);
  if (s.warmup_s > 0) text += fmt::format(", warm-up {}", seconds_text(s.warmup_s));
  if (s.evaluation_s > kShown_s) text += fmt::format(", evaluation {}", seconds_text(s.evaluation_s));
  if (s.checkpoint_s > kShown_s) text += fmt::format(", checkpoints {}", seconds_text(s.checkpoint_s));
  return text;
}

}  // namespace

std::string summary_text(const RunFigures& s, const Ready& ready, const std::string& checkpoint) {
  std::string text =
      fmt::format("{} at step {} of {}", s.state, count_text(s.steps), count_text(ready.agreed.plan.total_steps));
  const bool tested = s.test_loss >= 0, right = s.test_accuracy >= 0;
  if (right) text += fmt::format(": test accuracy {:.2f} %", 100 * s.test_accuracy);
  if (tested)
    text += fmt::format("{} test loss {:.4f}{}", right ? "," : ":", s.test_loss,
                        ready.agreed.plan.per_token() ? perplexity_text(s.test_loss) : "");
  if (s.test_top5_accuracy >= 0) text += fmt::format(", top-5 accuracy {:.2f} %", 100 * s.test_top5_accuracy);
  if (s.test_macro_f1 >= 0) text += fmt::format(", macro F1 {:.4f}", s.test_macro_f1);
  if (s.test_mean_iou >= 0) text += fmt::format(", mean IoU {:.4f}", s.test_mean_iou);
  if (s.test_auc >= 0) text += fmt::format(", AUC {:.4f}", s.test_auc);
  if (s.test_mae >= 0) text += fmt::format(", mean absolute error {:.4g}", s.test_mae);
  if (s.test_r2 == s.test_r2) text += fmt::format(", R2 {:.4f}", s.test_r2);
  text += "\n" + rate_lines(s) + "\ntime:";
  const TimePercent percent = time_percent(s.time_split_s);
  for (std::size_t i = 0; i < percent.size(); ++i)
    if (!is_seldom(i) || percent[i] > 0)
      text += fmt::format("{} {} {:.1f} %", i == 0 ? "" : ",", time_part_name(i), percent[i]);
  text += "\n";
  const bool library = s.library_bytes_per_step > 0;
  const bool in_memory = algorithm_traits(s.algorithm).in_memory && s.wire_bytes_per_step == 0;
  const std::string wire =
      in_memory ? "in memory that ranks share"
      : library ? fmt::format("by the MPI library, {} a step by formula", bytes_text(s.formula_bytes_per_step))
                : bytes_text(s.wire_bytes_per_step) + " a step on the wire";
  const double peak_mb = largest(s.peak_rss_mb);
  text +=
      fmt::format("memory: {} a rank, {:.1f} MiB of the device; exchange: {}\n",
                  peak_mb >= 0 ? fmt::format("up to {:.0f} MiB", peak_mb) : "unknown", largest(s.device_peak_mb), wire);
  text += data_text(s);
  if (const double busy_s = s.exchange_exposed_s + s.exchange_hidden_s; busy_s > 0)
    text += fmt::format("exchange: {:.0f} % hidden; arrival skew {}\n", 100 * s.exchange_hidden_s / busy_s,
                        seconds_text(s.arrival_skew_s));
  if (ready.placed.groups.mesh().tensor() > 1)
    text += fmt::format("tensor shards: {} a step inside replicas\n", bytes_text(s.split_bytes_per_step));
  if (ready.placed.groups.mesh().space() > 1)
    text += fmt::format("spatial shards: {} of halos a step, {} inside replicas\n", bytes_text(s.halo_bytes_per_step),
                        bytes_text(s.split_bytes_per_step));
  const StepTimes& times = s.time_split_s;
  const auto chunks = static_cast<int>(ready.agreed.config.parallel.time_chunks);
  if (const int stages = ready.placed.groups.mesh().pipeline(); stages > 1)
    text += fmt::format(
        "pipeline: {} a step between stages, idle {:.1f} % of their passes; bubble (p-1)/(m{}+p-1) is {:.1f} %\n",
        bytes_text(s.split_bytes_per_step), 100 * times.split_s / (times.split_s + times.forward_s + times.backward_s),
        chunks > 1 ? " c" : "",
        100 * bubble_share(stages, static_cast<int>(ready.agreed.plan.batch.accumulation), chunks));
  if (const double most = largest(s.activations_spared_mb); most > 0)
    text += fmt::format("1f1b: up to {:.1f} MiB of activations per rank less than gpipe\n", most);
  for (const std::string& rank : s.slow_ranks) text += rank + "\n";
  if (s.coded) text += codec_text(s.codec == "none" ? s.strategy : s.codec, ready.statistics.codec()) + "\n";
  if (s.updates_applied > 0)
    text += fmt::format("staleness: mean {:.2f}, at most {:.0f} versions; {} of {} updates dropped\n", s.staleness_mean,
                        s.staleness_largest, count_text(static_cast<std::int64_t>(s.updates_dropped)),
                        count_text(static_cast<std::int64_t>(s.updates_applied + s.updates_dropped)));
  for (std::size_t r = 0; r < s.gradients_dropped.size(); ++r)
    if (s.gradients_dropped[r] > 0)
      text += fmt::format("rank {} was late {}: {} dropped\n", r,
                          counted(static_cast<std::int64_t>(s.gradients_dropped[r]), "time"),
                          counted(static_cast<std::int64_t>(s.samples_dropped[r]), "sample"));
  if (s.staleness_by_worker && largest(s.staleness_by_worker->waited_s) > 0)
    text += fmt::format("waits for the slowest worker: up to {} per worker\n",
                        seconds_text(largest(s.staleness_by_worker->waited_s)));
  if (s.computes_at_pace())
    text += fmt::format("pace: {} a step of forward and backward on rank 0, {} on the slowest; computed, then slept\n",
                        seconds_text(s.pace_s.front()), seconds_text(largest(s.pace_s)));
  if (s.updates_held > 0)
    text += fmt::format("{} held back because a receiver was slow, and sent with a later one\n",
                        counted(static_cast<std::int64_t>(s.updates_held), "update"));
  if (s.checkpoints > 0)
    text += fmt::format("checkpoints: {}, written in {}, of which training waited {}\n",
                        count_text(static_cast<std::int64_t>(s.checkpoints)), seconds_text(s.checkpoint_write_s),
                        seconds_text(s.checkpoint_blocked_s));
  if (!s.best_checkpoint.empty())
    text += fmt::format("best: {}/{} ({} {:.4g})\n", ready.agreed.start.folder.run, s.best_checkpoint,
                        goal_metric_name(ready.agreed.config.checkpoint.keep_best), s.best_figure);
  if (s.servers > 0) text += fmt::format("ranks: {} + {}\n", counted(s.ranks, "worker"), counted(s.servers, "server"));
  text += fmt::format("results: {}\nsummary: {}/summary.json\n", ready.agreed.start.folder.run,
                      ready.agreed.start.folder.attempt);
  text +=
      fmt::format("weights: {} (checksum {})",
                  checkpoint.empty() ? "none" : ready.agreed.start.folder.run + "/" + checkpoint, s.weights_checksum);
  return text;
}

}  // namespace echelon::inline run
