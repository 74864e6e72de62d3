// SPDX-License-Identifier: Apache-2.0
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
  visit(Figure{"loss", "", R::same, S::none, A::first, "mean loss over the labels of all ranks in the step"}, f.loss);
  visit(Figure{"samples", "", R::same, S::none, A::first, "samples of the step; of rank 0's step if replicas step at their own pace"}, f.samples);
  visit(Figure{"samples_per_s", "1/s", R::rank0, S::none, A::first, "samples of the step over its time without hooks; the rate of the run is in summary.json"}, f.samples_per_s);
  visit(Figure{"time", "s", R::rank0, S::none, A::first, "parts of the step; hooks after a checkpoint's write are in the next row"}, f.time);
  visit(Figure{"exchange_exposed_s", "s", R::rank0, S::none, A::first, "time that the compute thread waited for the exchange", kLeftOut}, f.exchange_exposed_s);
  visit(Figure{"exchange_hidden_s", "s", R::rank0, S::none, A::first, "exchange time that other work overlapped", kLeftOut}, f.exchange_hidden_s);
  visit(Figure{"wire_bytes", "bytes", R::rank0, S::none, A::first, "bytes sent for gradients", kLeftOut}, f.wire_bytes);
  visit(Figure{"arrival_skew_s", "s", R::same, S::none, A::first, "largest minus smallest compute time of a rank in the previous step", kLeftOut}, f.arrival_skew_s);
  visit(Figure{"ranks_before", "s", R::list, S::none, A::first, "compute, exposed, exchange and wire_bytes of the previous step; recorded for some steps", kLeftOut}, f.ranks_before);
  visit(Figure{"tokens", "", R::same, S::none, A::first, "tokens of the step, if there is one label per token", kLeftOut}, f.tokens);
  visit(Figure{"tokens_per_s", "1/s", R::rank0, S::none, A::first, "tokens of the step over its time without hooks", kLeftOut}, f.tokens_per_s);
  visit(Figure{"gradient_norm", "", R::same, S::none, A::first, "norm of the gradient over all weights, before clipping", kLeftOut}, f.gradient_norm);
  visit(Figure{"loss_scale", "", R::same, S::none, A::first, "factor by which the loss is scaled", kLeftOut}, f.loss_scale);
  visit(Figure{"skipped", "", R::same, S::none, A::first, "true if the gradients were not finite, so that no weight changed", kLeftOut}, f.skipped);
  visit(Figure{"codec", "", R::rank0, S::none, A::first, "bytes before and after coding, seconds of coding on the host, residual norm, density, tau", kLeftOut}, f.codec);
  visit(Figure{"drift", "", R::same, S::none, A::first, "largest distance of a replica's weights from their mean, relative to the norm of the mean; only if weights are averaged", kLeftOut}, f.drift);
}

template <figures::Is<EpochFigures> F, class Visit>
void each(F& f, Visit&& visit) {
  using namespace figures;
  visit(Figure{"epoch", "", R::same, S::none, A::first, "epochs done"}, f.epoch);
  visit(Figure{"step", "", R::same, S::none, A::first, "updates done"}, f.step);
  visit(Figure{"train_loss", "", R::same, S::mean, A::first, "mean training loss over the labels of the epoch"}, f.train_loss);
  visit(Figure{"test_loss", "", R::same, S::none, A::first, "test loss, if evaluated"}, f.test_loss);
  visit(Figure{"test_accuracy", "0..1", R::same, S::none, A::first, "test accuracy, if evaluated and the loss has a right answer"}, f.test_accuracy);
  visit(Figure{"test_perplexity", "", R::same, S::none, A::first, "e to the test loss, if there is one label per token", kLeftOut}, f.test_perplexity);
  visit(Figure{"test_top5_accuracy", "0..1", R::same, S::none, A::first, "fraction of the labels that are among the five largest outputs (evaluate.metrics)", kLeftOut}, f.test_top5_accuracy);
  visit(Figure{"test_macro_f1", "0..1", R::same, S::none, A::first, "macro F1 over the classes that occur as labels or predictions (evaluate.metrics)", kLeftOut}, f.test_macro_f1);
  visit(Figure{"test_mean_iou", "0..1", R::same, S::none, A::first, "mean over the same classes of right / (labels + predictions - right) (evaluate.metrics)", kLeftOut}, f.test_mean_iou);
  visit(Figure{"test_auc", "0..1", R::same, S::none, A::first, "area under the ROC curve of two classes (evaluate.metrics)", kLeftOut}, f.test_auc);
  visit(Figure{"test_mae", "", R::same, S::none, A::first, "mean absolute error of numbers, in units of the labels (evaluate.metrics)", kLeftOut}, f.test_mae);
  visit(Figure{"test_r2", "", R::same, S::none, A::first, "coefficient of determination, the mean over the numbers of a label (evaluate.metrics)", kLeftOut}, f.test_r2);
  visit(Figure{"test_recall", "0..1", R::same, S::none, A::first, "recall by class (evaluate.metrics); null: no label of the class", kLeftOut}, f.test_recall);
  visit(Figure{"test_precision", "0..1", R::same, S::none, A::first, "precision by class (evaluate.metrics); null: no prediction of the class", kLeftOut}, f.test_precision);
  visit(Figure{"test_f1", "0..1", R::same, S::none, A::first, "F1 by class, the Dice coefficient of pixels (evaluate.metrics); null: the class does not occur", kLeftOut}, f.test_f1);
  visit(Figure{"test_iou", "0..1", R::same, S::none, A::first, "intersection over union by class (evaluate.metrics); null: the class does not occur", kLeftOut}, f.test_iou);
  visit(Figure{"train_eval_loss", "", R::same, S::none, A::first, "loss on the share evaluate.train_fraction of the training data, with the weights of the evaluation", kLeftOut}, f.train_eval_loss);
  visit(Figure{"train_accuracy", "0..1", R::same, S::none, A::first, "accuracy on the same data", kLeftOut}, f.train_accuracy);
  visit(Figure{"seconds", "s", R::rank0, S::sum, A::first, "time of the epoch, evaluation included"}, f.seconds);
}

template <figures::Is<CheckpointFigures> F, class Visit>
void each(F& f, Visit&& visit) {
  using namespace figures;
  visit(Figure{"step", "", R::same, S::none, A::first, "updates done"}, f.step);
  visit(Figure{"bytes", "bytes", R::rank0, S::none, A::first, "size of the file"}, f.bytes);
  visit(Figure{"blocked_s", "s", R::rank0, S::none, A::first, "time that training waited for the copy of its state and for an unfinished write (for the whole write if not asynchronous)"}, f.blocked_s);
  visit(Figure{"write_s", "s", R::rank0, S::none, A::first, "time until the checkpoint counted: written, synced, renamed, older ones removed"}, f.write_s);
}

template <figures::Is<RunFigures> F, class Visit>
void each(F& f, Visit&& visit) {
  using namespace figures;
  visit(Figure{"name", "", R::same, S::none, A::first, "name of the config"}, f.name);
  visit(Figure{"config_hash", "", R::same, S::none, A::first, "hash of the config without its restart-neutral keys"}, f.config_hash);
  visit(Figure{"state", "", R::same, S::none, A::first, "finished or stopped"}, f.state);
  visit(Figure{"ranks", "", R::same, S::none, A::first, "ranks that train"}, f.ranks);
  visit(Figure{"mesh", "", R::same, S::none, A::first, "data x pipeline x tensor x space ranks"}, f.mesh);
  visit(Figure{"servers", "", R::same, S::none, A::first, "servers on their own ranks"}, f.servers);
  visit(Figure{"hosts", "", R::same, S::none, A::first, ""}, f.hosts);
  visit(Figure{"device", "", R::rank0, S::none, A::first, "onednn, cuda, reference or paced"}, f.device);
  visit(Figure{"device_text", "", R::rank0, S::none, A::first, "model and threads of the device"}, f.device_text);
  visit(Figure{"paced", "", R::same, S::none, A::first, "whether ops slept for tabulated times"}, f.paced);
  visit(Figure{"shaped", "", R::same, S::none, A::first, "network that messages were slowed down to ([network])", kLeftOut}, f.shaped);
  visit(Figure{"dtype", "", R::same, S::none, A::first, "type of weights and activations"}, f.dtype);
  visit(Figure{"threads", "", R::rank0, S::none, A::first, "threads of the device"}, f.threads);
  visit(Figure{"model", "", R::same, S::none, A::first, "from the zoo, or the config's name"}, f.model);
  visit(Figure{"parameters", "", R::same, S::none, A::first, "weights of the whole model"}, f.parameters);
  visit(Figure{"forward_flops", "FLOP", R::same, S::none, A::first, "FLOP of the forward pass of one sample through the whole model; a multiply-add is 2"}, f.forward_flops);
  visit(Figure{"backward_flops", "FLOP", R::same, S::none, A::first, "FLOP of the backward pass of one sample"}, f.backward_flops);
  visit(Figure{"peak_flops", "FLOP/s", R::mean, S::none, A::median, "a rank's rate in large matrix products while all ranks run them (run.measure_peak)", kLeftOut}, f.peak_flops);
  visit(Figure{"strategy", "", R::same, S::none, A::first, "exchange.strategy"}, f.strategy);
  visit(Figure{"algorithm", "", R::same, S::none, A::first, "exchange.algorithm, as chosen"}, f.algorithm);
  visit(Figure{"codec", "", R::same, S::none, A::first, "exchange.codec"}, f.codec);
  visit(Figure{"global_batch", "samples", R::same, S::none, A::first, "samples per step"}, f.global_batch);
  visit(Figure{"batch_per_replica", "samples", R::same, S::none, A::first, "samples per step, by replica"}, f.batch_per_replica);
  visit(Figure{"accumulation", "", R::same, S::none, A::first, "micro-batches per step"}, f.accumulation);
  visit(Figure{"scaling", "", R::same, S::none, A::first, "strong or weak"}, f.scaling);
  visit(Figure{"epochs", "", R::same, S::newest, A::first, "epochs done in the whole run"}, f.epochs);
  visit(Figure{"steps", "", R::same, S::newest, A::first, "updates of the whole run"}, f.steps);
  visit(Figure{"timed_steps", "", R::same, S::sum, A::first, "steps of rank 0 in the quartiles of step_s"}, f.timed_steps);
  visit(Figure{"samples_per_s", "1/s", R::same, S::none, A::median, "rate of the run (median: samples_per_s_overall); p25 and p75: that rate scaled by the quartiles of step_s, if all ranks step together"}, f.samples_per_s);
  visit(Figure{"samples_per_s_overall", "1/s", R::same, S::none, A::median, "the rate as a number: rate_samples over rate_s", kLeftOut}, f.samples_per_s_overall);
  visit(Figure{"rate_samples", "samples", R::sum, S::sum, A::median, "samples of all replicas that entered the model in the span of rate_s, without dropped or non-finite gradients; of the step in which the warm-up ends, only the share after it counts", kLeftOut}, f.rate_samples);
  visit(Figure{"rate_s", "s", R::same, S::none, A::median, "wall time from the earliest end of a rank's first step (or of a study's warm-up) to the latest end of a last step, minus evaluation_s and checkpoint_s", kLeftOut}, f.rate_s);
  visit(Figure{"evaluation_s", "s", R::largest, S::sum, A::median, "time in this span that evaluations blocked training", kLeftOut}, f.evaluation_s);
  visit(Figure{"checkpoint_s", "s", R::largest, S::sum, A::median, "time in this span that checkpoints blocked training", kLeftOut}, f.checkpoint_s);
  visit(Figure{"samples_trained", "samples", R::sum, S::sum, A::sum, "samples that entered the model during time_split_s", kLeftOut}, f.samples_trained);
  visit(Figure{"step_s", "s", R::rank0, S::quartiles, A::median, "time of a step without hooks; of rank 0's steps if replicas step at their own pace"}, f.step_s);
  visit(Figure{"time_split_s", "s", R::mean, S::sum, A::sum, "time by part, including the wait of a rank that has done all its steps"}, f.time_split_s);
  visit(Figure{"wire_bytes_per_step", "bytes", R::sum, S::mean, A::median, "bytes sent for gradients, counted at the transport"}, f.wire_bytes_per_step);
  visit(Figure{"down_bytes_per_step", "bytes", R::sum, S::mean, A::median, "part of wire_bytes_per_step that servers sent to workers; the rest went up to servers, or between equals"}, f.down_bytes_per_step);
  visit(Figure{"warm_wire_bytes_per_step", "bytes", R::sum, S::none, A::median, "wire bytes per step after all warm-ups (of a study; exchange.codec_warmup_steps; exchange.warmup_steps with few replicas); null: no such step", kLeftOut}, f.warm_wire_bytes_per_step);
  visit(Figure{"formula_bytes_per_step", "bytes", R::sum, S::none, A::median, "wire bytes per step by formula, over all parts of the model; null if a codec's message sizes depend on the values"}, f.formula_bytes_per_step);
  visit(Figure{"messages_per_step", "", R::sum, S::mean, A::median, "messages sent for gradients"}, f.messages_per_step);
  visit(Figure{"library_bytes_per_step", "bytes", R::sum, S::mean, A::median, "bytes given to a library that sends them uncounted"}, f.library_bytes_per_step);
  visit(Figure{"split_bytes_per_step", "bytes", R::sum, S::mean, A::median, "bytes between ranks of one replica, evaluation included"}, f.split_bytes_per_step);
  visit(Figure{"halo_bytes_per_step", "bytes", R::sum, S::mean, A::median, "part of split_bytes_per_step for image rows of neighbours"}, f.halo_bytes_per_step);
  visit(Figure{"allocations_per_step", "", R::sum, S::none, A::median, "allocations (operator new) of compute threads without hooks; minimum over steps for each rank", kLeftOut}, f.allocations_per_step);
  visit(Figure{"allocated_bytes_per_step", "bytes", R::sum, S::none, A::median, "bytes requested by these allocations", kLeftOut}, f.allocated_bytes_per_step);
  visit(Figure{"exchange_exposed_s", "s", R::mean, S::sum, A::median, "time that the compute thread waited for the exchange"}, f.exchange_exposed_s);
  visit(Figure{"exchange_hidden_s", "s", R::mean, S::sum, A::median, "exchange time that other work overlapped"}, f.exchange_hidden_s);
  visit(Figure{"codec_s", "s", R::mean, S::sum, A::median, "part of exposed and hidden exchange spent on encoding and decoding on the host", kLeftOut}, f.codec_s);
  visit(Figure{"arrival_skew_s", "s", R::same, S::mean, A::median, "largest minus smallest compute time of a rank in a step"}, f.arrival_skew_s);
  visit(Figure{"skew_wait_s", "s", R::mean, S::mean, A::median, "time that the rank waits for the slowest one in a step, if all ranks meet in each step: compute time of that rank minus its own", kLeftOut}, f.skew_wait_s);
  visit(Figure{"slow_ranks", "", R::same, S::sum, A::first, "text: ranks that took clearly longer than the median"}, f.slow_ranks);
  visit(Figure{"bytes_read", "bytes", R::sum, S::sum, A::median, "bytes read from the shards"}, f.bytes_read);
  visit(Figure{"bytes_used", "bytes", R::sum, S::sum, A::median, "bytes of these that were trained on"}, f.bytes_used);
  visit(Figure{"samples_never", "samples", R::same, S::none, A::first, "samples of the data set never trained in the epoch in which the attempt began, counted at the end of the attempt", kLeftOut}, f.samples_never);
  visit(Figure{"samples_once", "samples", R::same, S::none, A::first, "samples trained once in that epoch", kLeftOut}, f.samples_once);
  visit(Figure{"samples_repeated", "samples", R::same, S::none, A::first, "samples trained more than once in that epoch", kLeftOut}, f.samples_repeated);
  visit(Figure{"train_loss", "", R::same, S::newest, A::median, "training loss of the last epoch, else of the last step"}, f.train_loss);
  visit(Figure{"loss_oscillation", "", R::same, S::none, A::median, "root mean square of the training loss (of the i-th steps of all replicas) about its running mean over 51 steps, in the second half of the attempt", kLeftOut}, f.loss_oscillation);
  visit(Figure{"drift", "", R::same, S::mean, A::median, "largest distance of a replica's weights from their mean, relative to the norm of the mean; mean over the meetings; only if weights are averaged", kLeftOut}, f.drift);
  visit(Figure{"noise_scale", "samples", R::same, S::none, A::median, "gradient noise scale in the second half of the attempt (monitor.noise_scale; McCandlish et al. 2018, appendix A)", kLeftOut}, f.noise_scale);
  visit(Figure{"train_eval_loss", "", R::same, S::newest, A::median, "loss on the share evaluate.train_fraction of the training data, with the weights of the last evaluation", kLeftOut}, f.train_eval_loss);
  visit(Figure{"train_accuracy", "0..1", R::same, S::newest, A::median, "accuracy on the same data", kLeftOut}, f.train_accuracy);
  visit(Figure{"test_loss", "", R::same, S::newest, A::median, "test loss of the last evaluation"}, f.test_loss);
  visit(Figure{"test_accuracy", "0..1", R::same, S::newest, A::median, "test accuracy of the last evaluation"}, f.test_accuracy);
  visit(Figure{"test_top5_accuracy", "0..1", R::same, S::newest, A::median, "fraction of the labels that are among the five largest outputs, in the last evaluation (evaluate.metrics)", kLeftOut}, f.test_top5_accuracy);
  visit(Figure{"test_macro_f1", "0..1", R::same, S::newest, A::median, "macro F1 over the classes that occur as labels or predictions, in the last evaluation (evaluate.metrics)", kLeftOut}, f.test_macro_f1);
  visit(Figure{"test_mean_iou", "0..1", R::same, S::newest, A::median, "mean over the same classes of right / (labels + predictions - right), in the last evaluation (evaluate.metrics)", kLeftOut}, f.test_mean_iou);
  visit(Figure{"test_auc", "0..1", R::same, S::newest, A::median, "area under the ROC curve of two classes, in the last evaluation (evaluate.metrics)", kLeftOut}, f.test_auc);
  visit(Figure{"test_mae", "", R::same, S::newest, A::median, "mean absolute error of numbers, in the last evaluation (evaluate.metrics)", kLeftOut}, f.test_mae);
  visit(Figure{"test_r2", "", R::same, S::newest, A::median, "coefficient of determination, in the last evaluation (evaluate.metrics)", kLeftOut}, f.test_r2);
  visit(Figure{"test_recall", "0..1", R::same, S::newest, A::first, "recall by class in the last evaluation (evaluate.metrics); null: no label of the class", kLeftOut}, f.test_recall);
  visit(Figure{"test_precision", "0..1", R::same, S::newest, A::first, "precision by class in the last evaluation (evaluate.metrics); null: no prediction of the class", kLeftOut}, f.test_precision);
  visit(Figure{"test_f1", "0..1", R::same, S::newest, A::first, "F1 by class in the last evaluation, the Dice coefficient of pixels (evaluate.metrics); null: the class does not occur", kLeftOut}, f.test_f1);
  visit(Figure{"test_iou", "0..1", R::same, S::newest, A::first, "intersection over union by class in the last evaluation (evaluate.metrics); null: the class does not occur", kLeftOut}, f.test_iou);
  visit(Figure{"card_peak", "bytes/s", R::list, S::none, A::largest, "bytes per second sent and received in the busiest tenth of a second", kLeftOut}, f.card_peak);
  visit(Figure{"card_mean", "bytes/s", R::list, S::mean, A::largest, "bytes per second sent and received, mean over the attempt", kLeftOut}, f.card_mean);
  visit(Figure{"peak_rss_mb", "MiB", R::list, S::none, A::largest, "peak of the resident memory of a rank's process during the run; null: the process made runs before, and the kernel does not reset its peak"}, f.peak_rss_mb);
  visit(Figure{"device_peak_mb", "MiB", R::list, S::none, A::largest, "memory of the device"}, f.device_peak_mb);
  visit(Figure{"activations_spared_mb", "MiB", R::list, S::none, A::largest, "activation memory below that of gpipe"}, f.activations_spared_mb);
  visit(Figure{"cpu_s", "s", R::sum, S::none, A::median, "processor time of all threads of all ranks, from the start of the run to its end"}, f.cpu_s);
  visit(Figure{"start_to_first_step_s", "s", R::largest, S::none, A::median, "from the start of the process, or of this run in it, to the end of the first step"}, f.start_to_first_step_s);
  visit(Figure{"warmup_steps", "", R::rank0, S::none, A::first, "steps of a study's warm-up that time_split_s, exposed and hidden exchange and arrival skew leave out (study.warmup_steps - 1: the last of them is in the sums, as the first step of any run)", kLeftOut}, f.warmup_steps);
  visit(Figure{"warmup_s", "s", R::mean, S::none, A::median, "time of these warm-up steps, hooks included", kLeftOut}, f.warmup_s);
  visit(Figure{"weights_checksum", "", R::same, S::newest, A::first, "checksum of all parts of the first replica"}, f.weights_checksum);
  visit(Figure{"tokens_per_s", "1/s", R::same, S::none, A::median, "samples_per_s in tokens, if there is one label per token", kLeftOut}, f.tokens_per_s);
  visit(Figure{"loss_unit", "", R::same, S::none, A::first, "unit of the loss, if there is one label per token", kLeftOut}, f.loss_unit);
  visit(Figure{"test_perplexity", "", R::same, S::newest, A::median, "e to the test loss, if there is one label per token", kLeftOut}, f.test_perplexity);
  visit(Figure{"coded", "", R::rank0, S::sum, A::first, "codec: bytes before and after, seconds, newest residual norm, mean density and tau", kLeftOut}, f.coded);
  visit(Figure{"pace_s", "s", R::list, S::mean, A::largest, "device.pace_ms: planned time of forward and backward of a step, in which ops compute, then sleep", kLeftOut}, f.pace_s);
  visit(Figure{"pace_over_steps", "", R::list, S::sum, A::largest, "device.pace_ms: steps above 1.05 of the pace", kLeftOut}, f.pace_over_steps);
  visit(Figure{"pace_worst", "", R::list, S::none, A::largest, "device.pace_ms: longest step over its pace", kLeftOut}, f.pace_worst);
  visit(Figure{"updates_applied", "", R::same, S::none, A::median, "parts of updates that asynchronous servers applied", kLeftOut}, f.updates_applied);
  visit(Figure{"updates_dropped", "", R::same, S::none, A::median, "parts of updates dropped for staleness", kLeftOut}, f.updates_dropped);
  visit(Figure{"staleness_mean", "versions", R::same, S::none, A::median, "mean staleness of the applied updates", kLeftOut}, f.staleness_mean);
  visit(Figure{"staleness_largest", "versions", R::same, S::none, A::largest, "largest staleness of an applied update", kLeftOut}, f.staleness_largest);
  visit(Figure{"staleness_by_worker", "", R::same, S::none, A::first, "staleness by worker, and the seconds that each worker waited for the slowest; histograms are in staleness.json", kLeftOut}, f.staleness_by_worker);
  visit(Figure{"gradients_dropped", "", R::list, S::none, A::largest, "dropped gradients of late replicas", kLeftOut}, f.gradients_dropped);
  visit(Figure{"samples_dropped", "", R::list, S::none, A::largest, "samples of dropped gradients and of skipped steps", kLeftOut}, f.samples_dropped);
  visit(Figure{"updates_held", "", R::sum, S::none, A::median, "strom: parts of updates held back for a slow receiver", kLeftOut}, f.updates_held);
  visit(Figure{"checkpoints", "", R::rank0, S::sum, A::median, "checkpoints written by this attempt", kLeftOut}, f.checkpoints);
  visit(Figure{"checkpoint_blocked_s", "s", R::rank0, S::sum, A::median, "time that checkpoints blocked training; rows of metrics.jsonl have each", kLeftOut}, f.checkpoint_blocked_s);
  visit(Figure{"checkpoint_write_s", "s", R::rank0, S::sum, A::median, "time to write checkpoints, blocking or not", kLeftOut}, f.checkpoint_write_s);
  visit(Figure{"best_checkpoint", "", R::same, S::newest, A::first, "checkpoint chosen by checkpoint.keep_best", kLeftOut}, f.best_checkpoint);
  visit(Figure{"best_figure", "", R::same, S::newest, A::median, "figure of the best checkpoint", kLeftOut}, f.best_figure);
  visit(Figure{"damaged_checkpoints", "", R::rank0, S::none, A::first, "text: damaged checkpoints newer than the one resumed from, with the damage", kLeftOut}, f.damaged_checkpoints);
  visit(Figure{"findings", "", R::same, S::none, A::first, "text: problems of an attempt that otherwise ended normally: nothing was learned, a link was slow", kLeftOut}, f.findings);
}
// clang-format on

}  // namespace echelon::inline report
