// SPDX-License-Identifier: Apache-2.0
// [network], [device], [evaluate], [checkpoint], [goal], [monitor], [cost], [run] and [fault].
#include "config/keys/section.hpp"
#include "config/traits/devices.hpp"

namespace echelon::inline config::keys {

void add_run(Table& all) {
  auto network = part(all, "network", &Config::network);
  network.key(
      "rate", &NetworkConfig::rate, text(),
      "\"1gbit\", \"100mbit\", \"120MB/s\": messages between hosts are slowed down to cards of this rate, each "
      "direction, and records are marked as shaped; \"100mbit,100mbit,4mbit\": one per host, the last is for all "
      "further ones; \"\": off");
  network.key("delay_us", &NetworkConfig::delay_us, range(0, 1e7), "with rate: latency of messages between hosts");
  network.key(
      "ranks_per_host", &NetworkConfig::ranks_per_host, range(1, 65536),
      "with rate: consecutive ranks that form a host and share its card; messages between them are not delayed");

  auto device = part(all, "device", &Config::device);
  device.key("kind", &DeviceConfig::kind, words(names_in(kDevices)), "auto: cuda if a GPU is usable, else onednn");
  device.key("kinds", &DeviceConfig::kinds, words({"auto", "reference", "onednn", "cuda"}),
             "replaces kind if ranks of a host differ: one per rank of a host; the last is for all further ranks; "
             "[\"cuda\", \"onednn\"]: one GPU, other ranks on processors");
  device.key("dtype", &DeviceConfig::dtype, words({"f32", "f64", "f16", "bf16"}),
             "f64: kinds reference and cuda; f16 and bf16: kinds auto, cuda and onednn; halves are activations only, "
             "weights stay f32");
  device.key("emulate_halves", &DeviceConfig::emulate_halves, {},
             "kinds onednn and auto, dtype bf16 or f16: a processor computes in f32 on values rounded to halves, "
             "whether or not "
             "it multiplies halves; slower than f32, for studies of accuracy");
  device.key(
      "tf32", &DeviceConfig::tf32, {},
      "f32 with faster products; kind cuda: convolutions and matrix products in TF32, about 3 decimal digits; kind "
      "onednn: their factors are rounded to bf16, about 2, where the processor has AVX512_BF16");
  device.key(
      "measure_layouts", &DeviceConfig::measure_layouts, {},
      "kind onednn: rank 0 measures layouts and code of convolutions at the start, for all ranks, and checkpoints hold "
      "its choice; false: a rule, which is the same in every launch");
  device.key("cuda_graphs", &DeviceConfig::cuda_graphs, {},
             "kind cuda: ops are captured once and launched as CUDA graphs, with the same results; false: one by one");
  device.key("allow_fallback", &DeviceConfig::allow_fallback, {},
             "kind cuda: a convolution for which cuDNN has no deterministic algorithm runs as a plain loop, slow, with "
             "a warning; false: such a run ends with exit code 3");
  device.key("workspace_mb", &DeviceConfig::workspace_mb, range(0, 1e6),
             "kind cuda: largest workspace of a convolution's algorithm; algorithms that need more are left out");
  device.key("loss_scale", &DeviceConfig::loss_scale, range(0, 16777216),
             "the loss is scaled by this power of two in backward; 0: dynamic for f16, else off");
  device.key("threads", &DeviceConfig::threads, range(0, 4096),
             "threads of one rank; 0: cores of the host / ranks on it");
  device.key("memory_limit_mb", &DeviceConfig::memory_limit_mb, at_least(0),
             "largest memory of a rank on its device; 0: no limit");
  device.key("paced_gflops", &DeviceConfig::paced_gflops, range(1e-6, 1e9),
             "kind paced, pace_ms: rate of ops without a row in the table");
  device.key("paced_gb_per_s", &DeviceConfig::paced_gb_per_s, range(1e-6, 1e9),
             "kind paced, pace_ms: memory rate of the same");
  device.key("paced_table", &DeviceConfig::paced_table, text(),
             "kind paced, pace_ms: file of measured op times (bench step --table)");
  device.key("pace_ms", &DeviceConfig::pace_ms, range(-1, 1e6),
             "ops compute, then sleep, so that forward and backward of a step take this long; -1: each op takes its "
             "time by paced_table and the rates; 0: off");
  device.key("pace_jitter", &DeviceConfig::pace_jitter, range(0, 3),
             "pace_ms: a step's pace is multiplied by e^(this x a standard normal draw)");
  device.key("pace_spread", &DeviceConfig::pace_spread, range(0, 3),
             "pace_ms: each rank's pace is multiplied in the same way, by one draw per run");
  device.key("pace_factors", &DeviceConfig::pace_factors, range(1e-3, 1e6),
             "pace_ms: factors on the pace, one per rank; 1 for ranks beyond the list");

  auto evaluate = part(all, "evaluate", &Config::evaluate);
  evaluate.key("every_epochs", &EvaluateConfig::every_epochs, range(0, 1e6),
               "interval of evaluations; 0: only at the end");
  evaluate.key(
      "every_steps", &EvaluateConfig::every_steps, at_least(0),
      "also every N steps, at the next meeting; if replicas step at their own pace, every N steps of replica 0, "
      "which evaluates its weights while the others train; 0: off");
  evaluate.key("batch", &EvaluateConfig::batch, range(1, 1e6),
               "samples per forward pass of a rank; with data.order = \"stream\" rows over all ranks");
  evaluate.key("by", &EvaluateConfig::by, words({"all", "first", "aside"}),
               "all: every replica takes a part of the data; first: the first replica alone; aside: no replica, but "
               "`echelon eval --follow` beside the run",
               kNeutral);
  evaluate.key(
      "metrics", &EvaluateConfig::metrics,
      words({"top5_accuracy", "macro_f1", "mean_iou", "class_recall", "class_precision", "class_f1", "class_iou",
             "confusion", "auc", "mae", "r2"}),
      "figures beside loss, accuracy and perplexity: of classes (F1 is the Dice coefficient of pixels), auc of "
      "two classes, mae and r2 of numbers",
      kNeutral);
  evaluate.key("train_fraction", &EvaluateConfig::train_fraction, range(0, 1),
               "share of the training samples whose loss and accuracy, without augmentation, each evaluation of all "
               "replicas measures beside those of data.test; 0: none",
               kNeutral);

  auto checkpoint = part(all, "checkpoint", &Config::checkpoint, kNeutral);
  checkpoint.key("every_steps", &CheckpointConfig::every_steps, at_least(0), "0: off");
  checkpoint.key("every_minutes", &CheckpointConfig::every_minutes, range(0, 1e6), "0: off");
  checkpoint.key("every_epochs", &CheckpointConfig::every_epochs, range(0, 1e6), "0: off");
  checkpoint.key("keep", &CheckpointConfig::keep, range(1, 10000), "number of newest checkpoints that are kept");
  checkpoint.key(
      "keep_best", &CheckpointConfig::keep_best,
      words({"", "test_accuracy", "test_loss", "test_perplexity", "test_mean_iou", "test_macro_f1", "test_auc",
             "test_mae", "test_r2"}),
      "also writes a checkpoint after each evaluation with a new best value of this figure, and keeps the best "
      "one besides the newest; \"\": none");
  checkpoint.key("asynchronous", &CheckpointConfig::asynchronous, {},
                 "training continues once the state is copied in memory; a thread of rank 0 writes it");
  checkpoint.key("verify", &CheckpointConfig::verify, {},
                 "reads each checkpoint back and verifies it before it counts and older ones are removed");

  auto goal = part(all, "goal", &Config::goal, kNeutral);
  goal.key("metric", &GoalConfig::metric,
           words({"", "test_accuracy", "test_loss", "test_perplexity", "test_mean_iou", "test_macro_f1", "test_auc",
                  "test_mae", "test_r2"}),
           "evaluation figure that target refers to; \"\": none");
  goal.key(
      "target", &GoalConfig::target, range(0, 1e9),
      "at least this accuracy, IoU or F1, at most this loss or perplexity; a run that ends without it exits with 8");
  goal.key("stop", &GoalConfig::stop, {}, "training ends at the first evaluation of all replicas that reaches it");
  goal.key("most_samples", &GoalConfig::most_samples, range(0, 1e6),
           "studies: limit for the samples to the target, relative to those of the fewest ranks; 0: off");
  goal.key("least_efficiency", &GoalConfig::least_efficiency, range(0, 1),
           "studies: lower limit for the scaling efficiency; 0: off");
  goal.key("greatest_cost", &GoalConfig::greatest_cost, range(0, 1e12),
           "studies: limit for the cost of a run; needs cost.node_hour or cost.rank_hour; 0: off");
  goal.key("deadline_h", &GoalConfig::deadline_h, range(0, 1e6), "studies: limit for the hours of a run; 0: off");

  auto monitor = part(all, "monitor", &Config::monitor, kNeutral);
  const KeyLimits watch = words({"off", "warn", "stop"});
  monitor.key("divergence", &MonitorConfig::divergence, watch,
              "the loss is far above the first step's (train.divergence_factor); stop: exit 5");
  monitor.key("noise_scale", &MonitorConfig::noise_scale, {},
              "exchange.strategy synchronous: the gradient noise scale, from the norms of each replica's gradient and "
              "of their mean; two more passes over the gradients");
  monitor.key("plateau", &MonitorConfig::plateau, watch,
              "the loss of evaluations no longer falls; stop: the run is finished");
  monitor.key("plateau_evaluations", &MonitorConfig::plateau_evaluations, range(1, 1e6),
              "evaluations in a row without a loss below the best");
  monitor.key("plateau_change", &MonitorConfig::plateau_change, range(0, 1),
              "relative improvement on the best loss that counts");
  monitor.key("memory", &MonitorConfig::memory, watch, "resident memory of a rank grows; stop: checkpoint, exit 75");
  monitor.key("memory_growth_mb", &MonitorConfig::memory_growth_mb, range(1, 1e9),
              "continuing growth since the first samples that is reported");
  monitor.key("slow_rank", &MonitorConfig::slow_rank, watch,
              "a rank computes longer than the others or than before; stop: checkpoint, exit 75");
  monitor.key("slow_factor", &MonitorConfig::slow_factor, range(1.01, 1e6),
              "limit as a multiple of the median rank's compute time, or of the rank's own least median");
  monitor.key("slow_steps", &MonitorConfig::slow_steps, range(2, 1e6), "steps over which medians are taken");
  monitor.key("throttling", &MonitorConfig::throttling, watch,
              "a GPU runs below its clock because of heat or the host's power brake; stop: checkpoint, exit 75");
  monitor.key("out_of_time", &MonitorConfig::out_of_time, words({"off", "warn"}),
              "at its rate the run would end after Slurm's time limit");

  auto cost = part(all, "cost", &Config::cost, kNeutral);
  cost.key("node_hour", &CostConfig::node_hour, range(0, 1e9), "price of an hour of one host; 0: not known");
  cost.key("rank_hour", &CostConfig::rank_hour, range(0, 1e9),
           "price of an hour of one rank, if ranks and not hosts are billed; 0: not known");
  cost.key("currency", &CostConfig::currency, filled_text(), "currency of these prices, for reports");

  auto run = part(all, "run", &Config::run, kNeutral);
  run.key("results", &RunConfig::results, filled_text(), "folder of all runs");
  run.key("restart", &RunConfig::restart, words({"auto", "never", "require"}),
          "resume the newest checkpoint of the same config");
  run.key("resume_from", &RunConfig::resume_from, text(),
          "run folder, attempt folder or checkpoint file of another run to begin from", !kNeutral);
  run.key("resume_weights_only", &RunConfig::resume_weights_only, {},
          "resume_from: loads only its weights and starts at step 0", !kNeutral);
  run.key("replay", &RunConfig::replay, text(),
          "folder of a run or attempt: repeat its recorded order of arrivals, for the same weights bit for bit",
          !kNeutral);
  run.key("heartbeat_s", &RunConfig::heartbeat_s, range(0.01, 86400), "a line of progress at least this often");
  run.key("hang_timeout_s", &RunConfig::hang_timeout_s, range(0.1, 604800),
          "a wait longer than this ends the job with exit code 7");
  run.key("on_lost_worker", &RunConfig::on_lost_worker, words({"stop", "continue"}),
          "continue: if the strategy can, the others continue without a worker that was killed, or is silent for "
          "hang_timeout_s");
  run.key("allow_faults", &RunConfig::allow_faults, {}, "[fault] and ECHELON_FAULT may break this run on purpose");
  run.key("stop_before_end_s", &RunConfig::stop_before_end_s, range(0, 604800),
          "write a checkpoint and exit with 75 this long before the job's time limit, or half of what is left of it at "
          "the start, if that is less; 0: off");
  run.key("progress", &RunConfig::progress, words({"auto", "bar", "lines", "none"}), "");
  run.key("log_every_steps", &RunConfig::log_every_steps, range(1, 1e9), "interval of rows of metrics.jsonl");
  run.key(
      "measure_peak", &RunConfig::measure_peak, {},
      "at the end, the rate of large matrix products on all ranks at once: reports show the share of it that a step "
      "reaches");
  run.key("trace", &RunConfig::trace, text(),
          "\"steps 10..20\": traces these steps on every rank into trace.txt and trace.json; \"\": off");

  auto fault = part(all, "fault", &Config::fault, kNeutral);
  fault.key("inject", &FaultConfig::inject, text(),
            "faults on purpose, \"kill rank 1 at step 30\" and others (slurm/FAULTS.md); needs run.allow_faults");
  fault.key("seed", &FaultConfig::seed, at_least(0), "seed of random ranks, steps and bits of faults");
}

}  // namespace echelon::inline config::keys
