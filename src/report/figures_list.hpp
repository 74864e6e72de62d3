// The list of figures (report/figures.hpp): names, units, how ranks, steps and repetitions are combined, meanings.
#pragma once

#include <type_traits>

#include "report/figures.hpp"

namespace echelon::inline report {
namespace figures {

using R = OverRanks;
using S = OverSteps;
using A = OverRuns;
inline constexpr Unknown kLeftOut = Unknown::left_out;

template <class T, class Of>
concept Is = std::is_same_v<std::remove_const_t<T>, Of>;

}  // namespace figures

// clang-format off
template <figures::Is<StepFigures> F, class Visit>
void each(F& f, Visit&& visit) {
  using namespace figures;
  visit(Figure{"step", "", R::same, S::none, A::first, "updates done, this one included"}, f.step);
  visit(Figure{"epoch", "", R::same, S::none, A::first, "epochs done before"}, f.epoch);
  visit(Figure{"lr", "", R::same, S::none, A::first, "learning rate"}, f.lr);
  visit(Figure{"loss", "", R::same, S::none, A::first, "mean over the labels of the step, of all ranks"}, f.loss);
  visit(Figure{"samples", "", R::same, S::none, A::first, "of the step; where replicas take steps of their own, of rank 0"}, f.samples);
  visit(Figure{"samples_per_s", "1/s", R::rank0, S::none, A::first, "samples of the step over its time without hooks; the rate of the run is in summary.json"}, f.samples_per_s);
  visit(Figure{"time", "s", R::rank0, S::none, A::first, "parts of the step; hooks that a checkpoint's write precedes are in the next row"}, f.time);
  visit(Figure{"exchange_exposed_s", "s", R::rank0, S::none, A::first, "the compute thread waited for the exchange", kLeftOut}, f.exchange_exposed_s);
  visit(Figure{"exchange_hidden_s", "s", R::rank0, S::none, A::first, "the exchange went on beside other work", kLeftOut}, f.exchange_hidden_s);
  visit(Figure{"wire_bytes", "bytes", R::rank0, S::none, A::first, "sent for gradients", kLeftOut}, f.wire_bytes);
  visit(Figure{"arrival_skew_s", "s", R::same, S::none, A::first, "of the previous step: largest minus smallest compute time of a rank", kLeftOut}, f.arrival_skew_s);
  visit(Figure{"ranks_before", "s", R::list, S::none, A::first, "of some steps: compute, exposed, exchange and wire_bytes of the step before", kLeftOut}, f.ranks_before);
  visit(Figure{"tokens", "", R::same, S::none, A::first, "of the step, where labels are one a token", kLeftOut}, f.tokens);
  visit(Figure{"tokens_per_s", "1/s", R::rank0, S::none, A::first, "without hooks", kLeftOut}, f.tokens_per_s);
  visit(Figure{"gradient_norm", "", R::same, S::none, A::first, "over all weights, before clipping", kLeftOut}, f.gradient_norm);
  visit(Figure{"loss_scale", "", R::same, S::none, A::first, "where the loss is scaled", kLeftOut}, f.loss_scale);
  visit(Figure{"skipped", "", R::same, S::none, A::first, "the gradients were not finite, no weight changed", kLeftOut}, f.skipped);
  visit(Figure{"codec", "", R::rank0, S::none, A::first, "bytes before and after coding, seconds of coding on the host, residual norm, density, tau", kLeftOut}, f.codec);
  visit(Figure{"drift", "", R::same, S::none, A::first, "where weights were averaged: largest distance of a replica from the mean, over the norm of the mean", kLeftOut}, f.drift);
}

template <figures::Is<EpochFigures> F, class Visit>
void each(F& f, Visit&& visit) {
  using namespace figures;
  visit(Figure{"epoch", "", R::same, S::none, A::first, "epochs done"}, f.epoch);
  visit(Figure{"step", "", R::same, S::none, A::first, "updates done"}, f.step);
  visit(Figure{"train_loss", "", R::same, S::mean, A::first, "mean over the labels of the epoch"}, f.train_loss);
  visit(Figure{"test_loss", "", R::same, S::none, A::first, "where it was evaluated"}, f.test_loss);
  visit(Figure{"test_accuracy", "0..1", R::same, S::none, A::first, "likewise, where the loss has a right answer"}, f.test_accuracy);
  visit(Figure{"test_perplexity", "", R::same, S::none, A::first, "where labels are one a token: e to the test loss", kLeftOut}, f.test_perplexity);
  visit(Figure{"test_top5_accuracy", "0..1", R::same, S::none, A::first, "labels among the five largest outputs (evaluate.metrics)", kLeftOut}, f.test_top5_accuracy);
  visit(Figure{"test_macro_f1", "0..1", R::same, S::none, A::first, "F1, mean over the classes that are labels or predictions (likewise)", kLeftOut}, f.test_macro_f1);
  visit(Figure{"test_recall", "0..1", R::same, S::none, A::first, "by class, of its labels (likewise); null: no label", kLeftOut}, f.test_recall);
  visit(Figure{"test_precision", "0..1", R::same, S::none, A::first, "by class, of its predictions (likewise); null: no prediction", kLeftOut}, f.test_precision);
  visit(Figure{"train_eval_loss", "", R::same, S::none, A::first, "of the share evaluate.train_fraction of the training data, with the same weights", kLeftOut}, f.train_eval_loss);
  visit(Figure{"train_accuracy", "0..1", R::same, S::none, A::first, "likewise", kLeftOut}, f.train_accuracy);
  visit(Figure{"seconds", "s", R::rank0, S::sum, A::first, "evaluation included"}, f.seconds);
}

template <figures::Is<CheckpointFigures> F, class Visit>
void each(F& f, Visit&& visit) {
  using namespace figures;
  visit(Figure{"step", "", R::same, S::none, A::first, "updates done"}, f.step);
  visit(Figure{"bytes", "bytes", R::rank0, S::none, A::first, "of the file"}, f.bytes);
  visit(Figure{"blocked_s", "s", R::rank0, S::none, A::first, "training waited: for the copy of its state, and for what was left of the write when the next one was due or the attempt ended (for all of the write, where it is not asynchronous)"}, f.blocked_s);
  visit(Figure{"write_s", "s", R::rank0, S::none, A::first, "until it counted: written, synced, renamed, older ones removed"}, f.write_s);
}

template <figures::Is<RunFigures> F, class Visit>
void each(F& f, Visit&& visit) {
  using namespace figures;
  visit(Figure{"name", "", R::same, S::none, A::first, "of the config"}, f.name);
  visit(Figure{"config_hash", "", R::same, S::none, A::first, "of the config, restart-neutral keys left out"}, f.config_hash);
  visit(Figure{"state", "", R::same, S::none, A::first, "finished or stopped"}, f.state);
  visit(Figure{"ranks", "", R::same, S::none, A::first, "that train"}, f.ranks);
  visit(Figure{"mesh", "", R::same, S::none, A::first, "data x pipeline x tensor x space ranks"}, f.mesh);
  visit(Figure{"servers", "", R::same, S::none, A::first, "on ranks of their own"}, f.servers);
  visit(Figure{"hosts", "", R::same, S::none, A::first, ""}, f.hosts);
  visit(Figure{"device", "", R::rank0, S::none, A::first, "onednn, cuda, reference or paced"}, f.device);
  visit(Figure{"device_text", "", R::rank0, S::none, A::first, "model and threads"}, f.device_text);
  visit(Figure{"paced", "", R::same, S::none, A::first, "ops slept for tabulated times"}, f.paced);
  visit(Figure{"shaped", "", R::same, S::none, A::first, "to which network messages were slowed down ([network])", kLeftOut}, f.shaped);
  visit(Figure{"dtype", "", R::same, S::none, A::first, "of weights and activations"}, f.dtype);
  visit(Figure{"threads", "", R::rank0, S::none, A::first, "of the device"}, f.threads);
  visit(Figure{"model", "", R::same, S::none, A::first, "from the zoo, or the config's name"}, f.model);
  visit(Figure{"parameters", "", R::same, S::none, A::first, "weights of the whole model"}, f.parameters);
  visit(Figure{"forward_flops", "FLOP", R::same, S::none, A::first, "of one sample, the whole model; a multiply-add is 2"}, f.forward_flops);
  visit(Figure{"backward_flops", "FLOP", R::same, S::none, A::first, "likewise"}, f.backward_flops);
  visit(Figure{"peak_flops", "FLOP/s", R::mean, S::none, A::median, "of a rank: its rate in large matrix products, all ranks at once (run.measure_peak)", kLeftOut}, f.peak_flops);
  visit(Figure{"strategy", "", R::same, S::none, A::first, "exchange.strategy"}, f.strategy);
  visit(Figure{"algorithm", "", R::same, S::none, A::first, "exchange.algorithm, as chosen"}, f.algorithm);
  visit(Figure{"codec", "", R::same, S::none, A::first, "exchange.codec"}, f.codec);
  visit(Figure{"global_batch", "samples", R::same, S::none, A::first, "a step"}, f.global_batch);
  visit(Figure{"batch_per_replica", "samples", R::same, S::none, A::first, "by replica"}, f.batch_per_replica);
  visit(Figure{"accumulation", "", R::same, S::none, A::first, "micro-batches a step"}, f.accumulation);
  visit(Figure{"scaling", "", R::same, S::none, A::first, "strong or weak"}, f.scaling);
  visit(Figure{"epochs", "", R::same, S::newest, A::first, "done in the whole run"}, f.epochs);
  visit(Figure{"steps", "", R::same, S::newest, A::first, "updates of the whole run"}, f.steps);
  visit(Figure{"timed_steps", "", R::same, S::sum, A::first, "of rank 0, in the quartiles of step_s"}, f.timed_steps);
  visit(Figure{"samples_per_s", "1/s", R::same, S::none, A::median, "the rate: median is samples_per_s_overall; p25 and p75, where ranks step together, that times the median of step_s over its quartiles"}, f.samples_per_s);
  visit(Figure{"samples_per_s_overall", "1/s", R::same, S::none, A::median, "the rate as a number: rate_samples over rate_s", kLeftOut}, f.samples_per_s_overall);
  visit(Figure{"rate_samples", "samples", R::sum, S::sum, A::median, "that entered the model in rate_s: of all replicas, without gradients that were dropped or not finite; of a step that warm-up ends in, the share after it", kLeftOut}, f.rate_samples);
  visit(Figure{"rate_s", "s", R::same, S::none, A::median, "wall time from the end of the first step (of a study's warm-up) of the rank that ended it first to the end of the last step of any rank, without evaluation_s and checkpoint_s", kLeftOut}, f.rate_s);
  visit(Figure{"evaluation_s", "s", R::largest, S::sum, A::median, "of evaluations in that time", kLeftOut}, f.evaluation_s);
  visit(Figure{"checkpoint_s", "s", R::largest, S::sum, A::median, "in that time, for which checkpoints held up training", kLeftOut}, f.checkpoint_s);
  visit(Figure{"samples_trained", "samples", R::sum, S::sum, A::sum, "that entered the model in the time of time_split_s", kLeftOut}, f.samples_trained);
  visit(Figure{"step_s", "s", R::rank0, S::quartiles, A::median, "without hooks; where replicas take steps of their own, of rank 0"}, f.step_s);
  visit(Figure{"time_split_s", "s", R::mean, S::sum, A::sum, "where the time went, waits of a rank that has done all its steps included"}, f.time_split_s);
  visit(Figure{"wire_bytes_per_step", "bytes", R::sum, S::mean, A::median, "sent for gradients, counted at the transport"}, f.wire_bytes_per_step);
  visit(Figure{"warm_wire_bytes_per_step", "bytes", R::sum, S::none, A::median, "the same behind all warm-ups: of a study, of the codec (exchange.codec_warmup_steps), with few replicas (exchange.warmup_steps); null: no step is", kLeftOut}, f.warm_wire_bytes_per_step);
  visit(Figure{"formula_bytes_per_step", "bytes", R::sum, S::none, A::median, "the same by the price list, over all parts of the model; null where a codec's messages depend on the values"}, f.formula_bytes_per_step);
  visit(Figure{"messages_per_step", "", R::sum, S::mean, A::median, "sent for gradients"}, f.messages_per_step);
  visit(Figure{"library_bytes_per_step", "bytes", R::sum, S::mean, A::median, "given to a library that sends them uncounted"}, f.library_bytes_per_step);
  visit(Figure{"split_bytes_per_step", "bytes", R::sum, S::mean, A::median, "between ranks of one replica, evaluation included"}, f.split_bytes_per_step);
  visit(Figure{"halo_bytes_per_step", "bytes", R::sum, S::mean, A::median, "of these, rows of images for neighbours"}, f.halo_bytes_per_step);
  visit(Figure{"allocations_per_step", "", R::sum, S::none, A::median, "calls of operator new by compute threads, hooks left out: of each rank the least of a step", kLeftOut}, f.allocations_per_step);
  visit(Figure{"allocated_bytes_per_step", "bytes", R::sum, S::none, A::median, "for which they asked, likewise", kLeftOut}, f.allocated_bytes_per_step);
  visit(Figure{"exchange_exposed_s", "s", R::mean, S::sum, A::median, "the compute thread waited for the exchange"}, f.exchange_exposed_s);
  visit(Figure{"exchange_hidden_s", "s", R::mean, S::sum, A::median, "the exchange went on beside other work"}, f.exchange_hidden_s);
  visit(Figure{"codec_s", "s", R::mean, S::sum, A::median, "of both, encoding and decoding on the host", kLeftOut}, f.codec_s);
  visit(Figure{"arrival_skew_s", "s", R::same, S::mean, A::median, "arrival skew: largest minus smallest compute time of a rank in a step"}, f.arrival_skew_s);
  visit(Figure{"skew_wait_s", "s", R::mean, S::mean, A::median, "compute time of the slowest rank minus the rank's own: what it waits for in a step, where all meet in each", kLeftOut}, f.skew_wait_s);
  visit(Figure{"slow_ranks", "", R::same, S::sum, A::first, "text: ranks that took clearly longer than the median"}, f.slow_ranks);
  visit(Figure{"bytes_read", "bytes", R::sum, S::sum, A::median, "from the shards"}, f.bytes_read);
  visit(Figure{"bytes_used", "bytes", R::sum, S::sum, A::median, "of these, trained on"}, f.bytes_used);
  visit(Figure{"samples_never", "samples", R::same, S::none, A::first, "of the data set that were never trained in the epoch in which the attempt began, by its end", kLeftOut}, f.samples_never);
  visit(Figure{"samples_once", "samples", R::same, S::none, A::first, "likewise: trained once", kLeftOut}, f.samples_once);
  visit(Figure{"samples_repeated", "samples", R::same, S::none, A::first, "likewise: trained more than once", kLeftOut}, f.samples_repeated);
  visit(Figure{"train_loss", "", R::same, S::newest, A::median, "of the last epoch, else of the last step"}, f.train_loss);
  visit(Figure{"loss_oscillation", "", R::same, S::none, A::median, "root mean square of the training loss (of the i-th steps of all replicas) about its running mean over 51 steps, in the second half of the attempt", kLeftOut}, f.loss_oscillation);
  visit(Figure{"drift", "", R::same, S::mean, A::median, "where weights are averaged: mean over the meetings of the largest distance of a replica from the mean, over the norm of the mean", kLeftOut}, f.drift);
  visit(Figure{"noise_scale", "samples", R::same, S::none, A::median, "gradient noise scale in the second half of the attempt (monitor.noise_scale; McCandlish et al. 2018, appendix A)", kLeftOut}, f.noise_scale);
  visit(Figure{"train_eval_loss", "", R::same, S::newest, A::median, "of the share evaluate.train_fraction of the training data, with the weights of the last evaluation", kLeftOut}, f.train_eval_loss);
  visit(Figure{"train_accuracy", "0..1", R::same, S::newest, A::median, "likewise", kLeftOut}, f.train_accuracy);
  visit(Figure{"test_loss", "", R::same, S::newest, A::median, "of the last evaluation"}, f.test_loss);
  visit(Figure{"test_accuracy", "0..1", R::same, S::newest, A::median, "of the last evaluation"}, f.test_accuracy);
  visit(Figure{"test_top5_accuracy", "0..1", R::same, S::newest, A::median, "likewise: labels among the five largest outputs (evaluate.metrics)", kLeftOut}, f.test_top5_accuracy);
  visit(Figure{"test_macro_f1", "0..1", R::same, S::newest, A::median, "likewise: F1, mean over the classes that are labels or predictions", kLeftOut}, f.test_macro_f1);
  visit(Figure{"test_recall", "0..1", R::same, S::newest, A::first, "likewise by class, of its labels; null: no label", kLeftOut}, f.test_recall);
  visit(Figure{"test_precision", "0..1", R::same, S::newest, A::first, "likewise by class, of its predictions; null: no prediction", kLeftOut}, f.test_precision);
  visit(Figure{"card_peak", "bytes/s", R::list, S::none, A::largest, "sent and received in the busiest tenth of a second", kLeftOut}, f.card_peak);
  visit(Figure{"card_mean", "bytes/s", R::list, S::mean, A::largest, "likewise over the whole attempt", kLeftOut}, f.card_mean);
  visit(Figure{"peak_rss_mb", "MiB", R::list, S::none, A::largest, "peak of the resident memory of a rank's process during the run; null: the process made runs before, and the kernel does not reset its peak"}, f.peak_rss_mb);
  visit(Figure{"device_peak_mb", "MiB", R::list, S::none, A::largest, "memory of the device"}, f.device_peak_mb);
  visit(Figure{"activations_spared_mb", "MiB", R::list, S::none, A::largest, "activation memory below that of gpipe"}, f.activations_spared_mb);
  visit(Figure{"cpu_s", "s", R::sum, S::none, A::median, "processor time of all threads of all ranks, from the start of the run to its end"}, f.cpu_s);
  visit(Figure{"start_to_first_step_s", "s", R::largest, S::none, A::median, "from the start of the process, or of this run in it, to the end of the first step"}, f.start_to_first_step_s);
  visit(Figure{"warmup_steps", "", R::rank0, S::none, A::first, "steps of a study's warm-up that time_split_s, exposed and hidden exchange and arrival skew leave out (study.warmup_steps - 1: the last of them is in the sums, as the first step of any run)", kLeftOut}, f.warmup_steps);
  visit(Figure{"warmup_s", "s", R::mean, S::none, A::median, "likewise: what they took, hooks included", kLeftOut}, f.warmup_s);
  visit(Figure{"weights_checksum", "", R::same, S::newest, A::first, "of all parts of the first replica"}, f.weights_checksum);
  visit(Figure{"tokens_per_s", "1/s", R::same, S::none, A::median, "the rate in tokens, where labels are one a token", kLeftOut}, f.tokens_per_s);
  visit(Figure{"loss_unit", "", R::same, S::none, A::first, "likewise", kLeftOut}, f.loss_unit);
  visit(Figure{"test_perplexity", "", R::same, S::newest, A::median, "likewise: e to the test loss", kLeftOut}, f.test_perplexity);
  visit(Figure{"coded", "", R::rank0, S::sum, A::first, "what the codec did: bytes before and after, seconds, newest residual norm, mean density and tau", kLeftOut}, f.coded);
  visit(Figure{"pace_s", "s", R::list, S::mean, A::largest, "device.pace_ms: time that forward and backward of a step were to take; they computed, then slept", kLeftOut}, f.pace_s);
  visit(Figure{"pace_over_steps", "", R::list, S::sum, A::largest, "likewise: steps that took more than 1.05 of it", kLeftOut}, f.pace_over_steps);
  visit(Figure{"pace_worst", "", R::list, S::none, A::largest, "likewise: longest step over its pace", kLeftOut}, f.pace_worst);
  visit(Figure{"updates_applied", "", R::same, S::none, A::median, "by asynchronous servers, parts of updates", kLeftOut}, f.updates_applied);
  visit(Figure{"updates_dropped", "", R::same, S::none, A::median, "likewise, for their staleness", kLeftOut}, f.updates_dropped);
  visit(Figure{"staleness_mean", "versions", R::same, S::none, A::median, "over the updates that were applied", kLeftOut}, f.staleness_mean);
  visit(Figure{"staleness_largest", "versions", R::same, S::none, A::largest, "of an update that was applied", kLeftOut}, f.staleness_largest);
  visit(Figure{"staleness_by_worker", "", R::same, S::none, A::first, "the same by worker, and the seconds that each waited for the slowest; histograms are in staleness.json", kLeftOut}, f.staleness_by_worker);
  visit(Figure{"gradients_dropped", "", R::list, S::none, A::largest, "of late replicas", kLeftOut}, f.gradients_dropped);
  visit(Figure{"samples_dropped", "", R::list, S::none, A::largest, "likewise, with those of the steps that they left out", kLeftOut}, f.samples_dropped);
  visit(Figure{"updates_held", "", R::sum, S::none, A::median, "strom: parts of updates that were kept back for a slow receiver", kLeftOut}, f.updates_held);
  visit(Figure{"checkpoints", "", R::rank0, S::sum, A::median, "written by this attempt", kLeftOut}, f.checkpoints);
  visit(Figure{"checkpoint_blocked_s", "s", R::rank0, S::sum, A::median, "training waited for them: rows of metrics.jsonl have each", kLeftOut}, f.checkpoint_blocked_s);
  visit(Figure{"checkpoint_write_s", "s", R::rank0, S::sum, A::median, "their writing took, beside training or not", kLeftOut}, f.checkpoint_write_s);
  visit(Figure{"best_checkpoint", "", R::same, S::newest, A::first, "of checkpoint.keep_best", kLeftOut}, f.best_checkpoint);
  visit(Figure{"best_figure", "", R::same, S::newest, A::median, "its figure", kLeftOut}, f.best_figure);
  visit(Figure{"damaged_checkpoints", "", R::rank0, S::none, A::first, "text: newer than the one that this attempt resumed from, with what is wrong", kLeftOut}, f.damaged_checkpoints);
  visit(Figure{"findings", "", R::same, S::none, A::first, "text: what went wrong though the attempt ended as asked: nothing was learned, a link was slow", kLeftOut}, f.findings);
}
// clang-format on

}  // namespace echelon::inline report
