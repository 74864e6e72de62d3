// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/report/written.hpp"

#include <fmt/format.h>

#include "base/atomic_file.hpp"
#include "config/parse.hpp"
#include "report/writers/writers.hpp"

namespace echelon::test {
namespace {

std::string summary_text(const Written& run) {
  std::string batches;
  for (int r = 0; r < run.ranks; ++r) batches += fmt::format("{}{}", r ? "," : "", run.global / run.ranks);
  return fmt::format(
      R"({{"format":"echelon-summary","version":2,"name":"digits","config_hash":"{}",
"state":"{}","ranks":{},"mesh":{{"data":{},"pipeline":{},"tensor":1,"space":1}},"servers":{},"hosts":1,
"device":"{}","device_text":"a CPU, 1 thread","paced":{},"dtype":"f32","threads":1,"model":"cnn_32_64",
"parameters":421642,
"strategy":"synchronous","algorithm":"{}","global_batch":{},"batch_per_replica":[{}],"accumulation":1,"scaling":"{}",
"epochs":3,"steps":345,
"timed_steps":340,"samples_per_s":{{"median":{},"p25":{},"p75":{}}},
"step_s":{{"median":0.05,"p25":0.04,"p75":0.06}},
"time_split_s":{{"data":1,"forward":2,"backward":3.3,"exchange":1.1,"optimizer":0.5,"hooks":0.05,
"other":0.05,"total":8}},
"wire_bytes_per_step":{},"formula_bytes_per_step":{},"messages_per_step":12,
"split_bytes_per_step":{},"halo_bytes_per_step":512,
"exchange_exposed_s":1,"exchange_hidden_s":3,"arrival_skew_s":0.002,"bytes_read":1000,"bytes_used":900,
"train_loss":0.11,"test_loss":null,"test_accuracy":{},"peak_rss_mb":[100,120.5],"device_peak_mb":[10,11],
"start_to_first_step_s":0.4,"provenance":{{"version":"0.1.0","commit":"abc","hosts":["n1"],"devices":["a CPU"],
"mpi":"Open MPI 4.1","seed":{},"job_id":"","command":"echelon train a.toml","started":"2026-01-01 10:00"}}}})",
      run.hash, run.state, run.ranks, run.ranks / run.pipeline, run.pipeline, run.servers,
      run.paced ? "paced" : "onednn", run.paced, run.algorithm, run.global, batches, run.weak ? "weak" : "strong",
      run.rate, run.rate * 0.9, run.rate * 1.1, 2.0 * (run.ranks - 1) * 1686568, 2.0 * (run.ranks - 1) * 1686568,
      run.pipeline > 1 ? 3072 : 0, run.accuracy, run.seed);
}

}  // namespace

void write_attempt(const std::string& folder, const Written& run) {
  make_folders(folder);
  Config config =
      parse_config(fmt::format("seed = {}\n[model]\nzoo = \"cnn_32_64\"\n[data]\ntrain = \"x\"\n[batch]\nglobal = {}\n",
                               run.seed, run.weak ? run.global / run.ranks : run.global),
                   "made.toml");
  config.batch.scale_with_replicas = run.weak;
  if (run.paced) config.device.kind = "paced";
  config.exchange = run.exchange;
  write_file_whole(folder + "/config.toml", echo_config(config));
  write_file_whole(folder + "/summary.json", summary_text(run));
  write_file_whole(folder + "/status.json",
                   fmt::format(R"({{"state":"{}","exit_code":0,"reason":"{}","step":345,"checkpoint":""}})", run.state,
                               run.state == "failed" ? "loss is not finite at step 3" : ""));
}

std::string markdown_of(const ScalingReport& report) {
  return write_markdown(report, {"scaling", "echelon report x", "2026-01-01 12:00", "0.1.0", "abc"});
}

}  // namespace echelon::test
